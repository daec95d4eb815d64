import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.datasets.tables.labels import encode_labels
from ratoon.errors import FormatError, InvalidInputError


@pytest.mark.parametrize(
    ("labels", "codes", "names"),
    [
        ([1, 2, 3, 1], [0, 1, 2, 0], ("1", "2", "3")),
        ([-1, 1, 1], [0, 1, 1], ("-1", "1")),
        ([[1.0], [2.0]], [0, 1], ("1", "2")),
        (["b", "a", "b"], [1, 0, 1], ("a", "b")),
        ([b"b", b"a"], [1, 0], ("a", "b")),
        (["10", "9", "10"], [1, 0, 1], ("9", "10")),
        ([True, False], [1, 0], ("False", "True")),
        (np.array(["x", "y"], dtype=object), [0, 1], ("x", "y")),
    ],
)
def test_classes_get_codes_in_order_and_keep_their_names(labels, codes, names):
    y, found = encode_labels(labels)
    assert_array_equal(y, codes)
    assert y.dtype == np.int64
    assert found == names


@pytest.mark.parametrize("labels", [[0.5, 1.0, 2.0], list(range(100)), ["1.5", "2.5"]])
def test_measurements_are_a_continuous_target(labels):
    y, names = encode_labels(labels)
    assert names is None
    assert y.dtype == np.float64


def test_the_task_can_be_forced():
    assert encode_labels([1, 2, 1], task="regression")[1] is None
    assert encode_labels([0.5, 1.5], task="classification")[1] == ("0.5", "1.5")
    with pytest.raises(FormatError, match="text"):
        encode_labels(["a", "b"], task="regression")


@pytest.mark.parametrize("gap", ["", "NA", "nan", None, float("nan"), " ? "])
def test_missing_labels_are_counted_in_the_error(gap):
    with pytest.raises(InvalidInputError, match=r"1 of 3 samples have no label.*sample 2"):
        encode_labels(np.array(["a", gap, "b"], dtype=object))


def test_one_hot_labels_are_refused_with_the_fix():
    with pytest.raises(FormatError, match="class number"):
        encode_labels([[1, 0], [0, 1]])


@given(st.lists(st.text("abc", min_size=1, max_size=2), min_size=1))
def test_codes_and_names_reproduce_the_labels(labels):
    y, names = encode_labels(labels)
    assert [names[code] for code in y] == labels

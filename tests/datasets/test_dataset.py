import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from ratoon.datasets import Dataset
from ratoon.errors import InvalidInputError

X = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_attributes_cannot_be_assigned():
    data = Dataset(X)
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.X = X + 1


BAD = {
    "one dimension": {"X": X[0]},
    "integers": {"X": X.astype(int)},
    "csc": {"X": sp.csc_matrix(X)},
    "short y": {"y": np.array([0, 1])},
    "code without a class": {"y": np.array([0, 1, 2]), "class_names": ("a", "b")},
    "negative code": {"y": np.array([0, -1, 1]), "class_names": ("a", "b")},
    "fractions as codes": {"y": np.array([0.0, 1.0, 1.0]), "class_names": ("a", "b")},
    "too few names": {"feature_names": ("a",)},
    "too many names": {"sample_names": tuple("abcd")},
}


@pytest.mark.parametrize("case", BAD)
def test_inconsistent_parts_are_refused(case):
    with pytest.raises(InvalidInputError):
        Dataset(**{"X": X} | BAD[case])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_taking_samples_keeps_every_part_aligned(kind):
    data = Dataset(kind(X), np.array([0, 1, 1]), ("g", "h"), ("a", "b", "c"), ("no", "yes"))
    part = data.take([2, 0])
    values = part.X.toarray() if part.is_sparse else part.X
    assert_array_equal(values, X[[2, 0]])
    assert part.sample_names == ("c", "a")
    assert part.labels.tolist() == ["yes", "no"]
    assert data.take(np.array([True, False, True])).sample_names == ("a", "c")


def test_the_description_names_size_classes_source_and_notes():
    data = Dataset(
        sp.csr_matrix(X),
        np.array([0, 1, 1]),
        class_names=("no", "yes"),
        source="somewhere.npz",
        sha256="ab",
        notes=("a decision",),
    )
    text = data.describe()
    for part in ("3", "2, float32, sparse", "yes 2 (67%)", "somewhere.npz", "ab", "a decision"):
        assert part in text
    assert repr(data) == (
        "Dataset(3 samples x 2 features, float32, sparse with 5 stored values,"
        " classes: no 1, yes 2, source='somewhere.npz')"
    )


def test_a_continuous_target_has_no_classes():
    data = Dataset(X, np.array([0.5, 1.5, 2.5]))
    assert data.n_classes == 0
    assert data.class_counts == {}
    assert "target    0.5 to 2.5" in data.describe()
    assert "continuous target" in repr(data)

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.datasets import Limits, read
from ratoon.errors import FormatError

TEXT = """% a comment
@RELATION leukaemia
@ATTRIBUTE 'gene 1' NUMERIC
@ATTRIBUTE gene2 REAL
@ATTRIBUTE class {ALL,AML}
@DATA
1.5,2,ALL
?,3,AML
"""


def test_attributes_become_features_and_labels(write):
    data = read(write("a.arff", TEXT), missing="keep")
    assert_array_equal(data.X, np.array([[1.5, 2], [np.nan, 3]]))
    assert data.feature_names == ("gene 1", "gene2")
    assert data.labels.tolist() == ["ALL", "AML"]


def test_the_format_is_recognised_without_the_suffix(write):
    assert read(write("data.txt", TEXT), missing="zero").X.shape == (2, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.replace("1.5,2,ALL", "{0 1.5, 2 ALL}"), "sparse ARFF"),
        (TEXT.replace("REAL", "STRING"), "numeric or nominal"),
        (TEXT.replace("1.5,2,ALL", "1.5,2,CLL"), "not an ARFF file that can be read"),
        (TEXT.replace("1.5,2,ALL", "1.5"), "not an ARFF file that can be read"),
        ("@relation x\n@attribute a numeric\n@data\n", "no data"),
    ],
)
def test_what_cannot_be_read_is_refused(write, text, message):
    with pytest.raises(FormatError, match=message):
        read(write("a.arff", text))


def test_the_limit_on_rows_holds(write):
    with pytest.raises(FormatError, match="limit"):
        read(write("a.arff", TEXT), limits=Limits(rows=1))


def test_many_attributes_are_not_taken_for_rows(write):
    heading = "".join(f"@attribute g{k} numeric\n" for k in range(3_000))
    row = ",".join(["1"] * 3_000)
    limits = Limits(array_bytes=50_000)
    data = read(write("a.arff", f"@relation x\n{heading}@data\n{row}\n"), limits=limits)
    assert data.X.shape == (1, 3_000)


def test_values_with_the_room_of_a_long_class_are_refused(write):
    text = TEXT.replace("{ALL,AML}", "{ALL,AML," + "x" * 1_000_000 + "}") + "1,2,ALL\n" * 20_000
    with pytest.raises(FormatError, match=r"array of 2\d+ x 1\d+ values"):
        read(write("a.arff", text))

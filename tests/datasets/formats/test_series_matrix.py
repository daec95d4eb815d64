import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.datasets import read
from ratoon.errors import FormatError, InvalidInputError, RatoonError

STATE = "disease state"
FILE = f"""\
!Series_title\t"A study"
!Series_summary\t"Two ""quoted"" words"

!Sample_title\t"patient 1"\t"patient 2"\t"patient 3"\t"patient 4"
!Sample_geo_accession\t"GSM1"\t"GSM2"\t"GSM3"\t"GSM4"
!Sample_characteristics_ch1\t"{STATE}: ALL"\t"{STATE}: AML"\t"age: 7"\t"{STATE}: AML"
!Sample_characteristics_ch1\t"age: 5"\t"age: 6"\t"disease state: ALL"\t"age: 8"
!Sample_characteristics_ch1\t"bone marrow"\t"bone marrow"\t"blood"\t"blood"
!series_matrix_table_begin
"ID_REF"\t"GSM1"\t"GSM2"\t"GSM3"\t"GSM4"
"1007_s_at"\t7.5\t8.25\t-1.5\t1e3
"1053_at"\t1\t2\t3\t4
"117_at"\t0.1\t0.2\t0.3\t0.4
!series_matrix_table_end
"""


@pytest.mark.parametrize("name", ["GSE1_series_matrix.txt", "GSE1_series_matrix.txt.gz"])
def test_samples_probes_and_labels_are_read(write, name):
    content = FILE.encode()
    path = write(name, gzip.compress(content) if name.endswith("gz") else content)
    data = read(path, label="disease state")

    expected = [[7.5, 1, 0.1], [8.25, 2, 0.2], [-1.5, 3, 0.3], [1e3, 4, 0.4]]
    assert_array_equal(data.X, np.array(expected, dtype=np.float32))
    assert data.X.flags.c_contiguous
    assert data.feature_names == ("1007_s_at", "1053_at", "117_at")
    assert data.sample_names == ("GSM1", "GSM2", "GSM3", "GSM4")
    assert data.labels.tolist() == ["ALL", "AML", "ALL", "AML"], "gathered over two lines"


def test_without_a_label_the_fields_are_listed(write):
    data = read(write("s.txt", FILE))
    assert data.y is None
    [listing] = [note for note in data.notes if note.startswith("fields that could be the label")]
    assert "disease state (2 values: ALL, AML)" in listing
    assert listing.index("disease state") < listing.index("age (4 values")


@pytest.mark.parametrize(
    "label", ["Disease State", "characteristics_ch1", "!Sample_title", "title"]
)
def test_any_sample_field_can_be_the_label(write, label):
    assert read(write("s.txt", FILE), label=label).y is not None


def test_numbers_as_label_can_be_a_regression_target(write):
    data = read(write("s.txt", FILE), label="age", task="regression")
    assert_array_equal(data.y, [5.0, 6.0, 7.0, 8.0])


def test_an_unknown_field_is_an_error_that_lists_the_others(write):
    with pytest.raises(InvalidInputError, match=r"(?s)'stage'.*disease state .2 values"):
        read(write("s.txt", FILE), label="stage")


def test_null_and_empty_values_are_missing(write):
    path = write("s.txt", FILE.replace("8.25", "null").replace("\t4\n", "\t\n"))
    with pytest.raises(InvalidInputError, match="2 values are missing, the first in sample 'GSM2'"):
        read(path)
    assert read(path, missing="drop").feature_names == ("117_at",)
    assert read(path, missing="median").X[1, 0] == 7.5


BAD = {
    "no end": (FILE.replace("!series_matrix_table_end\n", ""), "cut off"),
    "no table": (FILE.split("!series_matrix")[0], "no line '!series_matrix_table_begin'"),
    "cut inside a row": (FILE[: FILE.index("0.3")], "cut off"),
    "empty table": (
        "\n".join([*FILE.split("\n")[:10], "!series_matrix_table_end\n"]),
        "the table is empty",
    ),
    "short row": (FILE.replace("1\t2\t3\t4", "1\t2\t3"), "line 12: 3 numbers, expected 4"),
    "text": (FILE.replace("0.3", "high"), "line 13, column 'GSM3': 'high' is not a number"),
    "row of text": (FILE.replace("1\t2\t3\t4", "a\tb\tc\td"), "line 12: 'a' is not a number"),
    "two samples alike": (FILE.replace("GSM4", "GSM3"), "'GSM3' occurs 2 times"),
    "facts for other samples": (FILE.replace('\t"patient 4"', ""), "has 3 cells for 4 samples"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_with_the_place(write, case):
    text, message = BAD[case]
    with pytest.raises(RatoonError, match=f"s.txt.*{message}"):
        read(write("s.txt", text))


def test_every_truncation_of_a_gzipped_file_is_refused(write):
    content = gzip.compress(FILE.encode(), mtime=0)
    for size in range(1, len(content), 7):
        with pytest.raises(FormatError):
            read(write("s.txt.gz", content[:size]))

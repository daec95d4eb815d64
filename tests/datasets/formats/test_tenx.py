import gzip

import pytest
from numpy.testing import assert_array_equal

from ratoon.datasets import read
from ratoon.errors import FormatError, InvalidInputError

MATRIX = """%%MatrixMarket matrix coordinate integer general
%metadata_json: {}
3 2 4
1 1 5
3 1 7
1 2 1
2 2 2
"""
FEATURES = (
    "ENSG1\tTP53\tGene Expression\nENSG2\tMYC\tGene Expression\nENSG3\tKIT\tGene Expression\n"
)


@pytest.fixture
def folder(tmp_path):
    def make(matrix=MATRIX, features=FEATURES, barcodes="AAA-1\nCCC-1\n", packed=True):
        home = tmp_path / "filtered"
        home.mkdir(exist_ok=True)
        files = {"matrix.mtx": matrix, "features.tsv": features, "barcodes.tsv": barcodes}
        for name, text in files.items():
            if packed:
                (home / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
            else:
                (home / name).write_text(text)
        return home

    return make


@pytest.mark.parametrize("packed", [True, False])
def test_cells_become_rows_of_a_csr_matrix(folder, packed):
    data = read(folder(packed=packed))
    assert data.is_sparse
    assert_array_equal(data.X.toarray(), [[5, 0, 7], [1, 2, 0]])
    assert data.sample_names == ("AAA-1", "CCC-1")
    assert data.feature_names == ("ENSG1", "ENSG2", "ENSG3")
    assert len(data.sha256) == 64


def test_labels_come_from_a_sample_sheet(folder, write):
    sheet = write("kinds.csv", "barcode,kind\nCCC-1,B\nAAA-1,T\n")
    assert read(folder(), sample_sheet=sheet).labels.tolist() == ["T", "B"]
    with pytest.raises(InvalidInputError, match="sample_sheet="):
        read(folder(), label="kind")


def test_a_single_matrix_file_has_samples_in_rows_by_default(write):
    path = write("a.mtx", MATRIX.replace("integer", "real"))
    assert read(path).X.shape == (3, 2)
    assert read(path, orientation="samples_in_columns").X.shape == (2, 3)


BAD = {
    "outside": (MATRIX.replace("3 1 7", "4 1 7"), "entry 2 is outside 3 x 2"),
    "zero": (MATRIX.replace("3 1 7", "0 1 7"), "entry 2 is outside"),
    "fraction": (MATRIX.replace("3 1 7", "1.5 1 7"), "must be integers"),
    "cut off": (MATRIX[:-6], "3 entries, but the header gives 4"),
    "text": (MATRIX.replace("3 1 7", "3 1 many"), "line 5, column 'value': 'many'"),
    "row of text": (MATRIX.replace("3 1 7", "a b c"), "line 5: 'a' is not a number"),
    "short": (MATRIX.replace("3 1 7", "3 1"), "line 5: 2 numbers, expected 3"),
    "no sizes": (MATRIX[:75], "cut off"),
    "array": (MATRIX.replace("coordinate", "array"), "line 1: not a Matrix Market file"),
    "complex": (MATRIX.replace("integer", "complex"), "'complex general' matrices"),
    "short banner": ("%%MatrixMarket matrix coordinate\n1 1 1\n", "line 1"),
    "bad sizes": (
        MATRIX.replace("3 2 4", "3 x 4"),
        "line 3: expected the number of rows, columns and entries",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_matrix_is_refused_with_the_place(folder, case):
    text, message = BAD[case]
    with pytest.raises(FormatError, match=message):
        read(folder(matrix=text))


def test_a_wrong_number_of_names_is_refused(folder):
    with pytest.raises(FormatError, match=r"1 barcodes, but matrix\.mtx\.gz has 2"):
        read(folder(barcodes="AAA-1\n"))
    with pytest.raises(FormatError, match=r"2 features, but matrix\.mtx\.gz has 3"):
        read(folder(features="a\nb\n"))


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(FormatError, match=r"no matrix\.mtx"):
        read(tmp_path)

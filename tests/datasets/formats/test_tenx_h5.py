import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from ratoon.datasets import Limits, read
from ratoon.errors import FormatError, InvalidInputError

h5py = pytest.importorskip("h5py", reason="h5py is behind the data extra")

CELLS = sp.csr_matrix(np.array([[1.0, 0, 2], [0, 3, 0]]))  # cells x features


@pytest.fixture
def save(tmp_path):
    """Write a file as Cell Ranger 3 does, with parts replaced."""

    def save(name="a.h5", groups=("matrix",), **changed):
        parts = {
            "data": CELLS.data.astype("i4"),
            "indices": CELLS.indices.astype("i8"),
            "indptr": CELLS.indptr.astype("i8"),
            "shape": np.array([3, 2], dtype="i4"),
            "barcodes": np.array([b"AAA-1", b"CCC-1"]),
            **changed,
        }
        with h5py.File(tmp_path / name, "w") as file:
            for title in groups:
                group = file.create_group(title)
                for key, value in parts.items():
                    group[key] = value
                if title == "matrix":
                    group["features/id"] = np.array([b"ENSG1", b"ENSG2", b"CD3"])
                    kinds = [b"Gene Expression"] * 2 + [b"Antibody Capture"]
                    group["features/feature_type"] = np.array(kinds)
                else:
                    group["genes"] = np.array([b"ENSG1", b"ENSG2", b"ENSG3"])
        return tmp_path / name

    return save


def test_cells_become_samples(save):
    data = read(save())
    assert_array_equal(data.X.toarray(), CELLS.toarray())
    assert data.feature_names == ("ENSG1", "ENSG2", "CD3")
    assert data.sample_names == ("AAA-1", "CCC-1")
    assert "features of several types: Antibody Capture, Gene Expression" in data.notes


def test_labels_come_from_a_sample_sheet(save, write):
    sheet = write("cells.csv", "barcode,type\nAAA-1,T\nCCC-1,B\n")
    assert read(save(), sample_sheet=sheet).labels.tolist() == ["T", "B"]
    with pytest.raises(InvalidInputError, match="no labels"):
        read(save(), label="type")


def test_files_of_cell_ranger_2_have_one_group_per_genome(save):
    assert read(save(groups=["GRCh38"])).feature_names == ("ENSG1", "ENSG2", "ENSG3")
    path = save(groups=["GRCh38", "mm10"])
    with pytest.raises(InvalidInputError, match="matrix= with one of 'GRCh38', 'mm10'"):
        read(path)
    assert read(path, matrix="mm10").X.shape == (2, 3)


@pytest.mark.parametrize(
    "changed",
    [
        {"indices": np.array([0, 2, 9])},
        {"indices": np.array([0, 2, -1])},
        {"indptr": np.array([0, 2, 9])},
        {"shape": np.array([3, 2, 1])},
        {"shape": np.array([4, 2])},
        {"barcodes": np.array([b"AAA-1"])},
    ],
)
def test_a_damaged_file_is_refused(save, changed):
    with pytest.raises(FormatError):
        read(save(**changed))


def test_the_limit_on_columns_holds(save):
    with pytest.raises(FormatError, match="limit"):
        read(save(), limits=Limits(columns=2))

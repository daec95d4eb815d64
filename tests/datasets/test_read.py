import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.datasets import MissingPackageError, optional, read
from ratoon.datasets.formats.registry import READERS
from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError


@pytest.mark.parametrize(
    "wrong",
    [
        {"orientation": "sideways"},
        {"task": "ranking"},
        {"missing": "knn"},
        {"unlabelled": "keep"},
        {"duplicates": "drop"},
        {"sparse": "yes"},
        {"dtype": "float16"},
        {"format": "xlsx"},
    ],
)
def test_an_invalid_choice_is_refused_with_the_valid_ones(write, wrong):
    with pytest.raises(InvalidParameterError, match="one of"):
        read(write("a.csv", "id,a\nA,1\nB,2\n"), **wrong)


def test_the_format_can_be_forced(write):
    path = write("odd.bin", "1 1:2\n2 2:3\n")
    assert read(path, format="libsvm").X.shape == (2, 2)
    with pytest.raises(FormatError):
        read(path, format="npz")


def test_every_format_has_a_reader():
    assert set(READERS) == {
        "csv", "npz", "mat", "mat73", "libsvm", "series_matrix", "h5ad", "parquet", "10x",
        "10x_h5", "excel", "arff", "soft", "r", "idx", "images",
    }  # fmt: skip


def test_a_wrong_number_of_labels_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(3), y=[1, 2])
    with pytest.raises((FormatError, InvalidInputError), match="2 labels for 3 samples"):
        read(tmp_path / "a.npz", label="y")


def test_storage_follows_the_sparse_parameter(tmp_path):
    X = np.zeros((400, 500))
    X[:, :10] = 1.5
    np.savez(tmp_path / "a.npz", X=X)
    assert read(tmp_path / "a.npz").is_sparse
    assert not read(tmp_path / "a.npz", sparse=False).is_sparse
    assert_array_equal(read(tmp_path / "a.npz", sparse=True, dtype="float64").X.toarray(), X)


def test_a_missing_package_is_an_error_with_its_extra(monkeypatch, write):
    def absent(module):
        raise ImportError(module)

    monkeypatch.setattr(optional, "import_module", absent)
    path = write("a.parquet", b"PAR1" + bytes(20))
    with pytest.raises(MissingPackageError, match=r"(?s)pyarrow.*pip install ratoon\[data\]"):
        read(path)

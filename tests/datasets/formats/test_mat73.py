import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.datasets import read
from ratoon.errors import FormatError

h5py = pytest.importorskip("h5py", reason="h5py is behind the data extra")

X = np.arange(12.0).reshape(4, 3)


def save(path, write):
    """Write a file as MATLAB does: 512 bytes of its own, then HDF5 with the axes turned round."""
    with h5py.File(path, "w", userblock_size=512) as file:
        write(file)
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    return path


def variable(file, name, values, kind="double"):
    file[name] = values
    file[name].attrs["MATLAB_class"] = np.bytes_(kind)


def text(file, place, word):
    file[place] = np.array([[ord(c)] for c in word], dtype=np.uint16)
    file[place].attrs["MATLAB_class"] = np.bytes_("char")
    return file[place].ref


def cell(file, name, words):
    references = [[text(file, f"#refs#/{name}{i}", word) for i, word in enumerate(words)]]
    file.create_dataset(name, data=references, dtype=h5py.ref_dtype)
    file[name].attrs["MATLAB_class"] = np.bytes_("cell")


def test_arrays_are_transposed(tmp_path):
    def write(file):
        variable(file, "X", X.T)
        variable(file, "Y", [[1.0, 2.0, 2.0, 1.0]])

    data = read(save(tmp_path / "a.mat", write))
    assert_array_equal(data.X, X)
    assert data.X.flags.c_contiguous
    assert data.class_names == ("1", "2")


def test_cells_of_text_are_labels_and_names(tmp_path):
    def write(file):
        variable(file, "X", X.T)
        cell(file, "Y", ["ALL", "AML", "AML", "ALL"])
        cell(file, "genes", ["TP53", "MYC", "KIT"])

    data = read(save(tmp_path / "a.mat", write))
    assert data.labels.tolist() == ["ALL", "AML", "AML", "ALL"]
    assert data.feature_names == ("TP53", "MYC", "KIT")


def sparse(file, ir, jc=(0, 1, 2, 3)):
    group = file.create_group("X")
    group.attrs.update({"MATLAB_sparse": np.uint64(4), "MATLAB_class": np.bytes_("double")})
    group["data"] = [1.0, 2.0, 3.0]
    group["ir"], group["jc"] = np.array(ir, dtype=np.uint64), np.array(jc, dtype=np.uint64)


def test_a_sparse_matrix_stays_sparse(tmp_path):
    data = read(save(tmp_path / "a.mat", lambda file: sparse(file, [3, 0, 1])))
    assert_array_equal(data.X.toarray(), [[0, 2, 0], [0, 0, 3], [0, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize(
    ("ir", "jc"),
    [([4, 0, 1], (0, 1, 2, 3)), ([0, 0, 1], (0, 2, 1, 3)), ([0, 0, 2**63], (0, 1, 2, 3))],
)
def test_bad_indices_are_refused(tmp_path, ir, jc):
    with pytest.raises(FormatError, match=r"a\.mat"):
        read(save(tmp_path / "a.mat", lambda file: sparse(file, ir, jc)))


def test_a_matlab_file_without_a_userblock_is_detected_by_its_extension(tmp_path):
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file["X"] = X.T
    assert_array_equal(read(tmp_path / "a.mat").X, X)


@pytest.mark.parametrize(
    "link", [h5py.SoftLink("/#refs#/a"), h5py.ExternalLink("other.mat", "/X")], ids=["soft", "file"]
)
@pytest.mark.parametrize("name", ["X", "Y", "other"])
def test_a_variable_that_is_a_link_is_refused(tmp_path, link, name):
    def write(file):
        file["#refs#/a"] = X.T
        for each in {"X", "data"} - {name}:
            variable(file, each, X.T)
        file[name] = link

    with pytest.raises(FormatError, match=f"{name} is a link"):
        read(save(tmp_path / "a.mat", write), matrix="data")

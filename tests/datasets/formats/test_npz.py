import io
import zipfile
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.datasets import Limits, read
from ratoon.errors import FormatError, InvalidInputError, RatoonError

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def save(path, **arrays):
    np.savez_compressed(path, **arrays)
    return path


@pytest.mark.parametrize("labels", [[1, 2, 2, 1], [-1, 1, 1, -1], [True, False, False, True]])
def test_labels_of_any_kind_become_codes(tmp_path, labels):
    data = read(save(tmp_path / "a.npz", X=X, y=np.array(labels)))
    assert_array_equal(data.X, X)
    assert data.n_classes == 2
    assert len(set(data.y[[0, 3]])) == len(set(data.y[[1, 2]])) == 1


@pytest.mark.parametrize("codes", [[0, 1, 1, 0], [1, 2, 2, 1]])
def test_class_names_in_the_file_are_used(tmp_path, codes):
    data = read(save(tmp_path / "a.npz", X=X, Y=np.array([codes]).T, classes=["well", "ill"]))
    assert data.labels.tolist() == ["well", "ill", "ill", "well"]


def test_names_of_samples_and_features_are_found(tmp_path):
    path = save(tmp_path / "a.npz", data=X, feature_names=list("abc"), sample_names=list("wxyz"))
    data = read(path)
    assert data.feature_names == ("a", "b", "c")
    assert data.sample_names == ("w", "x", "y", "z")
    assert data.y is None
    assert "no labels found" in data.notes[-1]


def test_fractions_are_a_regression_target(tmp_path):
    data = read(save(tmp_path / "a.npz", X=X, y=[0.5, 1.5, 2.5, 3.5]))
    assert data.class_names is None
    assert_array_equal(data.y, [0.5, 1.5, 2.5, 3.5])


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.csr_array])
def test_a_scipy_sparse_file_stays_sparse(tmp_path, kind):
    sp.save_npz(tmp_path / "a.npz", kind(np.diag([1.0, 2.0, 3.0])))
    data = read(tmp_path / "a.npz")
    assert data.is_sparse
    assert_array_equal(data.X.toarray(), np.diag([1, 2, 3]))
    assert not read(tmp_path / "a.npz", sparse=False).is_sparse


def test_a_pickled_array_is_never_loaded(tmp_path):
    path = save(tmp_path / "a.npz", X=X, y=np.array(["a", None], dtype=object))
    with pytest.raises(FormatError, match="never opened"):
        read(path)


BAD_SPARSE = {
    "column out of range": {"indices": [0, 9, 1]},
    "negative column": {"indices": [0, -1, 1]},
    "starts go backwards": {"indptr": [0, 3, 2, 3]},
    "starts beyond the end": {"indptr": [0, 1, 2, 99]},
    "starts too few": {"indptr": [0, 3]},
    "starts are fractions": {"indptr": [0.0, 1.0, 2.0, 3.0]},
    "more indices than values": {"indices": [0, 1, 2, 0, 1]},
    "negative shape": {"shape": [-3, 3]},
    "three dimensions": {"shape": [3, 3, 3]},
    "unknown format": {"format": "coo"},
}


@pytest.mark.parametrize("case", BAD_SPARSE)
def test_a_sparse_file_with_bad_indices_is_refused(tmp_path, case):
    parts = {"data": [1.0, 2.0, 3.0], "indices": [0, 1, 2], "indptr": [0, 1, 2, 3]}
    parts |= {"shape": [3, 3], "format": "csr"}
    np.savez(
        tmp_path / "a.npz", **{k: np.asarray(v) for k, v in (parts | BAD_SPARSE[case]).items()}
    )
    with pytest.raises(FormatError, match=r"a\.npz"):
        read(tmp_path / "a.npz")


def test_a_name_that_is_not_in_the_file_is_an_error_with_the_names(tmp_path):
    path = save(tmp_path / "a.npz", X=X, stage=[1, 2, 3, 4])
    with pytest.raises(InvalidInputError, match=r"no array 'y'; the file has X 4x3, stage 4"):
        read(path, label="y")
    with pytest.raises(InvalidInputError, match="no array 'Z'"):
        read(path, matrix="Z")
    two = save(tmp_path / "b.npz", first=X, second=X)
    with pytest.raises(InvalidInputError, match="several tables"):
        read(two)


def test_a_declared_size_above_the_limit_is_refused_before_reading(tmp_path):
    buffer = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
    np.lib.format.write_array_header_1_0(buffer, header)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", buffer.getvalue())
    with pytest.raises(FormatError, match="limit"):
        read(tmp_path / "a.npz")


def test_every_truncation_is_refused(tmp_path, write):
    content = save(tmp_path / "whole.npz", X=X, y=[0, 1, 1, 0]).read_bytes()
    for size in range(1, len(content), 11):
        with pytest.raises(RatoonError):
            read(write("a.npz", content[:size]))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_file_is_read_or_refused_with_an_error_of_ours(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    np.savez(folder / "a.npz", X=X, y=[0, 1, 1, 0])
    content = bytearray((folder / "a.npz").read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    (folder / "a.npz").write_bytes(content)
    with suppress(RatoonError):
        read(folder / "a.npz", limits=Limits(array_bytes=10**6))


def test_ignored_arrays_are_in_the_notes(tmp_path):
    x = np.arange(12.0).reshape(4, 3)
    np.savez(tmp_path / "a.npz", X=x, y=[0, 1])
    assert "array 'y' (2) does not have one label for each of the 4 samples" in read_notes(tmp_path)
    np.savez(tmp_path / "a.npz", table=x, group=[0, 1, 0, 1])
    notes = read_notes(tmp_path)
    assert "samples from array 'table', the only table" in notes
    assert "arrays with one value per sample: 'group'; pass label=" in notes


def read_notes(folder):
    return "\n".join(read(folder / "a.npz").notes)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused(tmp_path):
    path = save(tmp_path / "a.npz", X=X, y=[0, 1, 1, 0])
    other = io.BytesIO()
    np.save(other, X + 1)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("X.npy", other.getvalue())
    with pytest.raises(FormatError, match="two arrays of the name 'X'"):
        read(path)


def test_an_archive_of_an_unknown_version_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(3))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[content.rindex(b"PK\x01\x02") + 6] = 64  # version needed to extract: 6.4
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(FormatError, match="not a complete"):
        read(tmp_path / "a.npz")

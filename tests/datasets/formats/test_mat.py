import struct
from contextlib import suppress

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.datasets import Limits, read
from ratoon.datasets.formats.mat import survey_mat
from ratoon.errors import FormatError, InvalidInputError, RatoonError

X = np.arange(12.0).reshape(4, 3)
Y = np.array([[1], [2], [2], [1]], dtype=np.uint8)


def save(path, compress=True, **variables):
    scipy.io.savemat(path, variables, do_compression=compress)
    return path


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "u1", ">i4", "u8"])
def test_arrays_of_every_type_are_read(tmp_path, compress, dtype):
    data = read(save(tmp_path / "a.mat", compress, X=X.astype(dtype), Y=Y))
    assert_array_equal(data.X, X)
    assert data.X.dtype == np.float32
    assert data.class_names == ("1", "2")


@pytest.mark.parametrize("compress", [True, False])
def test_a_sparse_matrix_stays_sparse(tmp_path, compress):
    data = read(save(tmp_path / "a.mat", compress, X=sp.csc_matrix(np.diag([1.0, 2, 3, 4])), Y=Y))
    assert data.is_sparse
    assert_array_equal(data.X.toarray(), np.diag([1, 2, 3, 4]))


def test_text_labels_and_names_are_read(tmp_path):
    cell = np.array(["ALL", "AML", "AML", "ALL"], dtype=object).reshape(4, 1)
    genes = np.array(["TP53", "MYC", "KIT"], dtype=object)
    data = read(save(tmp_path / "a.mat", X=X, Y=cell, genes=genes))
    assert data.labels.tolist() == ["ALL", "AML", "AML", "ALL"]
    assert data.feature_names == ("TP53", "MYC", "KIT")


def test_structures_and_functions_are_skipped(tmp_path):
    data = read(save(tmp_path / "a.mat", X=X, Y=Y, info={"author": "somebody", "n": 3.0}))
    assert data.X.shape == (4, 3)
    with pytest.raises(InvalidInputError, match="no array 'info'"):
        read(tmp_path / "a.mat", matrix="info")


@pytest.mark.parametrize("field", ["ir", "jc"])
@pytest.mark.parametrize("value", [-1, 1000, 2**31 - 1])
def test_an_uncompressed_sparse_matrix_with_a_bad_index_is_refused(tmp_path, field, value):
    # Eight entries 7 in column 0 of a 9 x 2 matrix: their row numbers stand as 0..7 in the file.
    matrix = sp.csc_matrix((np.full(8, 7.0), (np.arange(8), np.zeros(8, dtype=int))), shape=(9, 2))
    content = bytearray(save(tmp_path / "a.mat", False, X=matrix).read_bytes())
    wanted = struct.pack("<8i", *range(8)) if field == "ir" else struct.pack("<3i", 0, 8, 8)
    place = content.index(wanted) + 4
    content[place : place + 4] = struct.pack("<i", value)
    (tmp_path / "a.mat").write_bytes(content)
    with pytest.raises(FormatError, match=r"a\.mat"):
        read(tmp_path / "a.mat")


def test_text_shorter_than_its_declared_length_is_refused(tmp_path):
    content = bytearray(save(tmp_path / "a.mat", False, X=X, name="abc").read_bytes())
    place = content.index(struct.pack("<2i", 1, 3))
    content[place : place + 8] = struct.pack("<2i", 2**15, 2**15)
    (tmp_path / "a.mat").write_bytes(content)
    with pytest.raises(FormatError, match="shape"):
        read(tmp_path / "a.mat")


def test_the_survey_lists_variables_without_reading_values(tmp_path):
    save(tmp_path / "a.mat", X=X, Y=Y, name="text", s={"a": 1})
    found = survey_mat(tmp_path / "a.mat", Limits())
    assert {name: v.shape for name, v in found.items()} == {
        "X": (4, 3),
        "Y": (4, 1),
        "name": (1, 4),
        "s": (1, 1),
    }
    assert [v.is_numeric for v in found.values()] == [True, True, False, False]


def test_complex_matrices_are_not_used_as_data(tmp_path):
    with pytest.raises(InvalidInputError, match="no table"):
        read(save(tmp_path / "a.mat", X=X * 1j))


def test_a_file_of_version_4_is_refused_with_the_fix(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"X": X}, format="4")
    with pytest.raises(FormatError, match="save -v7"):
        read(tmp_path / "a.mat")


@pytest.mark.parametrize("compress", [True, False])
def test_every_truncation_is_refused(tmp_path, write, compress):
    content = save(tmp_path / "whole.mat", compress, X=X, Y=Y).read_bytes()
    # Cut exactly between two variables, a file is whole again, and only the label is gone.
    cuts = {128 + 8 + struct.unpack_from("<I", content, 132)[0]}
    for size in set(range(1, len(content), 7)) - cuts:
        with pytest.raises(RatoonError):
            read(write("a.mat", content[:size]))


@settings(max_examples=300, deadline=None)
@given(st.data(), st.booleans())
def test_a_damaged_file_is_read_or_refused_with_an_error_of_ours(tmp_path_factory, data, compress):
    folder = tmp_path_factory.mktemp("damaged")
    save(folder / "a.mat", compress, X=sp.csc_matrix(X), Y=Y)
    content = bytearray((folder / "a.mat").read_bytes())
    for place in data.draw(st.lists(st.integers(116, len(content) - 1), min_size=1, max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    (folder / "a.mat").write_bytes(content)
    with suppress(RatoonError):
        read(folder / "a.mat", limits=Limits(array_bytes=10**6, rows=10**4, columns=10**4))

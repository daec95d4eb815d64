from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.errors import FormatError, InvalidInputError
from ratoon.samples.csr import check_compressed, checked_csr

X = np.arange(12.0).reshape(4, 3) % 5
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_every_format_becomes_canonical_csr(form, kind):
    given = kind(X).asformat(form)
    checked = checked_csr(given)
    assert checked.format == "csr"
    assert checked.has_canonical_format
    assert_array_equal(checked.toarray(), X)
    assert_array_equal(given.toarray(), X)


def test_a_canonical_matrix_shares_its_arrays_unless_a_copy_is_asked_for():
    matrix = sp.csr_array(X)
    parts = ("data", "indices", "indptr")
    shared = checked_csr(matrix)
    copied = checked_csr(matrix, copy=True)
    for part in parts:
        assert np.shares_memory(getattr(shared, part), getattr(matrix, part))
        assert not np.shares_memory(getattr(copied, part), getattr(matrix, part))


def test_values_are_converted_before_duplicates_are_added_up():
    values, columns = np.array([200, 100], np.uint8), np.array([1, 1])
    compressed = sp.csr_array((values, columns, np.array([0, 2])), shape=(1, 2))
    listed = sp.coo_array((values, (np.array([0, 0]), columns)), shape=(1, 2))
    for matrix in (compressed, listed):
        checked = checked_csr(matrix, convert=lambda data: data.astype(np.float32))
        assert_array_equal(checked.toarray(), [[0, 300]])
        assert matrix.nnz == 2


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_unused_capacity_of_arrays_is_removed(form):
    matrix = sp.csr_array(X).asformat(form)
    n = matrix.nnz
    matrix.data = np.append(matrix.data, [7.0, 7.0])
    matrix.indices = np.append(matrix.indices, [0, 0]).astype(matrix.indices.dtype)
    checked = checked_csr(matrix)
    assert checked.data.size == checked.indices.size == n
    assert_array_equal(checked.toarray(), X)


def broken(form, **parts):
    matrix = sp.csr_array(np.eye(4)).asformat(form)
    for name, values in parts.items():
        setattr(matrix, name, values)
    return matrix


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (broken("csr", indices=np.array([0, 1, 4, 3])), "index 4 lies outside 0..3"),
        (broken("csr", indices=np.array([0, -1, 2, 3])), "index -1 lies outside"),
        (broken("csc", indices=np.array([0, 2**31, 2, 3])), "lies outside"),
        (broken("bsr", indices=np.array([9])), "lies outside|values and|index pointers"),
        (broken("csr", indptr=np.array([0, 1, 2, 3, 5])), "must rise from 0 to at most 4"),
        (broken("csr", indptr=np.array([1, 1, 2, 3, 4])), "must rise from 0"),
        (broken("csr", indptr=np.array([0, 2, 1, 3, 4])), "must rise from 0"),
        (broken("csr", indptr=np.array([0, 2, 1, 3, 4], np.uint64)), "must rise from 0"),
        (broken("csr", indptr=np.array([0, 1, 4])), "3 index pointers where 5 are needed"),
        (broken("csr", data=np.ones(3)), "3 values and 4 indices"),
        (broken("csr", indices=np.array([0.0, 1, 2, 3])), "of integers"),
        (broken("coo", coords=(np.array([0, 1, 4, 3]), np.arange(4))), "row index 4 lies"),
        (broken("coo", coords=(np.arange(4), np.array([0, -4, 1, 2]))), "column index -4 lies"),
        (broken("coo", coords=(np.arange(4), np.full(4, np.nan))), "of integers"),
        (broken("coo", coords=(np.arange(4), np.arange(3))), "4 values and 3 indices"),
    ],
)
def test_damaged_indices_are_refused(matrix, message):
    with pytest.raises(InvalidInputError, match=f"X: .*({message}).*the matrix is damaged"):
        checked_csr(matrix)
    with pytest.raises(FormatError, match=r"a\.npz: .*the file is damaged"):
        checked_csr(matrix, source="a.npz", error=FormatError)


def test_a_sparse_list_of_rows_with_wrong_columns_is_refused():
    matrix = sp.lil_array(np.eye(3))
    matrix.rows[1] = [10**6]
    with pytest.raises(InvalidInputError, match="index 1000000 lies outside"):
        checked_csr(matrix)


def test_other_than_two_dimensions_are_refused():
    with pytest.raises(InvalidInputError, match="must have 2 dimensions, got 1"):
        checked_csr(sp.coo_array(np.ones(3)))


@given(
    st.lists(st.integers(-2, 5), max_size=6),
    st.lists(st.integers(-2, 5), max_size=6),
    st.integers(0, 4),
    st.integers(0, 4),
)
def test_the_check_accepts_exactly_the_indices_in_range(indptr, indices, n_major, n_minor):
    indptr, indices = np.array(indptr, dtype=np.int64), np.array(indices, dtype=np.int64)
    is_inside = (
        len(indptr) == n_major + 1
        and indptr[0] == 0
        and all(a <= b for a, b in pairwise(indptr))
        and indptr[-1] <= len(indices)
        and all(0 <= j < n_minor for j in indices)
    )
    if is_inside:
        check_compressed(indptr, indices, indices.size, n_major, n_minor, source="x")
    else:
        with pytest.raises(FormatError):
            check_compressed(indptr, indices, indices.size, n_major, n_minor, source="x")

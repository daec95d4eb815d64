from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.datasets.arrays import as_matrix, check_compressed, checked_csr
from ratoon.errors import FormatError, InvalidInputError

X = np.arange(6.0).reshape(2, 3)


def unaligned():
    buffer = np.zeros(X.nbytes + 1, dtype=np.uint8)
    view = buffer[1:].view(np.float64).reshape(X.shape)
    view[:] = X
    return view


def read_only():
    copy = X.copy()
    copy.flags.writeable = False
    return copy


ZOO = {
    "big-endian": X.astype(">f8"),
    "float16": X.astype(np.float16),
    "integers": X.astype(np.int8),
    "unsigned": X.astype(np.uint64),
    "Fortran order": np.asfortranarray(X),
    "negative strides": X[::-1, ::-1][::-1, ::-1],
    "every other": np.repeat(X, 2, axis=1)[:, ::2],
    "read-only": read_only(),
    "unaligned": unaligned(),
    "mask with nothing masked": np.ma.array(X),
    "lists": X.tolist(),
}


@pytest.mark.parametrize("case", ZOO)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_kind_of_array_becomes_aligned_native_contiguous_floats(case, dtype):
    result = as_matrix(ZOO[case], dtype=dtype)
    assert_array_equal(result, X)
    assert result.dtype == np.dtype(dtype)
    assert result.flags.c_contiguous
    assert result.flags.aligned
    assert result.dtype.isnative


REFUSED = {
    "masked": (np.ma.array(X, mask=X > 3), InvalidInputError),
    "dates": (np.zeros((2, 2), dtype="M8[s]"), FormatError),
    "durations": (np.zeros((2, 2), dtype="m8[s]"), FormatError),
    "objects": (np.array([[1, "a"]], dtype=object), FormatError),
    "text": (np.array([["1", "2"]]), FormatError),
    "complex": (X * 1j, FormatError),
    "structures": (np.zeros((2, 2), dtype=[("a", "f4")]), FormatError),
    "one dimension": (X[0], FormatError),
    "three dimensions": (X[None], FormatError),
    "too large for float32": (X * 1e300, FormatError),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_lose_its_meaning_is_refused(case):
    values, error = REFUSED[case]
    with pytest.raises(error):
        as_matrix(values)


def test_a_signalling_nan_is_a_missing_value_like_any_other():
    signalling = np.array([[0x7FF0000000000001]], dtype=np.uint64).view(np.float64)
    assert np.isnan(as_matrix(signalling)[0, 0])


def test_infinity_itself_is_not_an_overflow():
    assert np.isinf(as_matrix(np.array([[np.inf, 1.0]]))[0, 0])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_every_sparse_format_becomes_canonical_csr(kind):
    matrix = sp.csr_matrix(X).asformat(kind)
    result = checked_csr(matrix)
    assert result.format == "csr"
    assert result.has_canonical_format
    assert_array_equal(result.toarray(), X)


def test_unsorted_duplicates_are_summed_and_the_original_is_left_alone():
    data, indices, indptr = np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])
    matrix = sp.csr_matrix((data, indices, indptr), shape=(1, 3))
    result = checked_csr(matrix)
    assert_array_equal(result.toarray(), [[2, 0, 5]])
    assert_array_equal(matrix.indices, [2, 0, 2])
    assert_array_equal(matrix.data, [1, 2, 4])


def broken(kind, **parts):
    matrix = {"csr": sp.csr_matrix, "csc": sp.csc_matrix, "coo": sp.coo_matrix}[kind](np.eye(3))
    for name, values in parts.items():
        setattr(matrix, name, np.array(values))
    return matrix


@pytest.mark.parametrize(
    "matrix",
    [
        broken("csr", indices=[0, 1, 3]),
        broken("csr", indices=[0, -1, 2]),
        broken("csc", indices=[0, 2**31, 2]),
        broken("csr", indptr=[0, 1, 2, 4]),
        broken("csr", indptr=[1, 1, 2, 3]),
        broken("csr", indptr=[0, 2, 1, 3]),
        broken("csr", data=[1.0, 2.0]),
        broken("csr", indices=[0.0, 1.0, 2.0]),
        broken("csr", data=["a", "b", "c"]),
        broken("coo", row=[0, 1, 3]),
        broken("coo", col=[0, -4, 1]),
    ],
)
def test_bad_indices_never_reach_compiled_code(matrix):
    with pytest.raises(FormatError):
        checked_csr(matrix)


@given(
    st.lists(st.integers(-2, 5), max_size=6),
    st.lists(st.integers(-2, 5), max_size=6),
    st.integers(0, 4),
    st.integers(0, 4),
)
def test_the_check_accepts_exactly_what_is_inside(indptr, indices, n_major, n_minor):
    indptr, indices = np.array(indptr, dtype=np.int64), np.array(indices, dtype=np.int64)
    sound = (
        len(indptr) == n_major + 1
        and indptr[0] == 0
        and all(a <= b for a, b in pairwise(indptr))
        and indptr[-1] <= len(indices)
        and all(0 <= j < n_minor for j in indices)
    )
    if sound:
        check_compressed(indptr, indices, indices.size, n_major, n_minor, source="x")
    else:
        with pytest.raises(FormatError):
            check_compressed(indptr, indices, indices.size, n_major, n_minor, source="x")

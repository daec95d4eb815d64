import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidInputError
from ratoon.samples.in_memory import DenseSamples, SparseSamples, wrap
from ratoon.samples.on_disk import DiskRows, MapReader

X = np.arange(12.0).reshape(4, 3) % 5
ROWS = np.array([3, 1, 2])
KINDS = {
    "dense": lambda: DenseSamples(X),
    "sparse": lambda: SparseSamples(scipy.sparse.csr_array(X)),
    "on disk": lambda: DiskRows(MapReader(X)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_samples_has_the_same_rows(kind):
    samples = KINDS[kind]()
    assert (samples.shape, samples.n_rows, samples.n_features, len(samples)) == ((4, 3), 4, 3, 4)
    assert samples.dtype == np.float64
    assert (samples.is_sparse, samples.is_on_disk) == (kind == "sparse", kind == "on disk")
    assert samples.n_stored == (np.count_nonzero(X) if kind == "sparse" else None)
    assert_array_equal(samples.dense(), X)
    for rows in (ROWS, slice(1, 3), X[:, 0] > 1):
        assert_array_equal(samples.dense(rows), X[rows])
        assert_array_equal(samples[rows].dense(), X[rows])
    single = samples.values(np.float32)
    assert single.dtype == np.float32
    assert_array_equal(single.toarray() if samples.is_sparse else single, X)


def test_values_in_memory_are_not_copied():
    assert DenseSamples(X).values() is X
    assert np.shares_memory(np.asarray(DenseSamples(X)), X)
    matrix = scipy.sparse.csr_array(X)
    assert SparseSamples(matrix).values() is matrix
    assert np.shares_memory(wrap(matrix).values().data, matrix.data)


def test_selected_rows_of_a_memory_map_stay_on_disk(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for samples in (wrap(mapped), wrap(np.asarray(mapped))):
        assert isinstance(samples[ROWS], DiskRows)
        assert_array_equal(samples[ROWS].dense(), X[ROWS])
    assert isinstance(wrap(X)[ROWS], DenseSamples)
    assert isinstance(wrap(scipy.sparse.csr_array(X))[ROWS], SparseSamples)


@pytest.mark.parametrize("x", [np.ones(3), np.ones((2, 3, 4)), 5.0])
def test_samples_need_two_dimensions(x):
    with pytest.raises(InvalidInputError, match="rows of features"):
        wrap(x)


def test_wrapping_samples_returns_them():
    samples = wrap(X)
    assert wrap(samples) is samples


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint16, np.int16, np.bool_])
def test_small_integers_are_stored_as_they_are_and_returned_as_float32(kind):
    samples = DenseSamples((X > 1).astype(kind))
    assert samples.array.dtype == samples[ROWS].array.dtype == kind
    assert samples.dtype == np.float32
    for values in (samples.values(), samples.dense(), samples.dense(ROWS), np.asarray(samples)):
        assert values.dtype == np.float32
    assert_array_equal(samples.dense(ROWS), (X > 1)[ROWS])

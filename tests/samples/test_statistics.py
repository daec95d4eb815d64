import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.samples.statistics import feature_statistics


def test_weights_count_samples_and_zero_leaves_them_out():
    x = np.array([[1.0, 5.0], [3.0, 5.0], [99.0, 7.0]])
    found = feature_statistics(x, np.array([1.0, 3.0, 0.0]))
    #  mean (1 + 3 * 3) / 4 = 2.5; squares 1.5^2 + 3 * 0.5^2 = 3, over 4
    assert_allclose(found.mean, [2.5, 5.0])
    assert_allclose(found.std, [np.sqrt(0.75), 0.0])
    assert_array_equal(found.constant, [False, True])
    assert_allclose(found.factors(), [1 / np.sqrt(0.75), 0.0])
    assert found.largest == 5.0


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 30), st.integers(1, 5)),
        # Of sizes whose squares NumPy can hold, too.
        elements=st.integers(-(10**6), 10**6).map(lambda value: value / 64),
    )
)
def test_dense_and_sparse_agree_with_numpy(x):
    dense, sparse = feature_statistics(x), feature_statistics(scipy.sparse.csr_array(x))
    scale = np.abs(x).max(axis=0) + 1e-300
    for found in (dense, sparse):
        assert_allclose(found.mean, x.mean(axis=0), rtol=0, atol=1e-12 * scale.max())
        known = ~found.constant
        assert_allclose(found.std[known], x.std(axis=0)[known], rtol=1e-6)
        assert_array_equal(found.constant | (x.min(axis=0) != x.max(axis=0)), True)
    assert_array_equal(dense.constant, sparse.constant)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_the_spread_of_extreme_values_neither_overflows_nor_underflows(size):
    x = size * np.array([[1.0], [2.0], [4.0]])
    for samples in (x, scipy.sparse.csr_array(x)):
        assert_allclose(feature_statistics(samples).std / size, np.std([1, 2, 4]))


def test_a_small_spread_is_found_beneath_a_large_mean():
    x = 1e9 + np.array([[0.0], [1.0]])
    assert_allclose(feature_statistics(x).std, 0.5)


def test_a_spread_within_rounding_error_is_zero():
    x = np.full((1000, 1), 0.1)
    x[0] = np.nextafter(0.1, 1)
    assert feature_statistics(x).constant.all()


def test_equal_values_have_exactly_their_value_as_mean():
    x = np.full((7, 1), 0.1)
    assert feature_statistics(x).mean[0] == 0.1


def test_columns_that_are_not_stored_are_constant_zeros():
    found = feature_statistics(scipy.sparse.csr_array((5, 3)))
    assert found.constant.all()
    assert_array_equal(found.mean, 0.0)
    assert found.largest == 0.0


def test_blocks_of_rows_add_up(monkeypatch):
    x = np.random.default_rng(0).normal(size=(50, 4))
    whole = feature_statistics(x)
    monkeypatch.setattr("ratoon.samples.statistics._BLOCK_BYTES", 100)
    parts = feature_statistics(x)
    assert_allclose(parts.mean, whole.mean, atol=1e-15)
    assert_allclose(parts.std, whole.std)

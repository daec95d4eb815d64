"""Recent gradients as thin factors."""

import tracemalloc

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_info

from ratoon.evolution.recent import RecentGradients, n_remembered

SHAPE = (30, 20)


def minibatches(n, batch=3, seed=0):
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=(30, batch)), rng.normal(size=(20, batch))) for _ in range(n)]


def remember(batches, *, mu=0.9, max_columns=None, first=0):
    recent = RecentGradients.empty(SHAPE, np.float64)
    for step, signals in enumerate(batches, start=first):
        recent = recent.with_minibatch(signals, step, mu=mu, max_columns=max_columns)
    return recent


def test_a_gradient_is_dropped_once_below_one_per_cent():
    assert 0.9 ** n_remembered(0.9) < 0.01 <= 0.9 ** (n_remembered(0.9) - 1)
    assert n_remembered(0.0) == 1


def test_the_product_is_the_decayed_sum_of_gradients():
    batches = minibatches(10)
    expected = sum(0.9 ** (9 - k) * x @ d.T for k, (x, d) in enumerate(batches))
    assert_allclose(np.matmul(remember(batches).x, remember(batches).d.T), expected, rtol=1e-12)


def test_old_minibatches_are_dropped_whole():
    batches = minibatches(60)
    recent = remember(batches)
    assert recent.steps.min() == 60 - 44
    assert recent.x.shape == (30, 44 * 3)
    expected = sum(0.9 ** (59 - k) * x @ d.T for k, (x, d) in enumerate(batches) if k >= 16)
    assert_allclose(recent.x @ recent.d.T, expected, rtol=1e-10, atol=1e-12)


def test_unwatched_steps_also_decay_the_gradients():
    (first, second) = minibatches(2)
    recent = RecentGradients.empty(SHAPE, np.float64)
    recent = recent.with_minibatch(first, 10, mu=0.9, max_columns=None)
    recent = recent.with_minibatch(second, 15, mu=0.9, max_columns=None)
    expected = 0.9**5 * first[0] @ first[1].T + second[0] @ second[1].T
    assert_allclose(recent.x @ recent.d.T, expected, rtol=1e-12)
    assert recent.with_minibatch(second, 99, mu=0.9, max_columns=None).steps.tolist() == [99] * 3


def test_low_rank_equals_the_truncated_singular_value_decomposition():
    recent = remember(minibatches(10))
    whole = recent.x @ recent.d.T
    left, values, right = np.linalg.svd(whole)
    best = left[:, :8] * values[:8] @ right[:8]
    low = recent.of_rank(8, 9)
    assert low.x.shape == (30, 8)
    assert_allclose(low.x @ low.d.T, best, atol=1e-9)


def test_a_product_of_low_rank_is_reproduced_exactly():
    x, d = minibatches(1, batch=4)[0]
    recent = remember([(x, d)] * 12, max_columns=16)
    expected = sum(0.9**k for k in range(12)) * x @ d.T
    assert recent.steps.size <= 16
    assert_allclose(recent.x @ recent.d.T, expected, rtol=1e-6)


@pytest.mark.parametrize("batch", [1, 3, 50])
def test_columns_never_exceed_the_limit(batch):
    recent = RecentGradients.empty(SHAPE, np.float64)
    for step, signals in enumerate(minibatches(30, batch)):
        recent = recent.with_minibatch(signals, step, mu=0.9, max_columns=10)
        assert recent.steps.size == recent.x.shape[1] == recent.d.shape[1] <= 10


def test_minibatches_of_zeros_give_a_product_of_zero():
    silent = (np.zeros((30, 6)), np.zeros((20, 6)))
    recent = remember([silent] * 5, max_columns=8)
    assert not (recent.x @ recent.d.T).any()


def test_decompositions_use_one_blas_thread_and_restore_the_limit(monkeypatch):
    def blas_threads():
        return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}

    before, inside = blas_threads(), []
    svd = np.linalg.svd

    def watched(matrix, **options):
        inside.append(blas_threads())
        return svd(matrix, **options)

    monkeypatch.setattr(np.linalg, "svd", watched)
    remember(minibatches(5), max_columns=8)
    assert inside
    assert all(1 in threads for threads in inside)
    assert blas_threads() == before


def decomposed_sizes(monkeypatch, size=max):
    """Record the larger or smaller dimension of all matrices that are decomposed."""
    sizes = []

    def watch(module, name):
        decompose = getattr(module, name)

        def watched(matrix, *args, **how):
            sizes.append(size(matrix.shape))
            return decompose(matrix, *args, **how)

        monkeypatch.setattr(module, name, watched)

    watch(np.linalg, "svd")
    watch(np.linalg, "eigh")
    watch(scipy.linalg, "eigh")
    return sizes


@pytest.mark.parametrize("shape", [(48, 24), (24, 48), (32, 32), (8, 999), (999, 8)])
def test_many_rows_are_reduced_in_the_smaller_dimension(monkeypatch, shape):
    rng = np.random.default_rng(0)
    x, d = (rng.normal(size=(n, 4096)) for n in shape)
    sizes = decomposed_sizes(monkeypatch)
    recent = RecentGradients.empty(shape, np.float64)
    for step in range(2):
        recent = recent.with_minibatch((x, d), step, mu=0.9, max_columns=32)
    assert sizes
    assert max(sizes) <= min(shape)
    left, values, right = np.linalg.svd(1.9 * x @ d.T, full_matrices=False)
    rank = min(16, *shape)
    assert recent.x.shape == (shape[0], rank)
    assert_allclose(recent.x @ recent.d.T, left[:, :rank] * values[:rank] @ right[:rank], atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_ways_of_reducing_give_the_same_product(monkeypatch, dtype):
    batches = [(x.astype(dtype), d.astype(dtype)) for x, d in minibatches(4, batch=150)]
    recent = remember(batches)
    in_units = recent.of_rank(8, 3)
    monkeypatch.setattr("ratoon.evolution.recent.MANY_COLUMNS", 10**9)
    in_columns = recent.of_rank(8, 3)
    assert in_units.x.dtype == in_columns.x.dtype == recent.x.dtype
    expected = in_columns.x @ in_columns.d.T
    tolerance = (1e-4 if dtype == np.float32 else 1e-9) * np.abs(expected).max()
    assert_allclose(in_units.x @ in_units.d.T, expected, atol=tolerance)


def test_many_rows_of_zeros_give_a_product_of_zero():
    silent = (np.zeros((30, 4096)), np.zeros((20, 4096)))
    recent = remember([silent] * 2, max_columns=8)
    assert not (recent.x @ recent.d.T).any()


# ----------------------------------------------------- many inputs, many outputs, many columns


def wide(n_in=700, n_out=800, n_columns=900, rank=None, dtype=np.float32, seed=0):
    """Factors whose product has singular values that fall like those of gradients."""
    rng = np.random.default_rng(seed)
    sizes = 1.0 / np.arange(1, (rank or n_columns) + 1)
    mixing = rng.normal(size=(sizes.size, n_columns)) / np.sqrt(n_columns)
    x = rng.normal(size=(n_in, sizes.size)) * sizes @ mixing
    d = rng.normal(size=(n_out, sizes.size)) @ mixing
    return x.astype(dtype), d.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_wide_product_is_approximated_almost_as_well_as_possible(dtype):
    x, d = wide(dtype=dtype)
    whole = x.astype(np.float64) @ d.T
    low = remember_wide(x, d, 32)
    assert low.x.dtype == low.d.dtype == dtype
    assert low.x.shape == (700, 16)
    values = np.linalg.svd(whole, compute_uv=False)
    best = np.sqrt(np.square(values[16:]).sum())
    assert np.linalg.norm(whole - low.x @ low.d.T) < 1.02 * best


def remember_wide(x, d, max_columns):
    recent = RecentGradients.empty((x.shape[0], d.shape[0]), x.dtype)
    return recent.with_minibatch((x, d), 0, mu=0.9, max_columns=max_columns)


def test_a_wide_product_of_low_rank_is_reproduced():
    x, d = wide(rank=10, dtype=np.float64)
    low = remember_wide(x, d, 32)
    assert_allclose(low.x @ low.d.T, x @ d.T, atol=1e-10 * np.abs(x @ d.T).max())


def test_the_approximation_of_a_wide_product_is_the_same_each_time():
    x, d = wide()
    one, other = remember_wide(x, d, 32), remember_wide(x, d, 32)
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.d, other.d)


@pytest.mark.parametrize("n_columns", [600, 1300])
def test_a_wide_product_is_reduced_without_large_matrices(monkeypatch, n_columns):
    x, d = wide(3000, 2800, n_columns, rank=40)
    sizes = decomposed_sizes(monkeypatch, min)
    tracemalloc.start()
    remember_wide(x, d, 32)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sizes
    assert max(sizes) <= 2 * 16 + 8
    # The factors are copied with the new columns and once more to be scaled.
    assert peak < 2.6 * (x.nbytes + d.nbytes) + 4 * 8 * 40 * (3000 + 2800)


def test_wide_products_of_zeros_are_zero():
    low = remember_wide(np.zeros((700, 800)), np.zeros((600, 800)), 32)
    assert not (low.x @ low.d.T).any()


# ------------------------------------------------------------------------------ extreme numbers

EXTREMES = {
    "float32, large": (np.float32, 1e30, 1e30),
    "float32, small": (np.float32, 1e-40, 1e-40),
    "float32, both": (np.float32, 1e30, 1e-40),
    "float64, large": (np.float64, 1e200, 1e200),
    "float64, small": (np.float64, 1e-250, 1e-250),
}


@pytest.mark.parametrize("n", [24, 700])
@pytest.mark.parametrize("case", EXTREMES)
def test_extreme_numbers_are_reduced_like_others(case, n):
    dtype, of_x, of_d = EXTREMES[case]
    rng = np.random.default_rng(0)
    x, d = rng.normal(size=(n, 4)), rng.normal(size=(n + 1, 4))
    repeats = -(-(n + 16) // 4)
    x, d = np.tile(x, repeats), np.tile(d, repeats)
    with np.errstate(over="ignore"):
        low = remember_wide((x * of_x).astype(dtype), (d * of_d).astype(dtype), 32)
    product = (low.x.astype(np.longdouble) / of_x**0.5 / of_d**0.5) @ (
        low.d.astype(np.longdouble) / of_x**0.5 / of_d**0.5
    ).T
    tolerance = (1e-3 if dtype == np.float32 else 1e-6) * np.abs(x @ d.T).max()
    assert_allclose(product.astype(np.float64), x @ d.T, atol=tolerance)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_minibatch_that_is_not_finite_is_left_out(value):
    first, second, third = minibatches(3)
    second[0][3, 2] = value
    recent = remember([first, second, third])
    assert recent.steps.tolist() == [0] * 3 + [2] * 3
    expected = 0.81 * first[0] @ first[1].T + third[0] @ third[1].T
    assert_allclose(recent.x @ recent.d.T, expected, atol=1e-12)


@pytest.mark.parametrize("columns", [12, 600])
def test_where_a_decomposition_fails_to_converge_another_is_used(monkeypatch, columns):
    # LAPACK's gesdd fails for a few finite matrices; seen in a training of SNFS on digits.
    rng = np.random.default_rng(0)
    recent = RecentGradients(
        rng.normal(size=(700, columns)), rng.normal(size=(650, columns)), np.arange(columns)
    )
    expected = recent.of_rank(3, 0)

    def fail(matrix, **options):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", fail)
    found = recent.of_rank(3, 0)
    # Signs of singular vectors cancel in the product; the rest is rounding.
    assert_allclose(found.x @ found.d.T, expected.x @ expected.d.T, rtol=1e-9, atol=1e-9)

"""Recent gradients as thin factors."""

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

    def watched(matrix):
        inside.append(blas_threads())
        return svd(matrix)

    monkeypatch.setattr(np.linalg, "svd", watched)
    remember(minibatches(5), max_columns=8)
    assert inside
    assert all(1 in threads for threads in inside)
    assert blas_threads() == before


def decomposed_sizes(monkeypatch):
    """Record the sizes of all matrices that are decomposed."""
    sizes = []

    def watch(module, name):
        decompose = getattr(module, name)

        def watched(matrix, *args, **how):
            sizes.append(max(matrix.shape))
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

"""Concordance against its definition and scikit-survival."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from ratoon.errors import InvalidInputError
from ratoon.survival import concordance_index, concordance_pairs, uno_weights


def samples(seed, n=40, ties=True):
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 12, n).astype(float) if ties else rng.exponential(size=n)
    event = rng.random(n) < 0.6
    event[0], time[0] = True, 0.5
    risk = rng.integers(0, 6, n).astype(float) if ties else rng.normal(size=n)
    return event, time, risk


def by_definition(event, time, risk, weights):
    right = pairs = 0.0
    for i in np.flatnonzero(event):
        for j in range(len(time)):
            if time[j] > time[i] or (time[j] == time[i] and not event[j]):
                pairs += weights[i]
                right += weights[i] * (float(risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j]))
    return right / pairs


@given(seed=st.integers(0, 10**6), ties=st.booleans(), weighted=st.booleans())
def test_all_pairs_are_counted(seed, ties, weighted):
    event, time, risk = samples(seed, ties=ties)
    weights = np.random.default_rng(seed).random(40) + 0.1 if weighted else np.ones(40)
    found = concordance_index(event, time, risk, weights if weighted else None)
    assert_allclose(found, by_definition(event, time, risk, weights))


@given(seed=st.integers(0, 10**6), ties=st.booleans())
def test_pairs_count_for_both_of_their_samples(seed, ties):
    event, time, risk = samples(seed, n=20, ties=ties)
    right, pairs = np.zeros(20), np.zeros(20)
    for i in np.flatnonzero(event):
        for j in range(20):
            if time[j] > time[i] or (time[j] == time[i] and not event[j]):
                value = float(risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j])
                right[[i, j]] += value
                pairs[[i, j]] += 1
    concordant, comparable = concordance_pairs(event, time, risk)
    assert_allclose(concordant, right)
    assert_allclose(comparable, pairs)


def test_it_agrees_with_scikit_survival():
    metrics = pytest.importorskip("sksurv.metrics", reason="needs scikit-survival")
    event, time, risk = samples(1)
    assert_allclose(
        concordance_index(event, time, risk),
        metrics.concordance_index_censored(event, time, risk)[0],
    )
    kind = [("event", bool), ("time", float)]
    train_event, train_time, _ = samples(2, n=100)
    train_time[-1], train_event[-1] = 20.0, False
    y, train = (
        np.array(list(zip(*parts, strict=True)), dtype=kind)
        for parts in ((event, time), (train_event, train_time))
    )
    weights = uno_weights(event, time, train_event, train_time)
    assert_allclose(
        concordance_index(event, time, risk, weights),
        metrics.concordance_index_ipcw(train, y, risk)[0],
    )


def test_without_pairs_there_is_no_index():
    with pytest.raises(InvalidInputError, match="no two samples can be compared"):
        concordance_index(np.array([False, True]), np.array([1.0, 2.0]), np.array([1.0, 2.0]))

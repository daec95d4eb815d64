import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratoon import SparseMLPClassifier
from ratoon.errors import InvalidInputError
from ratoon.estimators.data import Labelled, hold_out
from ratoon.samples.in_memory import wrap


@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=60),
    st.floats(0.01, 0.99),
    st.integers(0, 1000),
)
def test_the_split_is_stratified_and_never_takes_the_only_sample_of_a_class(codes, fraction, seed):
    codes = np.array(codes)
    held = hold_out(codes.size, fraction, np.random.default_rng(seed), codes)
    assert np.array_equal(np.unique(held), held)
    assert held.size <= max(1, round(fraction * codes.size))
    counts = np.bincount(codes)
    taken = np.bincount(codes[held], minlength=counts.size)
    assert (taken[counts == 1] == 0).all()
    several = counts > 1
    share = held.size / max(counts[several].sum(), 1)
    assert (np.abs(taken[several] - share * counts[several]) <= 1.0).all()


@given(st.integers(2, 50), st.floats(0.01, 0.99))
def test_at_least_one_row_is_held_out_but_not_all(n_samples, fraction):
    held = hold_out(n_samples, fraction, np.random.default_rng(0))
    assert 1 <= held.size < n_samples


def test_one_sample_cannot_be_split():
    with pytest.raises(InvalidInputError, match="there is only 1 sample"):
        hold_out(1, 0.5, np.random.default_rng(0))


def test_rows_held_out_have_no_weight():
    labelled = Labelled(wrap(np.zeros((3, 1))), np.zeros(3), np.array([1.0, 2.0, 3.0]))
    assert labelled.weights_without(np.array([1])).tolist() == [1.0, 0.0, 3.0]
    assert labelled.weights_without(None) is labelled.weights
    assert labelled.take(np.array([2])).weights.tolist() == [3.0]
    plain = Labelled(wrap(np.zeros((3, 1))), np.zeros(3))
    assert plain.weights_without(np.array([0])).tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("step", [-1, 2, 3])
def test_one_feature_may_have_any_stride(step):
    values = np.arange(60.0)
    X, y = values[::step][:20, None], np.arange(20) % 2
    model = SparseMLPClassifier((3,), max_iter=1, random_state=0)
    assert np.array_equal(model.fit(X, y).predict(X), model.fit(X.copy(), y).predict(X.copy()))

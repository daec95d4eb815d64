"""A model knows the samples it was trained on, also after it was saved."""

import numpy as np
import pytest
import scipy.sparse

from ratoon import SparseMLPClassifier, SparseMLPRegressor, load
from ratoon.errors import FormatError
from ratoon.estimators.state import FINGERPRINTS, from_state, to_state

X = np.random.default_rng(0).normal(size=(60, 5))
Y = (X[:, 0] > 0).astype(int)


def a_model(**given):
    return SparseMLPClassifier((8,), max_iter=2, random_state=0, **given)


def test_training_samples_are_known_and_others_are_not():
    seen = a_model().fit(X[:38], Y[:38]).was_trained_on(X)
    assert seen.tolist() == [True] * 38 + [False] * 22


def test_closed_form_and_regression_know_theirs():
    wide = np.random.default_rng(1).normal(size=(30, 200))
    model = SparseMLPRegressor(random_state=0).fit(wide[:20], wide[:20, 0])
    assert model.solver_ == "closed form"
    assert model.was_trained_on(wide).sum() == 20


def test_they_survive_the_file_and_the_way_the_samples_are_stored(tmp_path):
    a_model().fit(X[:38], Y[:38]).save(tmp_path / "m.ratoon")
    again = load(tmp_path / "m.ratoon")
    assert again.was_trained_on(X.astype(np.float32)).sum() == 38
    assert again.was_trained_on(X[50:]).sum() == 0


def test_a_file_without_them_says_that_nothing_is_known(tmp_path):
    a_model().fit(X, Y).save(tmp_path / "m.ratoon", fingerprints=False)
    assert load(tmp_path / "m.ratoon").was_trained_on(X) is None
    with_them, without = tmp_path / "n.ratoon", tmp_path / "m.ratoon"
    a_model().fit(X, Y).save(with_them)
    assert 8 * 60 <= with_them.stat().st_size - without.stat().st_size < 8 * 60 + 400


def test_training_further_adds_rows(tmp_path):
    model = a_model()
    model.partial_fit(X[:20], Y[:20]).partial_fit(X[20:40], Y[20:40])
    assert model.was_trained_on(X).sum() == 40
    model.save(tmp_path / "m.ratoon")
    model = load(tmp_path / "m.ratoon").partial_fit(X[40:50], Y[40:50])
    assert model.was_trained_on(X).sum() == 50
    assert model.fit(X[:10], Y[:10]).was_trained_on(X).sum() == 10


def test_a_model_with_unknown_rows_stays_so_when_trained_further(tmp_path):
    a_model().fit(X[:20], Y[:20]).save(tmp_path / "m.ratoon", fingerprints=False)
    model = load(tmp_path / "m.ratoon").partial_fit(X[20:], Y[20:])
    assert model.was_trained_on(X) is None


def test_validation_samples_of_early_stopping_count_as_used():
    model = a_model(early_stopping=True)
    assert model.fit(X[:40], Y[:40]).was_trained_on(X).sum() == 40
    model.fit(X[:40], Y[:40], eval_set=(X[40:50], Y[40:50]))
    assert model.was_trained_on(X).sum() == 50
    model = a_model().fit(X[:40], Y[:40], eval_set=(X[40:50], Y[40:50]))
    assert model.was_trained_on(X).sum() == 40


def test_sparse_samples_are_known():
    sparse = scipy.sparse.csr_array(np.where(X > 0.5, X, 0.0))
    model = a_model().fit(sparse[:30], Y[:30])
    assert model.was_trained_on(sparse)[:30].all()


def test_too_many_values_have_none(monkeypatch):
    monkeypatch.setattr("ratoon.estimators.base.MOST_VALUES", 100)
    assert a_model().fit(X, Y).was_trained_on(X) is None


@pytest.mark.parametrize(
    "stored",
    [np.array([3, 1], dtype=np.uint64), np.array([1, 1], dtype=np.uint64), np.array([1.0, 2.0])],
)
def test_damaged_fingerprints_are_refused(stored):
    config, arrays, networks = to_state(a_model().fit(X, Y))
    arrays[FINGERPRINTS] = stored
    with pytest.raises(FormatError, match="row_fingerprints"):
        from_state(config, arrays, networks)

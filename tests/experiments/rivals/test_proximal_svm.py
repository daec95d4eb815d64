"""mrPSVM: blocks add up to the direct solution, and small classes are possible."""

import numpy as np
import pytest
from sklearn.feature_selection import f_classif
from sklearn.utils.estimator_checks import check_estimator

from ratoon.errors import InvalidParameterError
from ratoon.experiments.rivals import ProximalSVM, proximal_svm


def data_of(n_classes, n=45, n_features=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    x = rng.normal(size=(n, n_features)) * rng.uniform(0.1, 30, n_features) + 5
    x[:, :n_classes] += 2 * x.std(axis=0)[:n_classes] * np.eye(n_classes)[y]
    return x.astype(np.float32), y


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("n_blocks", range(1, 8))
def test_blocks_agree_with_a_direct_solution(n_classes, n_blocks):
    x, y = data_of(n_classes)
    model = ProximalSVM(k=12, nu=0.3, n_blocks=n_blocks).fit(x, y)

    exact = x.astype(np.float64)
    best = np.argsort(-f_classif(exact, y)[0])[:12]
    z = (exact - exact.mean(axis=0))[:, best] / exact.std(axis=0)[best]
    e = np.column_stack([z, np.ones(len(z))])
    labels = np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
    # Minimises nu |e v - labels|^2 + |v|^2: least squares with rows of the unit matrix below.
    v = np.linalg.lstsq(
        np.vstack([e, np.eye(13) / np.sqrt(0.3)]),
        np.vstack([labels, np.zeros((13, n_classes))]),
        rcond=None,
    )[0]
    v = v[:, 1:] if n_classes == 2 else v

    assert model.features_.tolist() == best.tolist()
    np.testing.assert_allclose(model.coef_, v[:-1].T, atol=1e-11)
    np.testing.assert_allclose(model.intercept_, v[-1], atol=1e-11)
    scores = e @ v if n_classes > 2 else (e @ v)[:, 0]
    np.testing.assert_allclose(model.decision_function(x), scores, atol=1e-11)
    predicted = scores.argmax(axis=1) if n_classes > 2 else (scores > 0).astype(int)
    assert model.predict(x).tolist() == predicted.tolist()


def test_the_number_of_features_is_chosen_on_the_training_rows():
    rng = np.random.default_rng(1)
    y = np.arange(80) % 2
    x = rng.normal(size=(80, 300))
    x[:, 5] += 4 * y
    assert ProximalSVM(k=(1, 250)).fit(x, y).k_ == 1
    spread = rng.normal(size=(80, 300))
    spread[:, :200] += 0.8 * y[:, None]
    assert ProximalSVM(k=(1, 250)).fit(spread, y).k_ == 250
    assert ProximalSVM(k=(5, 1000)).fit(x, y).k_ in (5, 300), "k is at most the number of features"


def test_each_fold_selects_features_on_its_own_training_rows(monkeypatch):
    seen = []

    def selected(blocks, rows, k):
        seen.append(set(rows.tolist()))
        return real(blocks, rows, k)

    real = proximal_svm._selected
    monkeypatch.setattr(proximal_svm, "_selected", selected)
    ProximalSVM(k=(5, 10), n_folds=4).fit(*data_of(2, n=40))
    everything = set(range(40))
    left_out = [everything - rows for rows in seen]
    assert [len(rows) for rows in left_out] == [10, 10, 10, 10, 0]
    assert set().union(*left_out) == everything


def test_a_class_with_one_sample_can_be_fitted_and_predicted():
    x, y = data_of(2)
    y[7] = 2
    x[7] += 200.0
    model = ProximalSVM(k=(5, 30)).fit(x, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict(x)[7] == 2


def test_one_sample_per_class_and_constant_features_give_finite_weights():
    x = np.full((3, 4), 0.1)
    x[:, 1] = [1.0, 2.0, 4.0]
    model = ProximalSVM(k=4).fit(x, np.arange(3))
    assert model.features_[0] == 1
    assert np.isfinite(model.coef_).all()
    assert np.all(model.coef_[:, 1:] == 0)


@pytest.mark.parametrize(
    "options", [{"k": 0}, {"k": ()}, {"k": 20_000}, {"nu": 0}, {"n_blocks": 0}, {"n_folds": 1}]
)
def test_impossible_settings_are_refused(options):
    with pytest.raises(InvalidParameterError, match=next(iter(options))):
        ProximalSVM(**options).fit(*data_of(2))


def test_scikit_learn_accepts_it():
    check_estimator(ProximalSVM(k=(2, 5), n_folds=2), on_skip=None)

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ratoon import SparseMLPRegressor
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.optimizers import SGD


def small(**parameters):
    return SparseMLPRegressor((20,), **{"max_iter": 60, "random_state": 0, **parameters})


def test_one_step_by_hand():
    #  y = 3, 5 has mean 4 and spread 1: standardised targets t = -1, 1.  Weights 0, output 0.
    #      gradient of w:     mean of (0 - t) x = (1 * 0 + -1 * 1) / 2 = -1/2
    #      gradient of bias:  mean of (0 - t) = 0
    #  One step of learning rate 1: w = 1/2, so y(1) = 4 + 1 * 1/2.
    model = SparseMLPRegressor(
        (),
        density=1.0,
        init="zero",
        scale=None,
        solver=SGD(momentum=0.0),
        learning_rate_init=1.0,
        learning_rate="constant",
        max_iter=1,
    )
    model.fit([[0.0], [1.0]], [3.0, 5.0])
    assert_allclose(model.coefs_[0].toarray(), [[0.5]])
    assert_allclose(model.predict([[0.0], [1.0], [2.0]]), [4.0, 4.5, 5.0])
    assert_allclose(model.loss_, 0.5)


def test_targets_of_any_size_are_learnt_alike(two_classes):
    X, _ = two_classes
    y = X[:, 0] + 0.5 * np.abs(X[:, 1])
    plain = small().fit(X, y).predict(X)
    assert_allclose(small().fit(X, 1e6 * y + 3e7).predict(X), 1e6 * plain + 3e7, rtol=1e-6)


def test_several_targets(two_classes):
    X, _ = two_classes
    model = small(max_iter=200).fit(X, X[:, :3], eval_set=(X, X[:, :3]))
    assert model.predict(X).shape == (90, 3)
    assert model.score(X, X[:, :3]) > 0.9
    assert_allclose(model.validation_scores_[-1], model.score(X, X[:, :3]))
    assert small().fit(X, X[:, :1]).predict(X).shape == (90, 1)
    assert small().fit(X, X[:, 0]).predict(X).shape == (90,)


def test_constant_targets_are_predicted_exactly(two_classes):
    X, _ = two_classes
    model = small(early_stopping=True).fit(X, np.full(90, 7.0))
    assert_allclose(model.predict(X), 7.0)


@pytest.mark.filterwarnings(
    "ignore::ratoon.samples.statistics.ConstantFeatureWarning"
)  # 1 sample has no other
def test_one_sample_is_enough():
    assert_allclose(small().fit([[1.0, 2.0]], [3.0]).predict([[1.0, 2.0]]), [3.0])


def test_a_validation_set_of_weighted_samples_is_scored_with_its_weights(two_classes):
    X, _ = two_classes
    y, weights = X[:, 0], np.linspace(0, 1, 90)
    model = small().fit(X, y, eval_set=(X, y, weights))
    assert_allclose(model.validation_scores_[-1], model.score(X, y, sample_weight=weights))


def test_bad_targets_are_refused(two_classes):
    X, _ = two_classes
    with pytest.raises(ValueError, match="Input y contains NaN"):
        small().fit(X, np.where(X[:, 0] > 0, np.nan, 1.0))
    with pytest.raises(ValueError, match="Input y contains infinity"):
        small().fit(X, np.where(X[:, 0] > 0, np.inf, 1.0))
    model = small().fit(X, X[:, 0])
    with pytest.raises(InvalidInputError, match="y has 2 columns; at the first call there were 1"):
        model.partial_fit(X, X[:, :2])
    with pytest.raises(InvalidInputError, match="`eval_set` has 2 columns"):
        small().fit(X, X[:, 0], eval_set=(X, X[:, :2]))
    with pytest.raises(InvalidParameterError, match="`loss` must be"):
        small(loss="poisson").fit(X, X[:, 0])


def test_outliers_matter_less_to_the_huber_loss():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 5))
    clean = x[:, 0] - x[:, 1]
    y = np.where(rng.random(300) < 0.05, clean + 30.0, clean)
    how = {"hidden_layer_sizes": (20,), "solver": "adam", "max_iter": 60, "random_state": 0}
    errors = {
        loss: np.abs(SparseMLPRegressor(loss=loss, **how).fit(x, y).predict(x) - clean).mean()
        for loss in ("squared_error", "huber")
    }
    assert errors["huber"] < 0.7 * errors["squared_error"]


def test_the_closed_form_refuses_another_loss_than_the_squared_error(two_classes):
    x, y = two_classes
    with pytest.raises(InvalidParameterError, match="huber"):
        SparseMLPRegressor(loss="huber", solver="ridge").fit(x, y)

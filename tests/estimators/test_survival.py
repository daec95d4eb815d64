"""SparseMLPSurvival: Cox's gradient through the network, all forms of y, files, curves."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from ratoon import SparseMLPSurvival, load
from ratoon.datasets import Dataset
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.evolution import RigL
from ratoon.inference import Predictor
from ratoon.optimizers import SGD
from ratoon.survival import CoxLoss, concordance_index
from ratoon.training import TrainingData
from ratoon.training.cox import GIVEN_GRADIENT

KIND = [("event", bool), ("time", float)]
QUICK = {"max_iter": 5, "random_state": 0, "epsilon": 5, "hidden_layer_sizes": (12,)}


def samples(n=120, p=8, seed=0, distinct=None):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    when = rng.exponential(np.exp(-1.5 * x[:, 0] - x[:, 1]))
    end = rng.exponential(3.0, n)
    y = np.empty(n, dtype=KIND)
    y["event"], y["time"] = when <= end, np.minimum(when, end)
    if distinct:
        y["time"] = np.ceil(np.clip(y["time"], 0, 3) * distinct / 3)
    return x, y


WAYS = {
    "closed form": ({"random_state": 0}, samples(60, 150)),
    "Adam": ({**QUICK, "max_iter": 60}, samples()),
    "SGD": ({**QUICK, "solver": "sgd", "learning_rate_init": 0.05, "max_iter": 30}, samples()),
}


@pytest.fixture(params=WAYS)
def fitted(request):
    parameters, (x, y) = WAYS[request.param]
    return SparseMLPSurvival(**parameters).fit(x, y), x, y


def test_risks_order_samples(fitted):
    model, x, y = fitted
    assert model.score(x, y) > 0.75
    assert model.score(x, y) == concordance_index(y["event"], y["time"], model.predict(x))


def test_new_samples_are_ordered():
    x, y = samples(400)
    train, test = slice(0, 200), slice(200, None)
    assert SparseMLPSurvival(random_state=0).fit(x[train], y[train]).score(x[test], y[test]) > 0.75
    x, y = samples(400, 150)
    wide = SparseMLPSurvival(random_state=0).fit(x[train], y[train])
    assert wide.solver_ == "closed form"
    assert wide.score(x[test], y[test]) > 0.65


def test_survival_functions_decrease_from_one_and_order_as_risks(fitted):
    model, x, y = fitted
    functions, risks = model.predict_survival_function(x[:9]), model.predict(x[:9])
    for function, risk in zip(functions, risks, strict=True):
        assert function(0.0) == 1.0 or model.event_times_[0] == 0
        assert (np.diff(function.y) <= 0).all()
        hazard = np.exp(risk) * model.cumulative_baseline_hazard_
        assert_allclose(function.y, np.exp(-hazard), atol=1e-12)
    middle = np.median(y["time"])
    values = [function(middle) for function in functions]
    assert_array_equal(np.argsort(values), np.argsort(-risks))
    array = model.predict_survival_function(x[:9], return_array=True)
    assert_array_equal(array, [function.y for function in functions])
    hazards = model.predict_cumulative_hazard_function(x[:9])
    assert_allclose(np.exp(-hazards[0].y), functions[0].y)


def test_survival_is_calibrated_on_new_samples():
    x, y = samples(2000, 3)
    model = SparseMLPSurvival(random_state=0).fit(x[:1000], y[:1000])
    # All times beyond 2, whether observed or not; the true curve is estimated by Kaplan-Meier.
    from ratoon.survival import kaplan_meier

    predicted = np.mean([f(1.0) for f in model.predict_survival_function(x[1000:])])
    observed = kaplan_meier(y["event"][1000:], y["time"][1000:]).curve(1.0)
    # Twice the standard error of a proportion of 1,000 samples, and as much for the model.
    assert predicted == pytest.approx(observed, abs=0.06)


def test_a_file_keeps_everything(fitted, tmp_path):
    model, x, y = fitted
    model.save(tmp_path / "a.ratoon")
    again = load(tmp_path / "a.ratoon")
    assert_array_equal(again.predict(x), model.predict(x))
    assert_array_equal(
        again.predict_survival_function(x, return_array=True),
        model.predict_survival_function(x, return_array=True),
    )
    assert again.score(x, y) == model.score(x, y)
    found = Predictor.load(tmp_path / "a.ratoon").predict(x.astype(np.float32))
    assert_allclose(found[:, 0], model.predict(x), atol=1e-3)


def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads():
    x, y = samples()
    found = [SparseMLPSurvival(n_jobs=n, dropout=0.3, **QUICK).fit(x, y).predict(x) for n in (1, 2)]
    assert_array_equal(*found)


def forms(y):
    return {
        "structured": y,
        "fields in the other order": np.array(
            list(zip(y["time"], y["event"], strict=True)), dtype=[("days", float), ("dead", bool)]
        ),
        "table": pd.DataFrame({"months": y["time"], "status": y["event"].astype(int)}),
        "table of truth values": pd.DataFrame({"d": y["event"], "t": y["time"]}),
        "columns": np.column_stack([y["time"], y["event"]]),
    }


@pytest.mark.parametrize("form", forms(samples()[1]))
def test_every_form_of_y_is_understood(form):
    x, y = samples()
    expected = SparseMLPSurvival(**QUICK).fit(x, y).predict(x)
    assert_array_equal(SparseMLPSurvival(**QUICK).fit(x, forms(y)[form]).predict(x), expected)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda y: y["time"], "shape"),
        (lambda y: np.zeros((120, 3)), "shape"),
        (lambda y: np.zeros((120, 2)), "not clear which column"),
        (lambda y: np.column_stack([-y["time"], y["event"]]), "not negative"),
        (lambda y: np.column_stack([y["time"] * np.nan, y["event"]]), "finite"),
        (lambda y: np.column_stack([y["time"], np.zeros(120)]), "no event"),
        (lambda y: y[:50], "inconsistent"),
        (lambda y: pd.DataFrame({"a": y["time"]}), "two are needed"),
    ],
)
def test_other_targets_are_refused(wrong, message):
    x, y = samples()
    with pytest.raises(InvalidInputError, match=message):
        SparseMLPSurvival(**QUICK).fit(x, wrong(y))


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("n", [20, 70])
def test_a_step_follows_the_gradient_of_the_partial_likelihood(ties, dropout, n):
    """One step of SGD without momentum is minus the rate times the numeric gradient."""
    x, y = samples(n, distinct=6)
    model = SparseMLPSurvival(
        (5,), ties=ties, solver=SGD(momentum=0.0), learning_rate_init=1e-3, batch_size=n,
        dropout=dropout, density=0.7, random_state=0, dtype="float64", max_iter=2,
        evolution="static", learning_rate="constant", shuffle=False, output_init="he",
    )  # fmt: skip
    model.partial_fit(x, y)
    before = [layer.weights.copy() for layer in model.network_.layers]
    seeds = {}

    from ratoon.rng import derive_seed

    def loss_at(weights):
        network = model.network_.copy()
        for layer, values in zip(network.layers, weights, strict=True):
            layer.stored[:] = values
        scores = network.native(GIVEN_GRADIENT, 1).training_outputs(
            TrainingData.of(x, np.zeros((n, 1)), np.float64).samples,
            np.arange(n),
            scaling=network.scaling,
            dropout_seed=seeds["dropout"],
            step=1,
        )
        loss = CoxLoss(y["event"], y["time"], ties=ties)
        return loss(scores[:, 0])[0] / loss.n_events

    seeds["dropout"] = derive_seed(model._state.cycle_seed, "dropout")
    expected = []
    for number, values in enumerate(before):
        gradient = np.empty(values.size)
        for slot in range(values.size):
            ends = []
            for sign in (1, -1):
                moved = [one.copy() for one in before]
                moved[number][slot] += sign * 1e-6
                ends.append(loss_at(moved))
            gradient[slot] = (ends[0] - ends[1]) / 2e-6
        expected.append(gradient)
    model.partial_fit(x, y)
    for layer, values, gradient in zip(model.network_.layers, before, expected, strict=True):
        assert_allclose((values - layer.weights) / 1e-3, gradient, atol=1e-6)


def test_minibatches_have_their_own_risk_sets_and_can_lack_events():
    x, y = samples(40)
    y["event"][10:] = False
    model = SparseMLPSurvival(batch_size=4, shuffle=False, **QUICK).fit(x, y)
    assert np.isfinite(model.loss_)


def test_early_stopping_watches_the_concordance():
    x, y = samples(200)
    model = SparseMLPSurvival(early_stopping=True, max_iter=40, random_state=0).fit(x, y)
    assert 0.6 < max(model.validation_scores_) <= 1.0
    assert model.history_[-1].validation_loss > 0
    with_set = SparseMLPSurvival(**QUICK).fit(x[:150], y[:150], eval_set=(x[150:], y[150:]))
    assert with_set.validation_scores_[-1] == pytest.approx(with_set.score(x[150:], y[150:]))


@pytest.mark.parametrize("strategy", ["set", RigL(every=10), "snfs", "static"], ids=str)
def test_strategies_rewire_survival_networks(strategy):
    x, y = samples(p=40)
    model = SparseMLPSurvival(
        (20,), epsilon=3, max_iter=60, random_state=0, evolution=strategy
    ).fit(x, y)
    assert (sum(model.history_.column("rewired")) > 0) == (strategy != "static")
    assert model.score(x, y) > 0.6


@pytest.mark.parametrize("start", ["f", "l1"])
def test_first_connections_can_follow_the_residuals(start):
    x, y = samples(200, 40)
    model = SparseMLPSurvival((20,), epsilon=2, start=start, max_iter=1, random_state=0).fit(x, y)
    degrees = np.bincount(model.network_.layers[0].topology.rows, minlength=40)
    assert degrees[:2].mean() > 2 * degrees[2:].mean()


def test_weights_of_zero_leave_samples_out():
    x, y = samples(80, 150)
    weights = np.ones(80)
    weights[60:] = 0
    y["time"][60:] = 1000.0
    model = SparseMLPSurvival(random_state=0).fit(x, y, sample_weight=weights)
    assert np.isfinite(model.predict(x)).all()
    assert model.cross_validated_outputs_.shape == (60, 1)


def test_it_is_a_scikit_learn_estimator():
    x, y = samples(200)
    scores = cross_val_score(SparseMLPSurvival(**QUICK), x, y, cv=3)
    assert scores.min() > 0.6
    assert clone(SparseMLPSurvival(ties="breslow")).ties == "breslow"
    with pytest.raises(InvalidParameterError, match="efron"):
        SparseMLPSurvival(ties="exact").fit(x, y)
    with pytest.raises(InvalidParameterError, match="would have no effect"):
        SparseMLPSurvival(solver="ridge", dropout=0.5).fit(x, y)


def test_a_data_set_brings_names_groups_and_preparation(tmp_path):
    x, y = samples(60, 150)
    data = Dataset(
        2**x * 200,
        y,
        feature_names=tuple(f"G{i}" for i in range(150)),
        groups=tuple(f"b{i % 3}" for i in range(60)),
        group_column="batch",
    )
    assert "60 samples" in repr(data)
    assert "events" in data.describe()
    model = SparseMLPSurvival(prepare="log2,center_groups", random_state=0).fit(data)
    model.save(tmp_path / "a.ratoon")
    assert_array_equal(load(tmp_path / "a.ratoon").predict(data), model.predict(data))


def test_huge_risks_do_not_overflow():
    x, y = samples()
    model = SparseMLPSurvival(**QUICK).fit(x, y)
    with np.errstate(over="raise"):
        values = model.predict_survival_function(1e6 * x, return_array=True)
    assert ((values >= 0) & (values <= 1)).all()

"""Kaplan-Meier curves by risk, and their part of the page."""

import matplotlib as mpl
import numpy as np
import pytest

from ratoon import SparseMLPClassifier, SparseMLPSurvival
from ratoon.datasets import Dataset
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.experiments import cross_validate
from ratoon.report import KaplanMeierDisplay, render_report

mpl.use("Agg")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 6))
    y = np.empty(90, dtype=[("event", bool), ("time", float)])
    y["time"], y["event"] = rng.exponential(np.exp(-2 * x[:, 0])), rng.random(90) < 0.7
    return Dataset(x, y)


@pytest.fixture(scope="module")
def model(data):
    return SparseMLPSurvival((8,), epsilon=4, max_iter=30, random_state=0).fit(data)


def test_groups_are_ordered_by_risk(data, model):
    display = KaplanMeierDisplay.from_estimator(model, data)
    assert list(display.curves) == ["low risk", "medium risk", "high risk"]
    assert [curve.n_samples for curve in display.curves.values()] == [30, 30, 30]
    medians = [curve.median or np.inf for curve in display.curves.values()]
    assert medians == sorted(medians, reverse=True)
    assert display.p_value < 0.001
    assert len(display.plot().ax_.lines) == 3


def test_cuts_of_training_samples_can_be_given(data):
    display = KaplanMeierDisplay.from_risks(
        data.y["event"], data.y["time"], data.X[:, 0], n_groups=2, cuts=[1.0]
    )
    assert display.curves["high risk"].n_samples == int((data.X[:, 0] > 1.0).sum())


def test_impossible_groups_are_refused(data):
    with pytest.raises(InvalidParameterError, match="2 or 3"):
        KaplanMeierDisplay.from_risks(data.y["event"], data.y["time"], data.X[:, 0], n_groups=9)
    with pytest.raises(InvalidInputError, match="no sample has the event"):
        KaplanMeierDisplay.from_groups(np.zeros(90, bool), data.y["time"], np.arange(90) % 2)


def test_the_page_shows_the_curves_and_the_concordance(data, model):
    page = render_report(model, data)
    assert "Survival by predicted risk" in page
    assert f"{model.score(data.X, data.y):.3f}" in page
    assert "these samples were used for training" in page.lower()
    assert "R squared" not in page
    assert page.count("low risk") > 1
    for word in ("samples at risk at time", "90", "Highest risk first."):
        assert word in page


def test_the_page_of_a_cross_validation_has_its_risks(data, model):
    estimate = cross_validate(model, data, cv="3x2")
    page = render_report(model, data, estimate=estimate)
    assert f"{estimate.scores.concordance.value:.3f}" in page
    assert "trained without the sample" in page
    assert "Risks are means over the repeats." in page


def test_without_events_there_are_no_curves(data, model):
    some = data.take(np.flatnonzero(~data.y["event"]))
    page = render_report(model, some, held_out=True)
    assert "Survival by predicted risk" not in page
    assert "No two samples can be compared" in page


def test_other_models_have_no_such_section(data):
    labelled = Dataset(data.X, (data.X[:, 0] > 0).astype(int), class_names=("a", "b"))
    model = SparseMLPClassifier((4,), epsilon=2, max_iter=2, random_state=0).fit(labelled)
    assert "Survival by predicted risk" not in render_report(model, labelled)

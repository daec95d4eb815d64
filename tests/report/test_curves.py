"""Learning curves: means, bands, axes."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from ratoon import SparseMLPClassifier
from ratoon.errors import InvalidInputError
from ratoon.report import LearningCurveDisplay

RUNS = {"SET": [[0.5, 0.8, 0.9], [0.7, 0.8]], "FixProb": [[0.4, 0.5]]}


def test_runs_are_cut_to_the_shortest():
    display = LearningCurveDisplay(RUNS)
    assert display.runs("SET").shape == (2, 2)
    assert_allclose(display.mean("SET"), [0.6, 0.8])


def test_a_curve_has_a_band_where_there_are_several_runs():
    display = LearningCurveDisplay(RUNS, ylabel="test accuracy").plot()
    several, single = display.ax_.lines
    assert several.get_xdata().tolist() == [1, 2], "epochs are counted from 1"
    assert_allclose(several.get_ydata(), [0.6, 0.8])
    assert single.get_label() == "FixProb"
    [band] = display.ax_.collections
    low, high = band.get_paths()[0].get_extents().intervaly
    assert (low, high) == pytest.approx((0.5, 0.8)), "one standard deviation: 0.6 +- 0.1 and 0.8"
    assert display.ax_.get_ylabel() == "test accuracy"


@pytest.mark.parametrize("n_epochs", [1, 2, 5, 500])
def test_only_whole_epochs_are_marked(n_epochs):
    display = LearningCurveDisplay({"x": [np.linspace(0, 1, n_epochs)]}).plot()
    display.figure_.canvas.draw()
    assert all(float(tick).is_integer() for tick in display.ax_.get_xticks())


def test_more_methods_than_colours_are_drawn():
    display = LearningCurveDisplay({f"method {k}": [[0.1, 0.2]] for k in range(12)})
    assert len(display.plot(Figure().subplots()).ax_.lines) == 12


def test_an_estimator_shows_its_validation_score_or_else_its_loss():
    X = np.arange(40.0).reshape(-1, 1)
    y = (X[:, 0] > 20).astype(int)
    plain = SparseMLPClassifier((10,), density=0.5, max_iter=3, random_state=0).fit(X, y)
    display = LearningCurveDisplay.from_estimator(plain)
    assert display.ylabel == "training loss"
    assert display.mean("SparseMLPClassifier").tolist() == plain.loss_curve_
    scored = SparseMLPClassifier((10,), density=0.5, max_iter=3, random_state=0)
    scored.fit(X, y, eval_set=(X, y))
    display = LearningCurveDisplay.from_estimator(scored, name="mine")
    assert display.ylabel == "validation score"
    assert display.mean("mine").tolist() == scored.validation_scores_


@pytest.mark.parametrize("runs", [[], [[]], [[0.5], []]])
def test_an_empty_curve_is_refused(runs):
    with pytest.raises(InvalidInputError, match="at least one run"):
        LearningCurveDisplay({"SET": runs}).plot(Figure().subplots())

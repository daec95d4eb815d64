"""Strategies side by side, as a picture."""

import pytest
from matplotlib import pyplot

from ratoon.errors import InvalidInputError
from ratoon.report import StrategyDisplay


@pytest.fixture
def display():
    gains = {"static": [0.0, 0.0], "set": [-0.02, -0.04], "rigl": [0.01, 0.03]}
    yield StrategyDisplay(gains, {"set": 0.001, "rigl": 0.02}, {"set": 0.5}).plot()
    pyplot.close("all")


def test_the_best_comes_first_and_all_panels_share_its_line(display):
    assert display.names == ["rigl", "static", "set"]
    first = display.axes_[0]
    assert [label.get_text() for label in first.get_yticklabels()] == display.names
    assert first.yaxis_inverted()


def test_figures_stand_where_they_belong(display):
    marks = [(line.get_xdata()[0], line.get_ydata()[0]) for line in display.axes_[1].lines]
    assert sorted(marks) == [(1.0, 2), (20.0, 0)]
    assert [line.get_xdata()[0] for line in display.axes_[2].lines] == [50.0]


def test_empty_results_are_refused():
    with pytest.raises(InvalidInputError, match="no strategy"):
        StrategyDisplay({}, {}, {}).plot()

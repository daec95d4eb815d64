"""Strategies by name."""

import pytest

from ratoon.errors import InvalidParameterError
from ratoon.evolution import SET, STRATEGIES, RigL, make_strategy


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_name_gives_the_strategy_with_its_defaults(name):
    assert make_strategy(name) == STRATEGIES[name]()


def test_a_strategy_is_taken_as_it_is():
    strategy = RigL(zeta=0.1)
    assert make_strategy(strategy) is strategy


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(InvalidParameterError, match="rigl"):
        make_strategy("rigel")


def test_the_paper_s_defaults_stay():
    assert (SET().zeta, SET().every, SET().until) == (0.3, 1, 1.0)
    assert (RigL().zeta, RigL().every, RigL().until, RigL().anneal) == (0.3, 100, 0.75, "cosine")

"""Strategies by name."""

import pytest

from ratoon.errors import InvalidParameterError
from ratoon.evolution import SET, STRATEGIES, RigL, make_strategy


@pytest.mark.parametrize(
    "name", ["set", "annealed_set", "rigl", "gse", "snfs", "dsr", "guided_set"]
)
def test_a_named_strategy_gets_the_parameters_that_were_given(name):
    assert make_strategy(name, zeta=0.123).zeta == 0.123


@pytest.mark.parametrize("strategy", ["static", "deep_r", "nest", SET()])
def test_a_parameter_that_a_strategy_does_not_have_is_refused(strategy):
    with pytest.raises(InvalidParameterError, match=r"`zeta=0\.1` was given, but"):
        make_strategy(strategy, zeta=0.1)


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

"""Strategies by name."""

import pickle
from dataclasses import fields

import pytest

from ratoon.errors import InvalidParameterError
from ratoon.evolution import (
    SET,
    SNFS,
    STRATEGIES,
    Clock,
    DeepR,
    GuidedSET,
    RigL,
    make_strategy,
)
from tests.evolution.cases import random_layer


@pytest.mark.parametrize(
    "name", ["set", "annealed_set", "rigl", "gse", "snfs", "cht", "chts", "dsr", "guided_set"]
)
def test_a_named_strategy_gets_the_parameters_that_were_given(name):
    assert make_strategy(name, zeta=0.123).zeta == 0.123


@pytest.mark.parametrize("strategy", ["static", "deep_r", "nest", SET()])
def test_a_parameter_that_a_strategy_does_not_have_is_refused(strategy):
    with pytest.raises(InvalidParameterError, match=r"`zeta=0\.1` was given, but"):
        make_strategy(strategy, zeta=0.1)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_name_returns_the_strategy_with_its_defaults(name):
    assert make_strategy(name) == STRATEGIES[name]()


def test_a_strategy_object_is_returned_unchanged():
    strategy = RigL(zeta=0.1)
    assert make_strategy(strategy) is strategy


def test_an_unknown_name_is_refused_with_the_list_of_known_names():
    with pytest.raises(InvalidParameterError, match="rigl"):
        make_strategy("rigel")


def test_the_defaults_of_the_papers_do_not_change():
    assert (SET().zeta, SET().every, SET().until) == (0.3, 1, 1.0)
    assert (RigL().zeta, RigL().every, RigL().until, RigL().anneal) == (0.3, 100, 0.75, "cosine")


# The order of fields is part of the interface: for positional arguments and in model files.
FIELDS = {
    "set": "zeta grown every until anneal removal",
    "guided_set": "strength power zeta grown every until anneal",
    "static": "",
    "rigl": "zeta every until anneal removal",
    "srigl": "zeta gamma every until anneal",
    "gse": "zeta sample every until anneal",
    "mest": "zeta gradient_weight growth memory every until anneal",
    "granet": "final zeta scope prune_until every until anneal",
    "snfs": "zeta momentum max_columns every until anneal",
    "cht": "zeta score overlap every until anneal",
    "chts": "zeta score sharpness every until anneal",
    "chtss": "zeta score sharpness every until anneal final decay_until",
    "dsr": "zeta threshold tolerance skip_first skip_last every until",
    "deep_r": "alpha temperature every until",
    "nest": "peak final grow_until prune_until neuron_growth pairs birth_strength every",
    "wast": "zeta sensitivity_weight sensitivity every until anneal",
    "neurofs": "n_features zeta zeta_inputs momentum remove_until every until anneal",
    "neuron_pruning": "percentile warm_up prune_every base",
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_keep_their_order_and_can_be_pickled(name):
    strategy = make_strategy(name)
    assert [field.name for field in fields(strategy)] == FIELDS[name].split()
    assert pickle.loads(pickle.dumps(strategy)) == strategy


def test_the_schedule_of_a_strategy_is_built_from_its_fields():
    schedule = RigL(every=7, until=0.5, anneal="linear").schedule
    assert (schedule.every, schedule.unit, schedule.until) == (7, "step", 0.5)
    assert schedule.anneal == "linear"
    assert (DeepR().schedule.unit, DeepR().schedule.anneal) == ("step", "constant")
    assert GuidedSET().schedule.unit == "permille"


WRONG = {"every": 0, "until": 1.5, "anneal": "soon", "zeta": 1.0}
SCHEDULED = [(name, field) for name in FIELDS for field in WRONG if field in FIELDS[name].split()]


@pytest.mark.parametrize(("name", "field"), SCHEDULED)
def test_an_invalid_field_of_a_schedule_is_refused_by_name(name, field):
    with pytest.raises(InvalidParameterError, match=f"`{field}`"):
        STRATEGIES[name](**{field: WRONG[field]})


def test_the_number_of_replaced_connections_is_rounded_after_annealing():
    layer = random_layer(n_connections=150)
    half_way = Clock(step=50, steps_per_epoch=10, total_steps=100)
    assert SET(zeta=0.3).n_replaced(layer, half_way) == 45
    assert SNFS(zeta=0.3, anneal="linear").n_replaced(layer, half_way) == 22

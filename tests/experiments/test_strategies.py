"""Strategies are compared on equal terms."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidParameterError
from ratoon.evolution import SET, STRATEGIES, Static
from ratoon.experiments.strategies import (
    StrategySettings,
    compare_strategies,
    explored_fraction,
    known_strategies,
    run_strategy,
)
from ratoon.experiments.strategy_lines import StrategyComparison, StrategyRun
from ratoon.training.recorder import TopologyRecorder, compressed

SETTINGS = StrategySettings(hidden=(15,), n_epochs=4, batch_size=8)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    return (rng.normal(size=(60, 10)) + y[:, None]).astype(np.float32), y


def run(name, split, accuracy, *, explored=None, seconds=1.0):
    return StrategyRun(name, split, accuracy, seconds, 3, seconds / 10, 900, 11_000, 0, explored)


def test_all_strategies_but_the_guided_one_are_known():
    selecting = {"wast", "neurofs"}  # compared only if they are named
    assert set(known_strategies()) == {*STRATEGIES} - {"guided_set"} - selecting
    assert set(known_strategies(["wast", "neurofs"])) == selecting
    with pytest.raises(InvalidParameterError, match="there are set, annealed_set, static"):
        known_strategies(["evolve"])


def test_the_old_name_of_a_strategy_works_with_a_warning():
    with pytest.warns(DeprecationWarning, match="annealed_set"):
        found = known_strategies(["set_settling"])
    assert found == known_strategies(["annealed_set"])


def test_a_strategy_without_changes_is_bitwise_the_static_network(data):
    still = run_strategy("still", SET(zeta=0.0), *data, split=1, settings=SETTINGS)
    static = run_strategy("static", Static(), *data, split=1, settings=SETTINGS)
    assert still.accuracy == static.accuracy
    assert still.n_connections == static.n_connections
    assert (still.n_rewirings, static.n_rewirings) == (3, 0)


def test_recording_does_not_change_the_training(data):
    plain = run_strategy("set", SET(), *data, split=0, settings=SETTINGS)
    recorded = run_strategy("set", SET(), *data, split=0, settings=SETTINGS, record=True)
    assert plain.accuracy == recorded.accuracy
    assert plain.explored is None
    static = run_strategy("static", Static(), *data, split=0, settings=SETTINGS, record=True)
    n_positions = 10 * 15 + 15 * 3
    assert static.explored == pytest.approx(static.n_connections / n_positions)
    assert recorded.explored >= static.explored


def test_exploration_is_counted_over_all_layers():
    recorder = TopologyRecorder(
        shapes=[(2, 5), (5, 2)],
        start=[compressed(np.array([0, 1])), compressed(np.array([3]))],
    )
    assert explored_fraction(recorder) == pytest.approx(3 / 20)


def test_a_training_that_diverges_is_counted_and_not_averaged(data):
    x, y = data
    wild = StrategySettings(hidden=(15,), n_epochs=4, learning_rate=1e20)
    found = run_strategy("static", Static(), x, y, split=0, settings=wild)
    assert np.isnan(found.accuracy)
    [line] = StrategyComparison([found, run("static", 1, 0.5)]).lines()
    assert (line.n_diverged, line.accuracy) == (1, 0.5)


def test_gains_are_computed_per_split_without_diverged_runs():
    nan = float("nan")
    runs = [run("static", k, a) for k, a in enumerate([0.5, 0.6, nan, 0.8])]
    runs += [run("set", k, a) for k, a in enumerate([0.6, nan, 0.9, 0.9])]
    found = StrategyComparison(runs)
    assert found.gains("set") == pytest.approx([0.1, 0.1])
    static, rewired = found.lines()
    assert static.gain is None
    assert rewired.gain == pytest.approx(0.1)
    assert rewired.n_diverged == 1


def test_recorded_runs_are_not_timed_if_there_are_others():
    slow, quick = run("set", 0, 0.5, explored=0.4, seconds=9.0), run("set", 1, 0.5, seconds=2.0)
    [line] = StrategyComparison([slow, quick]).lines()
    assert (line.seconds, line.seconds_per_rewiring, line.explored) == (2.0, 0.2, 0.4)


def test_every_split_has_every_strategy_and_the_first_is_recorded(data):
    reported = []
    found = compare_strategies(
        *data,
        known_strategies(["static", "rigl"]),
        n_splits=2,
        settings=SETTINGS,
        tell=reported.append,
    )
    assert [(one.strategy, one.split) for one in found.runs] == [
        ("static", 0), ("rigl", 0), ("static", 1), ("rigl", 1),
    ]  # fmt: skip
    assert reported == list(found.runs)
    assert_array_equal([one.explored is None for one in found.runs], [False, False, True, True])

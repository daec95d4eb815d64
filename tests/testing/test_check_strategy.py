"""Every check of `check_strategy` can fail: strategies that break one promise each."""

import random
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

from ratoon.evolution import (
    SET,
    STRATEGIES,
    LayerwiseStrategy,
    Reweighted,
    RewiringSchedule,
    ScheduledFraction,
    StatefulStrategy,
)
from ratoon.evolution.grow import grow_uniformly
from ratoon.evolution.prune import strongest
from ratoon.kernels.absent import grow_at
from ratoon.testing import (
    check_strategy,
    checks,
    memory,
    parametrize_with_checks,
    promise_of,
    run_check,
)
from ratoon.topology import Rewiring
from tests.processes import IS_SANITIZED

CHILD = pytest.mark.skipif(
    sys.platform != "linux" or IS_SANITIZED, reason="limits address space the way Linux does"
)


@dataclass(frozen=True)
class Correct(ScheduledFraction, LayerwiseStrategy):
    """Replace the weakest connections at random."""

    zeta: float = 0.3

    def rewire_layer(self, layer, clock, seed):
        count = self.n_replaced(layer, clock)
        return grow_uniformly(layer, strongest(layer.weights, count), count, seed)


class Mutating(Correct):
    def rewire_layer(self, layer, clock, seed):
        layer.weights[:1] = 0
        return super().rewire_layer(layer, clock, seed)


class MutatingSignals(Correct):
    def rewire_layer(self, layer, clock, seed):
        layer.signals()[0][:] = 0
        return super().rewire_layer(layer, clock, seed)


class LosingOne(Correct):
    def rewire_layer(self, layer, clock, seed):
        count = self.n_replaced(layer, clock)
        kept = strongest(layer.weights, count)
        return grow_uniformly(layer, kept, max(count - 1, 0), seed)


class WrongTotal(LosingOne):
    keeps = "total"


class WrongBudget(LosingOne):
    keeps = "budget"

    def budget(self, start, clock):
        return [layer.topology.n_connections for layer in start]


class WrongBudgetOfNetwork(LosingOne):
    keeps = "budget"

    def budget(self, start, clock):
        return sum(layer.topology.n_connections for layer in start)


class Growing(Correct):
    keeps = "fewer"

    def rewire_layer(self, layer, clock, seed):
        every_slot = np.arange(layer.topology.n_connections)
        return grow_uniformly(layer, every_slot, 1, seed)


class UnknownPromise(Correct):
    keeps = "something"


class BudgetWithoutMethod(Correct):
    keeps = "budget"


class GlobalNumpy(Correct):
    def rewire_layer(self, layer, clock, seed):
        return super().rewire_layer(layer, clock, np.random.randint(1000))  # noqa: NPY002


class GlobalRandom(Correct):
    def rewire_layer(self, layer, clock, seed):
        return super().rewire_layer(layer, clock, random.randrange(1000))


class Unseeded(Correct):
    def rewire_layer(self, layer, clock, seed):
        return super().rewire_layer(layer, clock, int(np.random.default_rng().integers(1000)))


class ByThreads(Correct):
    def rewire_layer(self, layer, clock, seed):
        return super().rewire_layer(layer, clock, seed + layer.n_threads)


class Dense(Correct):
    def rewire_layer(self, layer, clock, seed):
        np.zeros(layer.topology.shape, dtype=bool)
        return super().rewire_layer(layer, clock, seed)


class Exploding(Correct):
    def rewire_layer(self, layer, clock, seed):
        if layer.topology.shape[0] == memory.WIDTH:
            raise ValueError("too wide")
        return super().rewire_layer(layer, clock, seed)


class WrongOrigin(Correct):
    def rewire_layer(self, layer, clock, seed):
        rewiring = super().rewire_layer(layer, clock, seed)
        origin = rewiring.origin.copy()
        kept = np.flatnonzero(origin >= 0)
        origin[kept] = origin[kept[::-1]]
        return replace(rewiring, origin=origin)


class OriginOutside(Correct):
    def rewire_layer(self, layer, clock, seed):
        rewiring = super().rewire_layer(layer, clock, seed)
        return replace(rewiring, origin=rewiring.origin + 10_000)


class OneRewiring(Correct):
    def rewire(self, layers, clock, seed):
        return super().rewire(layers, clock, seed)[:1]


class NotFinite(Correct):
    def rewire_layer(self, layer, clock, seed):
        rewiring = super().rewire_layer(layer, clock, seed)
        weights = rewiring.carry_weights(layer.weights)
        weights[:1] = np.nan
        return Reweighted(rewiring.topology, rewiring.origin, new_weights=weights)


class Doubled(Correct):
    def rewire_layer(self, layer, clock, seed):
        rewiring = super().rewire_layer(layer, clock, seed)
        weights = rewiring.carry_weights(layer.weights).astype(np.float64)
        return Reweighted(rewiring.topology, rewiring.origin, new_weights=weights)


class NothingToDo(Correct):
    def rewire_layer(self, layer, clock, seed):
        return Rewiring.unchanged(layer.topology)


class DeclaresFull(Correct):
    rewires_full_layers = True

    def rewire_layer(self, layer, clock, seed):
        if layer.is_full:
            return Rewiring.unchanged(layer.topology)
        return super().rewire_layer(layer, clock, seed)


class PrunesFull(Correct):
    keeps = "fewer"

    def rewire(self, layers, clock, seed):
        none = np.empty(0, dtype=np.int64)
        return [grow_at(layer.topology, strongest(layer.weights, 1), none) for layer in layers]


class IgnoresLimits(Correct):
    def rewire_layer(self, layer, clock, seed):
        return super().rewire_layer(replace(layer, allowed=None), clock, seed)


class StopsAtLimits(Correct):
    def rewire_layer(self, layer, clock, seed):
        if layer.allowed is not None:
            return Rewiring.unchanged(layer.topology)
        return super().rewire_layer(layer, clock, seed)


class PrunesByLimit(Correct):
    keeps = "fewer"

    def rewire_layer(self, layer, clock, seed):
        kept = strongest(layer.weights, 1 if layer.allowed is None else 2)
        return grow_at(layer.topology, kept, np.empty(0, dtype=np.int64))


class FailsOnSmall(Correct):
    def rewire_layer(self, layer, clock, seed):
        if layer.topology.shape == (1, 5):
            raise IndexError("list index out of range")
        return super().rewire_layer(layer, clock, seed)


class FailsOnEmpty(Correct):
    def rewire_layer(self, layer, clock, seed):
        layer.weights.max()
        return super().rewire_layer(layer, clock, seed)


class FewerWithoutSignals(Correct):
    def rewire_layer(self, layer, clock, seed):
        if not layer.signals()[0].any():
            kept = strongest(layer.weights, 1)
            return grow_at(layer.topology, kept, np.empty(0, dtype=np.int64))
        return super().rewire_layer(layer, clock, seed)


class NoSchedule(Correct):
    schedule = "daily"

    def __post_init__(self):
        pass


class OtherInPlace(SET):
    def rewire_in_place(self, layer, clock, seed, n_threads):
        return super().rewire_in_place(layer, clock, seed + 1, n_threads)


@dataclass
class NotFrozen(LayerwiseStrategy):
    schedule = RewiringSchedule()
    zeta: float = 0.3

    def rewire_layer(self, layer, clock, seed):
        return Correct().rewire_layer(layer, clock, seed)


@dataclass(frozen=True)
class Counting(StatefulStrategy):
    """Keeps a count in its state, and changes the seed with it."""

    schedule = RewiringSchedule()

    def start_state(self, layers, seed):
        return {"count": np.array([0])}

    def rewire_from(self, state, layers, clock, seed):
        count = int(state["count"][0])
        return Correct().rewire(layers, clock, seed + count), {"count": np.array([count + 1])}


class MutatingState(Counting):
    def rewire_from(self, state, layers, clock, seed):
        state["count"] += 1
        return Correct().rewire(layers, clock, seed), state


class AddingToState(Counting):
    def rewire_from(self, state, layers, clock, seed):
        state["more"] = np.array([1])
        return Correct().rewire(layers, clock, seed), state


class ObjectsInState(Counting):
    def start_state(self, layers, seed):
        return {"count": np.array([0]), "strategy": np.array([self], dtype=object)}


BROKEN = {
    checks.has_the_interface_of_a_strategy: [NoSchedule, UnknownPromise, BudgetWithoutMethod],
    checks.can_be_rebuilt_from_its_fields: [NotFrozen],
    checks.returns_consistent_rewirings: [
        WrongOrigin,
        OriginOutside,
        OneRewiring,
    ],
    checks.new_weights_are_finite_and_of_the_layers_type: [NotFinite, Doubled],
    checks.rewires_tiny_and_full_layers: [FailsOnSmall],
    checks.rewires_a_layer_without_connections: [FailsOnEmpty],
    checks.rewires_without_any_signal: [FewerWithoutSignals],
    checks.keeps_the_promised_number_of_connections: [
        LosingOne,
        WrongTotal,
        WrongBudget,
        WrongBudgetOfNetwork,
        Growing,
    ],
    checks.changes_something: [NothingToDo],
    checks.rewires_full_layers_if_it_declares_so: [DeclaresFull, PrunesFull],
    checks.grows_only_where_connections_are_allowed: [IgnoresLimits, StopsAtLimits],
    checks.a_limit_that_allows_everything_has_no_effect: [PrunesByLimit],
    checks.gives_the_same_result_for_the_same_seed: [Unseeded, GlobalNumpy],
    checks.leaves_global_random_numbers_alone: [GlobalNumpy, GlobalRandom],
    checks.does_not_depend_on_the_number_of_threads: [ByThreads],
    checks.does_not_change_its_arguments: [
        Mutating,
        MutatingSignals,
        MutatingState,
        AddingToState,
    ],
    checks.continues_from_a_state_in_a_file: [ObjectsInState],
    checks.rewires_in_place_to_the_same_result: [OtherInPlace],
}


@pytest.mark.parametrize("strategy", [Correct, Counting])
def test_a_correct_strategy_passes(strategy):
    check_strategy(strategy)
    check_strategy(strategy())


@pytest.mark.parametrize(
    ("check", "broken"),
    [(check, broken) for check, several in BROKEN.items() for broken in several],
    ids=lambda case: case.__name__,
)
def test_a_check_finds_a_strategy_that_breaks_its_promise(check, broken):
    strategy = broken()
    with pytest.raises(AssertionError) as found:
        run_check(strategy, check)
    message = str(found.value)
    assert message.startswith(repr(strategy))
    assert f"{check.__name__}(strategy)" in message
    assert promise_of(check) in message


@CHILD
def test_a_dense_array_is_found_in_the_child_process():
    with pytest.raises(AssertionError, match="proportional to connections"):
        run_check(Dense(), memory.rewires_wide_layers_in_little_memory)


@CHILD
def test_an_error_in_the_child_process_is_reported():
    with pytest.raises(AssertionError, match="ValueError: too wide"):
        run_check(Exploding(), memory.rewires_wide_layers_in_little_memory)


@CHILD
def test_a_child_process_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(memory, "SECONDS", 0.01)
    with pytest.raises(AssertionError, match=r"takes longer than 0\.01 seconds"):
        run_check(Correct(), memory.rewires_wide_layers_in_little_memory)


def test_every_check_has_a_strategy_that_fails_it():
    assert {*BROKEN, memory.rewires_wide_layers_in_little_memory} == set(checks.CHECKS)


def test_check_strategy_stops_at_the_first_broken_promise():
    with pytest.raises(AssertionError, match="`origin` does not match"):
        check_strategy(WrongOrigin)


def test_an_error_of_the_strategy_is_the_cause_of_the_assertion():
    with pytest.raises(AssertionError, match="it raised IndexError") as found:
        check_strategy(FailsOnSmall)
    assert isinstance(found.value.__cause__, IndexError)


def test_a_class_that_needs_arguments_is_refused():
    class Needy(Correct):
        def __init__(self, zeta):
            super().__init__(zeta)

    with pytest.raises(AssertionError, match="Give all parameters defaults"):
        check_strategy(Needy)


def test_checks_can_be_generated_without_running_them():
    pairs = list(check_strategy(LosingOne, generate_only=True))
    assert len(pairs) == len(checks.CHECKS)
    failed = []
    for strategy, check in pairs[:8]:
        assert isinstance(strategy, LosingOne)
        try:
            check()
        except AssertionError as error:
            failed.append(str(error))
    assert "must have" in failed[-1]


def test_pytest_gets_one_test_per_strategy_and_check():
    mark = parametrize_with_checks([Correct(), LosingOne]).mark
    names, cases = mark.args
    assert names == ("strategy", "check")
    assert len({case.id for case in cases}) == 2 * len(checks.CHECKS)
    [case] = [c for c in cases if c.id == "LosingOne-keeps_the_promised_number_of_connections"]
    strategy, check = case.values
    with pytest.raises(AssertionError, match="To reproduce"):
        check(strategy)


def test_a_registered_strategy_of_a_user_can_be_checked(monkeypatch):
    monkeypatch.setitem(STRATEGIES, "correct", Correct)
    check_strategy(STRATEGIES["correct"])

"""The checks of `check_strategy`: each is a function of a strategy, and its docstring a promise."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace

import numpy as np

from ratoon.evolution import (
    InPlaceStrategy,
    LayerState,
    RewiringSchedule,
    State,
    Strategy,
    keeps_of,
    layer_seed,
    promised,
    rewires_full_layers,
    start_state,
)
from ratoon.testing.cases import (
    CLOCK,
    Step,
    evolve,
    layer_state,
    limited,
    network,
    random_layer,
    silent,
    sparse_layer,
)
from ratoon.testing.memory import rewires_wide_layers_in_little_memory
from ratoon.topology import GROWN, Rewiring, Topology

Check = Callable[[Strategy], None]

EARLY = replace(CLOCK, step=2)
N_OVER_TRAINING = 10
"""The number of rewirings, an epoch apart, from `EARLY` to the end of training."""


def require(condition: bool | np.bool_, message: str) -> None:
    """Raise an `AssertionError` with a message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


# ---------------------------------------------------------------------------------- interface


def has_the_interface_of_a_strategy(strategy: Strategy) -> None:
    """Check that a strategy has a schedule, rewires, and states what it keeps."""
    schedule = getattr(strategy, "schedule", None)
    require(
        isinstance(schedule, RewiringSchedule),
        f"`schedule` must be a RewiringSchedule, got {schedule!r}",
    )
    require(callable(getattr(strategy, "rewire", None)), "there is no method `rewire`")
    keeps_of(strategy)  # raises


def can_be_rebuilt_from_its_fields(strategy: Strategy) -> None:
    """Check that a strategy that is a dataclass is frozen and can be rebuilt from its fields."""
    if not is_dataclass(strategy):
        return
    frozen = type(strategy).__dataclass_params__.frozen
    require(frozen, "the class is a dataclass without `frozen=True`")
    again = type(strategy)(**{f.name: getattr(strategy, f.name) for f in fields(strategy)})
    require(repr(again) == repr(strategy), f"rebuilt from its fields it is {again!r}")


# ----------------------------------------------------------------------------------- rewiring


def returns_consistent_rewirings(strategy: Strategy) -> None:
    """Check that connections, weights and optimizer state stay together."""
    for step in evolve(strategy, network(n_states=2)):
        require_consistent(step)


def new_weights_are_finite_and_of_the_layers_type(strategy: Strategy) -> None:
    """Check that weights after a rewiring are finite and have the type of those before."""
    for dtype in (np.float32, np.float64):
        for step in evolve(strategy, network(dtype=dtype)):
            for layer, rewiring in zip(step.layers, step.rewirings, strict=True):
                weights = rewiring.carry_weights(layer.weights)
                require(
                    weights.dtype == layer.weights.dtype,
                    f"weights are {weights.dtype}, but were {layer.weights.dtype} before",
                )
                require(
                    weights.shape == (rewiring.topology.n_connections,),
                    f"there are {weights.size} weights for {rewiring.topology!r}",
                )
                require(np.isfinite(weights).all(), "a weight is not finite")


def rewires_tiny_and_full_layers(strategy: Strategy) -> None:
    """Check that layers of one neuron, one connection or all connections can be rewired."""
    for widths in ((1, 1), (1, 5, 1), (9, 1, 9), (2, 2, 2, 2)):
        for density in (0.01, 0.5, 1.0):
            for step in evolve(strategy, network(widths=widths, density=density)):
                require_consistent(step, f" in a network of widths {widths}, density {density}")


def rewires_a_layer_without_connections(strategy: Strategy) -> None:
    """Check that a layer without connections can be rewired among others."""
    layers = network()
    layers[1] = layer_state(Topology.random((30, 25), 0, seed=0))
    for step in evolve(strategy, layers):
        require_consistent(step, " with a layer that has no connections")


def rewires_without_any_signal(strategy: Strategy) -> None:
    """Check that gradients of 0 everywhere do not stop a strategy, with or without a limit."""
    for layers in (network(), limited(network())):
        quiet = [silent(layer) for layer in layers]
        for step in evolve(strategy, quiet):
            require_consistent(step, " where all gradients are 0")
            if keeps_of(strategy) == "layer":
                before, after = counts(step)
                require(after == before, f"with gradients of 0 it keeps {after} of {before}")


# -------------------------------------------------------------------- number of connections


def keeps_the_promised_number_of_connections(strategy: Strategy) -> None:
    """Check that the number of connections after every rewiring is what ``keeps`` promises."""
    start, keeps = network(), keeps_of(strategy)
    for step in evolve(strategy, start, n_rewirings=N_OVER_TRAINING, clock=EARLY):
        before, after = counts(step)
        wanted = promised(strategy, start, step.clock)
        at = f"at step {step.clock.step} of {step.clock.total_steps}"
        if wanted is None:
            more = any(a > b for a, b in zip(after, before, strict=True))
            require(not more, f"{at} the layers have {after} connections, more than {before}")
        elif isinstance(wanted, int):
            require(
                sum(after) == wanted,
                f"`keeps` is {keeps!r}: {at} the network must have {wanted} connections, but has"
                f" {sum(after)}",
            )
        else:
            require(
                after == wanted,
                f"`keeps` is {keeps!r}: {at} the layers must have {wanted} connections, but have"
                f" {after}",
            )


def changes_something(strategy: Strategy) -> None:
    """Check that a strategy that rewires at all changes connections at some time in training."""
    if strategy.schedule.until == 0:
        return
    steps = evolve(strategy, network(), n_rewirings=N_OVER_TRAINING, clock=EARLY)
    require(any(changed(step) for step in steps), "no connection was ever pruned or grown")


def rewires_full_layers_if_it_declares_so(strategy: Strategy) -> None:
    """Check that full layers change during training exactly if ``rewires_full_layers`` is true."""
    full = network(density=1.0)
    steps = evolve(strategy, full, n_rewirings=N_OVER_TRAINING, clock=EARLY)
    found = any(changed(step) for step in steps)
    if rewires_full_layers(strategy):
        require(found, "`rewires_full_layers` is True, but full layers never changed")
    else:
        require(not found, "`rewires_full_layers` is False, but a full layer changed")


# ---------------------------------------------------------------------------------- limits


def grows_only_where_connections_are_allowed(strategy: Strategy) -> None:
    """Check that connections are grown within the limit of a layer, and only there."""
    grows = any(n_grown(step) for step in evolve(strategy, network()))
    for share in (0.3, 0.9, 1.0):
        n_found = 0
        for step in evolve(strategy, limited(network(), share)):
            require_consistent(step, " of layers with a limit (`LayerState.allowed`)")
            for layer, rewiring in zip(step.layers, step.rewirings, strict=True):
                assert layer.allowed is not None
                inside = np.isin(rewiring.topology.positions, layer.allowed.positions).all()
                require(inside, "a connection was grown outside `LayerState.allowed`")
            before, after = counts(step)
            if keeps_of(strategy) in ("layer", "total"):
                require(
                    sum(after) == sum(before),
                    f"with a limit, a network of {sum(before)} connections has {sum(after)} after",
                )
            n_found += n_grown(step)
        if share == 1.0:
            pruned = rewires_full_layers(strategy)  # then there is room to grow
            require(n_found == 0 or pruned, "a layer whose limit is full has grown")
        else:
            require(n_found > 0 or not grows, "nothing grows in layers with a limit")


def a_limit_that_allows_everything_has_no_effect(strategy: Strategy) -> None:
    """Check that a limit that allows every position leads to the same numbers of connections."""
    free = network()
    unlimited = [replace(layer, allowed=Topology.full(layer.topology.shape)) for layer in free]
    runs = (evolve(strategy, layers, n_rewirings=1) for layers in (unlimited, free))
    for ours, theirs in zip(*runs, strict=True):
        with_limit, without = counts(ours)[1], counts(theirs)[1]
        require(
            with_limit == without,
            f"the layers have {with_limit} connections with a limit that allows everything, and"
            f" {without} without",
        )


# ------------------------------------------------------------------------- reproducibility


def gives_the_same_result_for_the_same_seed(strategy: Strategy) -> None:
    """Check that the same seed gives the same result, whatever the object was used for before."""
    once = list(evolve(strategy, network()))
    require_same(once, evolve(strategy, network()), "in a second run with the same seed")


def leaves_global_random_numbers_alone(strategy: Strategy) -> None:
    """Check that random numbers come from the seed, not from a global generator."""
    before = _global_generators()
    for _ in evolve(strategy, network()):
        pass
    require(
        before == _global_generators(),
        "it draws from `numpy.random` or `random`; derive a generator from the seed:"
        ' ratoon.rng.derive_generator(seed, "purpose")',
    )


def does_not_depend_on_the_number_of_threads(strategy: Strategy) -> None:
    """Check that any number of threads gives the same result."""
    layers = network(widths=(400, 300, 200, 5), density=0.05)
    one = list(evolve(strategy, layers, n_threads=1))
    for n_threads in (2, 3):
        other = evolve(strategy, layers, n_threads=n_threads)
        require_same(one, other, f"with {n_threads} threads instead of 1")


def does_not_change_its_arguments(strategy: Strategy) -> None:
    """Check that weights, optimizer state, signals and the strategy's state are not changed."""
    layers = network()
    arrays = {}
    for index, layer in enumerate(layers):
        assert layer.signals is not None
        activations, errors = layer.signals()
        arrays[f"the weights of layer {index}"] = layer.weights
        arrays[f"the activations of layer {index}"] = activations
        arrays[f"the errors of layer {index}"] = errors
        arrays |= {f"`state[{k}]` of layer {index}": s for k, s in enumerate(layer.state)}
    before = {name: array.copy() for name, array in arrays.items()}
    state = start_state(strategy, layers, 0)
    _require_unchanged(arrays, before, "start_state")
    if hasattr(strategy, "watch"):
        state = _watched(strategy, state, layers)
        _require_unchanged(arrays, before, "watch")
    of_state = {f"the array {name!r} of its state": array for name, array in state.items()}
    arrays, before = (
        arrays | of_state,
        before | {name: array.copy() for name, array in of_state.items()},
    )
    names = set(state)
    if hasattr(strategy, "rewire_from"):
        strategy.rewire_from(state, layers, CLOCK, 0)
    else:
        strategy.rewire(layers, CLOCK, 0)
    require(set(state) == names, "rewiring added or removed an array of its state")
    _require_unchanged(arrays, before, "rewire")


def continues_from_a_state_in_a_file(strategy: Strategy) -> None:
    """Check that the state consists of arrays, and rewirings are the same with one from a file."""

    def through_file(state: State) -> State:
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **state)
        buffer.seek(0)
        with np.load(buffer, allow_pickle=False) as arrays:
            return dict(arrays)

    here = list(evolve(strategy, network()))
    other = evolve(strategy, network(), through=through_file)
    require_same(here, other, "after its state was written to a file and read again")


def rewires_in_place_to_the_same_result(strategy: Strategy) -> None:
    """Check that ``rewire_in_place``, if there is one, equals ``rewire`` bit for bit."""
    if not isinstance(strategy, InPlaceStrategy):
        return
    layer = random_layer((300, 200), 4000, n_states=2)
    general, in_place = sparse_layer(layer), sparse_layer(layer)
    [rewiring] = strategy.rewire([layer], CLOCK, 3)
    general.apply(rewiring)
    strategy.rewire_in_place(in_place, CLOCK, layer_seed(3, 0), 2)
    require(in_place.topology == general.topology, "`rewire_in_place` makes other connections")
    require(
        np.array_equal(in_place.weights, general.weights), "`rewire_in_place` gives other weights"
    )
    for ours, theirs in zip(in_place.state, general.state, strict=True):
        require(np.array_equal(ours, theirs), "`rewire_in_place` gives another optimizer state")


CHECKS: tuple[Check, ...] = (
    has_the_interface_of_a_strategy,
    can_be_rebuilt_from_its_fields,
    returns_consistent_rewirings,
    new_weights_are_finite_and_of_the_layers_type,
    rewires_tiny_and_full_layers,
    rewires_a_layer_without_connections,
    rewires_without_any_signal,
    keeps_the_promised_number_of_connections,
    changes_something,
    rewires_full_layers_if_it_declares_so,
    grows_only_where_connections_are_allowed,
    a_limit_that_allows_everything_has_no_effect,
    gives_the_same_result_for_the_same_seed,
    leaves_global_random_numbers_alone,
    does_not_depend_on_the_number_of_threads,
    does_not_change_its_arguments,
    continues_from_a_state_in_a_file,
    rewires_in_place_to_the_same_result,
    rewires_wide_layers_in_little_memory,
)
"""All checks, in the order in which `check_strategy` runs them."""


# ---------------------------------------------------------------------------------- details


def counts(step: Step) -> tuple[list[int], list[int]]:
    """Return the number of connections of every layer before and after."""
    return (
        [layer.topology.n_connections for layer in step.layers],
        [rewiring.topology.n_connections for rewiring in step.rewirings],
    )


def n_grown(step: Step) -> int:
    """Return the number of new connections."""
    return sum(rewiring.n_grown for rewiring in step.rewirings)


def changed(step: Step) -> bool:
    """Return whether a connection was pruned or grown."""
    before, after = counts(step)
    return n_grown(step) > 0 or before != after


def require_consistent(step: Step, where: str = "") -> None:
    """Raise unless positions, values and origins of all rewirings are consistent."""
    n, expected = len(step.rewirings), len(step.layers)
    require(n == expected, f"{n} rewirings were returned for {expected} layers{where}")
    for layer, rewiring in zip(step.layers, step.rewirings, strict=True):
        _require_consistent_layer(layer, rewiring, where)


def _require_consistent_layer(layer: LayerState, rewiring: Rewiring, where: str) -> None:
    old, new, origin = layer.topology, rewiring.topology, rewiring.origin
    require(new.shape == old.shape, f"a layer of {old.shape} became one of {new.shape}{where}")
    require(
        origin.shape == (new.n_connections,),
        f"`origin` has {origin.size} entries for {new.n_connections} connections{where}",
    )
    checked = Topology.checked(new.shape, new.tile, new.grouped, new.starts, new.packed)
    require(checked == new, f"the new topology is damaged{where}")
    require(np.unique(new.positions).size == new.n_connections, f"a connection occurs twice{where}")
    kept = origin != GROWN
    sources = origin[kept]
    require(
        bool(((sources >= 0) & (sources < old.n_connections)).all()),
        f"`origin` has entries that are neither slots of the layer nor GROWN{where}",
    )
    require(np.unique(sources).size == sources.size, f"two connections have one origin{where}")
    require(
        np.array_equal(new.positions[kept], old.positions[sources]),
        f"`origin` does not match: a kept connection has the slot of another one, so it would get"
        f" its weight{where}",
    )
    for values in layer.state:
        require(
            not rewiring.carry(values)[~kept].any(),
            f"a new connection has an optimizer state other than 0{where}",
        )


def require_same(ours: Sequence[Step], theirs: Iterable[Step], when: str) -> None:
    """Raise unless two runs have the same connections, origins and weights."""
    for one, other in zip(ours, theirs, strict=True):
        parts = zip(one.layers, one.rewirings, other.layers, other.rewirings, strict=True)
        for index, (layer, a, layer_again, b) in enumerate(parts):
            same = (
                a.topology == b.topology
                and np.array_equal(a.origin, b.origin)
                and np.array_equal(
                    a.carry_weights(layer.weights), b.carry_weights(layer_again.weights)
                )
            )
            require(same, f"layer {index} is rewired differently {when}")


def _watched(strategy: Strategy, state: State, layers: Sequence[LayerState]) -> State:
    watched: State = strategy.watch(state, layers, CLOCK.at(CLOCK.step - 1))  # type: ignore[attr-defined]
    return watched


def _require_unchanged(arrays: State, before: State, method: str) -> None:
    for name, array in arrays.items():
        require(np.array_equal(array, before[name]), f"`{method}` changed {name} in place")


def _global_generators() -> tuple[str, str]:
    return repr(random.getstate()), repr(np.random.get_state())  # noqa: NPY002

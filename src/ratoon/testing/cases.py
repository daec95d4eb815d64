"""Layers for strategies to rewire, made at random from a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ratoon.evolution import Clock, LayerState, State, Strategy, rewire_from, start_state
from ratoon.layers import SparseLayer
from ratoon.topology import Rewiring, Topology

CLOCK = Clock(step=20, steps_per_epoch=10, total_steps=100)


class Step(NamedTuple):
    """One rewiring of all layers: what was given, what came back, and when."""

    layers: list[LayerState]
    rewirings: list[Rewiring]
    state: State
    clock: Clock


def layer_state(
    topology: Topology,
    *,
    seed: int = 0,
    batch: int = 5,
    dtype: DTypeLike = np.float32,
    n_states: int = 1,
    **changes: Any,
) -> LayerState:
    """Return a layer with random weights, momentum and signals."""
    rng = np.random.default_rng(seed)
    n_in, n_out = topology.shape
    x = np.maximum(rng.normal(size=(n_in, batch)), 0).astype(dtype)
    d = rng.normal(size=(n_out, batch)).astype(dtype)
    given: dict[str, Any] = {
        "weights": rng.normal(size=topology.n_connections).astype(dtype),
        "state": tuple(
            rng.normal(size=topology.n_connections).astype(dtype) for _ in range(n_states)
        ),
        "signals": lambda: (x, d),
        "learning_rate": 0.01,
    }
    return LayerState(topology, **{**given, **changes})


def random_layer(
    shape: tuple[int, int] = (30, 20), n_connections: int = 150, *, seed: int = 0, **changes: Any
) -> LayerState:
    """Return a layer with a random topology."""
    return layer_state(Topology.random(shape, n_connections, seed=seed), seed=seed, **changes)


def network(
    *,
    seed: int = 0,
    density: float = 0.2,
    widths: Sequence[int] = (40, 30, 25, 4),
    **changes: Any,
) -> list[LayerState]:
    """Return the layers of a network of these widths."""
    return [
        random_layer((n_in, n_out), max(1, round(density * n_in * n_out)), seed=seed + i, **changes)
        for i, (n_in, n_out) in enumerate(pairwise(widths))
    ]


def silent(layer: LayerState) -> LayerState:
    """Return the layer with activations and errors of 0."""
    x, d = (np.zeros((n, 4), dtype=layer.weights.dtype) for n in layer.topology.shape)
    return replace(layer, signals=lambda: (x, d))


def limited(layers: Iterable[LayerState], share: float = 0.5, seed: int = 0) -> list[LayerState]:
    """Return the layers with limits of which their connections are this fraction."""
    found = []
    for number, layer in enumerate(layers):
        n_allowed = min(layer.topology.n_positions, round(layer.topology.n_connections / share))
        every_slot = np.arange(layer.topology.n_connections)
        grown = layer.topology.regrow(every_slot, n_allowed - every_slot.size, seed=seed + number)
        found.append(replace(layer, allowed=grown.topology))
    return found


def sparse_layer(layer: LayerState) -> SparseLayer:
    """Return the layer as one that can be changed in place."""
    return SparseLayer(
        layer.topology,
        layer.weights.copy(),
        np.zeros(layer.topology.shape[1], dtype=layer.weights.dtype),
        init=layer.init,
        state=[values.copy() for values in layer.state],
    )


def apply(layers: Sequence[LayerState], rewirings: Sequence[Rewiring]) -> list[LayerState]:
    """Return the layers after their rewirings, with the same signals."""
    return [
        replace(
            layer,
            topology=rewiring.topology,
            weights=rewiring.carry_weights(layer.weights),
            state=tuple(rewiring.carry(values) for values in layer.state),
        )
        for layer, rewiring in zip(layers, rewirings, strict=True)
    ]


def trained(layers: Sequence[LayerState], seed: int) -> list[LayerState]:
    """Return the layers as if a few steps had passed: all weights have changed."""
    rng = np.random.default_rng(seed)
    return [
        replace(
            layer,
            weights=layer.weights
            + rng.normal(size=layer.weights.size).astype("f4").astype(layer.weights.dtype),
        )
        for layer in layers
    ]


def evolve(
    strategy: Strategy,
    layers: Sequence[LayerState],
    *,
    n_rewirings: int = 3,
    seed: int = 0,
    n_threads: int = 1,
    clock: Clock = CLOCK,
    through: Callable[[State], State] = lambda state: state,
) -> Iterator[Step]:
    """Start a strategy, and let it watch and rewire a few times, an epoch apart.

    ``through`` is applied to the state of the strategy before every rewiring.
    """
    now = [replace(layer, n_threads=n_threads) for layer in layers]
    state = start_state(strategy, now, seed)
    for number in range(n_rewirings):
        now = trained(now, number)
        state = through(state)
        if hasattr(strategy, "watch"):
            state = strategy.watch(state, now, clock.at(clock.step - 1))
        rewirings, state = rewire_from(strategy, state, now, clock, seed + number)
        yield Step(now, rewirings, state, clock)
        now = apply(now, rewirings)
        clock = clock.at(clock.step + clock.steps_per_epoch)

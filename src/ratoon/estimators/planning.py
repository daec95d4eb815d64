"""Plans: memory and time of a fit, told before anything is allocated.

Memory is counted.  Time is estimated from a run of a few milliseconds on a small network, done
once per kind of minibatch: kernels cost the same per connection until the activations of a layer
no longer fit into the cache, and more from there on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from ratoon import kernels
from ratoon.estimators.presets import Settings, Shape
from ratoon.history import duration
from ratoon.initialise import connections_wanted
from ratoon.kernels import LANES, Rule, Step
from ratoon.network import SparseMLP

BLOCK = 32
"""Samples of a minibatch that native code takes at a time."""

_INDEX_BYTES = 4
_CACHE_BYTES = 425_000
_PER_DOUBLING = 0.38
_SECONDS_PER_EPOCH = 3e-4
_SECONDS_PER_STEP = 5e-6


@dataclass(frozen=True)
class FitPlan:
    """What a fit will need beside the data itself.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> plan = SparseMLPClassifier((9000, 9000), epsilon=10).plan(11_340, n_outputs=3)
    >>> plan.n_connections, plan.parameter_bytes
    (410400, 6782436)
    """

    widths: tuple[int, ...]
    connections: tuple[int, ...]
    dtype: str
    batch_size: int
    n_epochs: int
    n_threads: int
    parameter_bytes: int
    workspace_bytes: int
    rewiring_bytes: int
    best_copy_bytes: int
    seconds_per_epoch: float

    @property
    def n_connections(self) -> int:
        """Connections of all layers."""
        return sum(self.connections)

    @property
    def peak_bytes(self) -> int:
        """The most that is held at any moment."""
        # Working space is given back before a rewiring.
        passing = max(self.workspace_bytes, self.rewiring_bytes)
        return self.parameter_bytes + self.best_copy_bytes + passing

    @property
    def seconds(self) -> float:
        """The whole training."""
        return self.seconds_per_epoch * self.n_epochs

    def __str__(self) -> str:
        n_positions = sum(n_in * n_out for n_in, n_out in pairwise(self.widths))
        lines = [
            ("network", " -> ".join(f"{width:,}" for width in self.widths)),
            (
                "connections",
                f"{self.n_connections:,} in {self.dtype}"
                f" ({self.n_connections / n_positions:.3%} of a dense network)",
            ),
            ("parameters", _megabytes(self.parameter_bytes)),
            ("working space", f"{_megabytes(self.workspace_bytes)} at batch {self.batch_size}"),
            ("rewiring", _megabytes(self.rewiring_bytes)),
            ("peak", f"{_megabytes(self.peak_bytes)} beside the data"),
            (
                "time",
                f"about {duration(self.seconds_per_epoch)} per epoch on {self.n_threads} thread(s),"
                f" {duration(self.seconds)} for {self.n_epochs} epochs",
            ),
        ]
        return "\n".join(f"{name:<14}{text}" for name, text in lines)

    __repr__ = __str__


def make_plan(
    settings: Settings, shape: Shape, *, n_threads: int, keeps_best: bool = False
) -> FitPlan:
    """Count the memory and estimate the time of a fit."""
    widths = settings.widths(shape)
    layers = list(pairwise(widths))
    connections = tuple(
        connections_wanted(layer, epsilon=settings.epsilon, density=settings.density)
        for layer in layers
    )
    size = np.dtype(settings.dtype).itemsize
    values = 1 + settings.optimizer.n_states
    biases = sum(widths[1:])
    parameters = sum(connections) * (_INDEX_BYTES + size * values) + biases * size * values
    rewires = settings.evolution.schedule.until > 0
    return FitPlan(
        widths=widths,
        connections=connections,
        dtype=settings.dtype,
        batch_size=settings.batch_size,
        n_epochs=settings.max_iter,
        n_threads=n_threads,
        parameter_bytes=parameters,
        workspace_bytes=workspace_bytes(widths, settings.batch_size, size)
        # Wide minibatches go through in blocks, and add their gradients up.
        + (sum(connections) + biases) * size * (settings.batch_size > BLOCK),
        # The next indices beside the present ones, and one array of values at a time.
        rewiring_bytes=max(connections) * (2 * _INDEX_BYTES + size) if rewires else 0,
        best_copy_bytes=parameters if keeps_best else 0,
        seconds_per_epoch=_seconds_per_epoch(settings, shape, layers, connections, n_threads),
    )


def workspace_bytes(widths: tuple[int, ...], batch: int, itemsize: int) -> int:
    """Return the working memory of a minibatch: activations of all layers, errors of two.

    Examples
    --------
    >>> workspace_bytes((100, 50, 2), 5, 4)
    8064
    """
    return (sum(widths) + 2 * max(widths[1:])) * padded(min(batch, BLOCK)) * itemsize


def padded(batch: int) -> int:
    """Return how many samples travel together: 1, or a multiple of 8."""
    return 1 if batch == 1 else math.ceil(batch / LANES) * LANES


# ----------------------------------------------------------------------------------------- time


@dataclass(frozen=True)
class Speed:
    """Nanoseconds, on one thread, for a minibatch of some size."""

    per_connection: float
    per_value: float
    per_rewired_connection: float


def _seconds_per_epoch(
    settings: Settings,
    shape: Shape,
    layers: list[tuple[int, int]],
    connections: tuple[int, ...],
    n_threads: int,
) -> float:
    lanes = padded(settings.batch_size)
    rule, n_states = int(settings.optimizer.rule), settings.optimizer.n_states
    speed = measured_speed(settings.dtype, lanes, rule, n_states)
    size = np.dtype(settings.dtype).itemsize
    per_step = shape.n_features * settings.batch_size * speed.per_value
    for (n_in, n_out), count in zip(layers, connections, strict=True):
        rows = min(n_in, n_out) * lanes * size
        slower = 1.0 + _PER_DOUBLING * max(0.0, math.log2(rows / _CACHE_BYTES))
        per_step += count * speed.per_connection * slower
    n_steps = math.ceil(shape.n_samples / settings.batch_size)
    speed_up = 1.0 + 0.8 * (n_threads - 1)
    total = n_steps * (per_step * 1e-9 / speed_up + _SECONDS_PER_STEP)
    schedule = settings.evolution.schedule
    if schedule.until > 0:
        per_rewiring = sum(connections) * speed.per_rewired_connection * 1e-9 / speed_up
        often = n_steps / schedule.every if schedule.unit == "step" else 1 / schedule.every
        total += schedule.until * often * per_rewiring
    return total + _SECONDS_PER_EPOCH


@cache
def measured_speed(dtype: str, lanes: int, rule: int, n_states: int) -> Speed:
    """Run small kernels and take the time; a few tens of milliseconds, once per process."""
    n_wide = max(4096, 2**19 // lanes)
    wide = _seconds_per_step((n_wide, 1), 16 / n_wide, dtype, lanes, rule, n_states)
    per_value = wide / (n_wide * lanes)
    widths = (1500, 1500, 4)
    narrow = _seconds_per_step(widths, 0.02, dtype, lanes, rule, n_states)
    n_connections = sum(connections_wanted(layer, density=0.02) for layer in pairwise(widths))
    per_connection = max(narrow - widths[0] * lanes * per_value, 0.1 * narrow) / n_connections
    layer = SparseMLP.start((3000, 3000), density=0.01, seed=0, dtype=dtype).layers[0]
    layer.clear_state(n_states)
    rewiring = _quickest(
        lambda: kernels.rewire_by_sign(layer.topology, layer.weights, layer.state, 0.3, seed=0)
    )
    return Speed(per_connection * 1e9, per_value * 1e9, rewiring / layer.n_connections * 1e9)


def _seconds_per_step(
    widths: tuple[int, ...], density: float, dtype: str, lanes: int, rule: int, n_states: int
) -> float:
    network = SparseMLP.start(widths, density=density, seed=0, dtype=dtype)
    for layer in network.layers:
        layer.clear_state(n_states)
    native = network.native("squared_error", 1)
    samples = kernels.as_samples(np.zeros((lanes, widths[0]), dtype=dtype), dtype)
    targets = np.zeros((lanes, widths[-1]), dtype=dtype)
    n_steps = 4
    order = np.tile(np.arange(lanes, dtype=np.int64), n_steps)
    step = Step(lr=0.0, mu=0.9, beta2=0.999, adam_eps=1.0)
    run: Callable[[], object] = lambda: native.train(  # noqa: E731
        samples, targets, order, lanes, Rule(rule), [step] * n_steps
    )
    return _quickest(run) / n_steps


def _quickest(run: Callable[[], object], n_times: int = 3) -> float:
    run()  # once to warm up
    times = []
    for _ in range(n_times):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return max(min(times), 1e-9)


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.3g} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:,.3g} GB"

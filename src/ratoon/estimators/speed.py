"""How long a fit takes, estimated from a few runs of small networks on the machine at hand.

A connection costs the same until the activations that its layer reads and writes at random no
longer fit into a cache, and more from there on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import count, pairwise

import numpy as np

from ratoon import kernels
from ratoon.estimators.presets import Settings, Shape
from ratoon.evolution import SET, Clock
from ratoon.initialise import connections_wanted
from ratoon.kernels import LANES, Rule, Step
from ratoon.kernels.types import checked_dtype
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP

_CACHE_BYTES = 512_000
_PER_DOUBLING = 0.24
_AT_LEAST = 0.83
_SECONDS_PER_EPOCH = 3e-4
_SECONDS_PER_STEP = 5e-6
_ROUNDS = 5


def padded(batch: int) -> int:
    """Return how many samples travel together: 1, or a multiple of 8."""
    return 1 if batch == 1 else math.ceil(batch / LANES) * LANES


@dataclass(frozen=True)
class Speed:
    """Nanoseconds, on one thread, for a minibatch of some size."""

    per_first_connection: float
    """Between input and first hidden layer, where no error goes back."""
    per_connection: float
    per_value: float
    per_rewired_connection: float


def seconds_of(
    settings: Settings, shape: Shape, connections: tuple[int, ...], n_threads: int
) -> tuple[float, float]:
    """Return the seconds of a step, and of an epoch with its rewirings."""
    lanes = padded(settings.batch_size)
    rule, n_states = int(settings.optimizer.rule), settings.optimizer.n_states
    speed = measured_speed(settings.dtype, lanes, rule, n_states)
    size = checked_dtype(settings.dtype).itemsize
    total = shape.n_features * settings.batch_size * speed.per_value
    each = [speed.per_first_connection] + [speed.per_connection] * (len(connections) - 1)
    layers = pairwise(settings.widths(shape))
    for (n_in, n_out), n_connections, cost in zip(layers, connections, each, strict=True):
        total += n_connections * cost * slowness(min(n_in, n_out) * lanes * size)
    speed_up = 1.0 + 0.8 * (n_threads - 1)
    per_step = total * 1e-9 / speed_up + _SECONDS_PER_STEP
    n_steps = math.ceil(shape.n_samples / settings.batch_size)
    per_epoch = n_steps * per_step + _SECONDS_PER_EPOCH
    schedule = settings.evolution.schedule
    if schedule.until > 0:
        per_rewiring = sum(connections) * speed.per_rewired_connection * 1e-9 / speed_up
        clock = Clock(0, n_steps, n_steps * settings.max_iter)
        often = n_steps / schedule.interval(clock)
        per_epoch += schedule.until * often * per_rewiring
    return per_step, per_epoch


def slowness(row_bytes: float) -> float:
    """Return what a connection costs, with activations that take so much, in terms of 512 kB.

    Measured on layers of 1500 to 250,000 neurons: a little less while they fit into the cache of
    a core, a quarter more for every doubling beyond.

    Examples
    --------
    >>> [round(slowness(kilobytes * 1000), 2) for kilobytes in (0, 512, 1024, 8192)]
    [0.83, 1.0, 1.24, 1.96]
    """
    if row_bytes <= _CACHE_BYTES:
        return _AT_LEAST + (1.0 - _AT_LEAST) * row_bytes / _CACHE_BYTES
    return 1.0 + _PER_DOUBLING * math.log2(row_bytes / _CACHE_BYTES)


@cache
def measured_speed(dtype: str, lanes: int, rule: int, n_states: int) -> Speed:
    """Run small networks and take the time; most of a second, once per process."""
    n_wide = max(4096, 2**19 // lanes)
    # Wide enough not to hang on where in memory a few pages lie, narrow enough to be quick.
    size = checked_dtype(dtype).itemsize
    width = int(np.clip(_CACHE_BYTES // (lanes * size), 4000, 32_000))
    density = 20 / width
    shapes: list[tuple[tuple[int, ...], float]] = [((n_wide, 1), 16 / n_wide)]
    shapes += [((width,) * (1 + n_hidden) + (4,), density) for n_hidden in (1, 2)]
    layer = SparseMLP.start((9000, 9000), epsilon=10, seed=0, dtype=dtype).layers[0]
    layer.clear_state(n_states)
    # All take turns, round by round, so that a slow tenth of a second strikes none alone.
    wide, one, two, rewiring = np.min(
        [
            [_seconds_per_step(*shape, dtype, lanes, rule, n_states, seed) for shape in shapes]
            + [_seconds_of_rewiring(layer, seed)]
            for seed in range(_ROUNDS)
        ],
        axis=0,
    ).tolist()
    per_value = wide / (n_wide * lanes)
    usual = connections_wanted((width, width), density=density) * slowness(width * lanes * size)
    first = max(one - width * lanes * per_value, 0.1 * one) / usual
    later = max(two - one, 0.5 * one) / usual
    return Speed(first * 1e9, later * 1e9, per_value * 1e9, rewiring / layer.n_connections * 1e9)


def _seconds_per_step(
    widths: tuple[int, ...],
    density: float,
    dtype: str,
    lanes: int,
    rule: int,
    n_states: int,
    seed: int,
) -> float:
    kind = checked_dtype(dtype)
    samples = kernels.as_samples(np.zeros((lanes, widths[0]), dtype=kind), kind)
    targets = np.zeros((lanes, widths[-1]), dtype=kind)
    n_steps = 4
    order = np.tile(np.arange(lanes, dtype=np.int64), n_steps)
    step = Step(lr=0.0, mu=0.9, beta2=0.999, adam_eps=1.0)
    network = SparseMLP.start(widths, density=density, seed=seed, dtype=dtype)
    for layer in network.layers:
        layer.clear_state(n_states)
    native = network.native("squared_error", 1)
    steps = [step] * n_steps
    return (
        _quickest(lambda: native.train(samples, targets, order, lanes, Rule(rule), steps)) / n_steps
    )


def _seconds_of_rewiring(layer: SparseLayer, seed: int) -> float:
    seeds = count(10**6 * seed)
    strategy = SET(zeta=0.3)
    return _quickest(
        lambda: strategy.rewire_in_place(layer, Clock(1, 1, 10), next(seeds), n_threads=1)
    )


def _quickest(run: Callable[[], object], at_least_s: float = 0.01) -> float:
    run()  # once to warm up
    times: list[float] = []
    while len(times) < 3 or sum(times) < at_least_s:
        # Of this thread alone: what other processes do must not make a plan longer.
        started = time.thread_time()
        run()
        times.append(max(time.thread_time() - started, 1e-9))
    return min(times)

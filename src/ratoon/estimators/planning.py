"""Plans: memory and time of a fit, estimated before anything is allocated.

Memory is counted; time is estimated from a few runs of small networks on this machine.  A
connection costs the same until the activations that its layer reads and writes at random no
longer fit into a cache, and more from there on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from itertools import count, pairwise
from typing import Any

import numpy as np

from ratoon import kernels
from ratoon.committee import CommitteeCost, committee_cost
from ratoon.estimators.presets import Shape
from ratoon.estimators.recipes import work_of_average
from ratoon.estimators.settings import CLOSED_FORM, FitCall, Settings, epochs, resolve
from ratoon.evolution import SET, Clock
from ratoon.history import duration
from ratoon.initialise import connections_wanted
from ratoon.kernels import LANES, Rule, Step, block_lanes, passes_by_runs
from ratoon.kernels.types import checked_dtype, is_bfloat16
from ratoon.layers import SparseLayer
from ratoon.memory import require_memory
from ratoon.network import SparseMLP

_INDEX_BYTES = 4
_LINK_BYTES = 8  # of a connection in the run of an output or input
_NARROW = 32  # outputs of a layer that has no runs of outputs
_DRAWING_BYTES = 40  # per allowed position: inputs, outputs, places, empty ones, an order
_SCALING_BYTES = 16  # per feature: means and factors in double precision
_REGROWN = 0.3  # of a layer's connections, at the usual zeta
_LARGE_BYTES = 4 * 2**20  # from here on native code keeps a used array for the next use
_STATISTICS_BYTES = 3 * 2**20  # a block of samples, and what it is made from


@dataclass(frozen=True)
class PlannedMemory:
    """Bytes that a fit needs, without the data itself."""

    parameter_bytes: int
    workspace_bytes: int
    rewiring_bytes: int
    scaling_bytes: int
    best_copy_bytes: int

    @property
    def peak_bytes(self) -> int:
        """Memory at the peak."""
        # The working space is kept for the next epoch during a rewiring.
        temporary = self.workspace_bytes + self.rewiring_bytes
        lasting = self.parameter_bytes + self.best_copy_bytes + self.scaling_bytes
        return max(lasting + temporary, _STATISTICS_BYTES)


@dataclass(frozen=True)
class FitPlan(PlannedMemory):
    """What a fit needs, without the data itself.

    Where `fit` would solve in closed form, there is one step, and the network has at most the
    connections given: members of the committee that do not help are left out.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> plan = SparseMLPClassifier((9000, 9000), epsilon=10).plan(11_340, n_outputs=3)
    >>> plan.n_connections, plan.parameter_bytes
    (410400, 6782436)
    """

    solver: str
    reason: str
    widths: tuple[int, ...]
    connections: tuple[int, ...]
    dtype: str
    batch_size: int
    n_epochs: int
    n_threads: int
    seconds_per_step: float
    seconds_per_epoch: float
    averages: bool = False

    @property
    def n_connections(self) -> int:
        """Connections of all layers."""
        return sum(self.connections)

    @property
    def seconds(self) -> float:
        """Seconds of the whole training."""
        return self.seconds_per_epoch * self.n_epochs

    def __str__(self) -> str:
        n_positions = sum(n_in * n_out for n_in, n_out in pairwise(self.widths))
        in_closed_form = self.solver == CLOSED_FORM
        most = "at most " if in_closed_form else ""
        solver = f"{self.solver}, because {self.reason}"
        if self.averages:
            solver += "; the figures below are those of one network of several"
        lines = [
            ("solver", solver),
            ("network", most + " -> ".join(f"{width:,}" for width in self.widths)),
            (
                "connections",
                f"{most}{self.n_connections:,} in {self.dtype}"
                f" ({self.n_connections / n_positions:.3%} of a dense network)",
            ),
            ("parameters", _megabytes(self.parameter_bytes)),
        ]
        if in_closed_form:
            lines += [
                ("working space", _megabytes(self.workspace_bytes)),
                ("peak", f"{_megabytes(self.peak_bytes)} without the data"),
                ("time", f"about {duration(self.seconds)} on 1 thread"),
            ]
        else:
            lines += [
                ("working space", f"{_megabytes(self.workspace_bytes)} at batch {self.batch_size}"),
                ("rewiring", _megabytes(self.rewiring_bytes)),
                ("peak", f"{_megabytes(self.peak_bytes)} without the data"),
                (
                    "time",
                    f"about {duration(self.seconds_per_epoch)} per epoch on {self.n_threads}"
                    f" thread(s), {duration(self.seconds)} for {epochs(self.n_epochs)}",
                ),
            ]
        return "\n".join(f"{name:<14}{text}" for name, text in lines)

    __repr__ = __str__


def make_plan(
    settings: Settings,
    shape: Shape,
    *,
    n_allowed: tuple[int, ...] = (),
) -> FitPlan:
    """Count the memory and estimate the time of a fit.

    ``n_allowed`` are the positions that layers with a limit may use.
    """
    if settings.is_closed_form:
        return _plan_closed_form(settings, shape)
    connections = _connections(settings, shape)
    per_step, per_epoch = seconds_of(settings, shape, connections, settings.n_threads)
    return FitPlan(
        **asdict(planned_memory(settings, shape, n_allowed=n_allowed)),
        solver=settings.solver,
        reason=settings.reason,
        widths=settings.widths(shape),
        connections=connections,
        dtype=settings.dtype,
        batch_size=settings.batch_size,
        n_epochs=settings.max_iter,
        n_threads=settings.n_threads,
        seconds_per_step=per_step,
        seconds_per_epoch=per_epoch,
        averages=settings.averages,
    )


def _plan_closed_form(settings: Settings, shape: Shape) -> FitPlan:
    """Return the plan of a committee, from its size and the speed of matrix products here."""
    cost = _committee_cost(shape)
    seconds = cost.seconds_at(_flops_per_second())
    return FitPlan(
        **asdict(_memory_of_closed_form(cost, shape)),
        solver=settings.solver,
        reason=settings.reason,
        widths=(shape.n_features, cost.width, shape.n_outputs),
        connections=cost.connections,
        dtype="float32",
        batch_size=shape.n_samples,
        n_epochs=1,
        n_threads=1,
        seconds_per_step=seconds,
        seconds_per_epoch=seconds,
    )


def _committee_cost(shape: Shape) -> CommitteeCost:
    sizes = (shape.n_samples, shape.n_features, shape.n_outputs)
    return committee_cost(*sizes, is_classifier=shape.is_classifier)


def _memory_of_closed_form(cost: CommitteeCost, shape: Shape) -> PlannedMemory:
    parameters = sum(cost.connections) * (_INDEX_BYTES + 4) + 4 * (cost.width + shape.n_outputs)
    return PlannedMemory(
        parameter_bytes=parameters,
        workspace_bytes=cost.workspace_bytes,
        rewiring_bytes=0,
        scaling_bytes=shape.n_features * _SCALING_BYTES,
        best_copy_bytes=0,
    )


@cache
def _flops_per_second() -> float:
    """Time a matrix product like those of a committee, on one thread."""
    from threadpoolctl import threadpool_limits

    rows = np.ones((128, 4096), dtype=np.float32)
    with threadpool_limits(limits=1, user_api="blas"):
        return 2 * 128 * 128 * 4096 / _quickest(lambda: rows @ rows.T)


def check_memory(settings: Settings, shape: Shape) -> None:
    """Raise if a fit needs more memory than there is.

    Raises
    ------
    NotEnoughMemoryError
        With both figures and the parameters to change.
    """
    if settings.is_closed_form:
        require_memory(
            _memory_of_closed_form(_committee_cost(shape), shape).peak_bytes,
            f"the closed form of {shape.n_samples:,} samples, {shape.n_features:,} features and"
            f" {shape.n_outputs:,} outputs",
            'Train step by step with less memory: set `solver="adam"`, or pass fewer samples.',
        )
        return
    widths = settings.widths(shape)
    connections = _connections(settings, shape)
    factor = "density" if settings.epsilon is None else "epsilon"
    require_memory(
        planned_memory(settings, shape).peak_bytes,
        f"a network {' -> '.join(f'{width:,}' for width in widths)} of {sum(connections):,}"
        f" connections",
        f"Reduce `hidden_layer_sizes` or `{factor}`; `model.plan(...)` shows what is needed.",
    )


def check_memory_of_network(network: SparseMLP, settings: Settings, *, is_sparse: bool) -> None:
    """Raise if training a network further needs more memory than there is.

    Sparse samples need a place in memory for every input, but no activations of them.
    """
    widths, how = network.widths, (settings.batch_size, network.dtype.itemsize, settings.n_threads)
    need = workspace_bytes((1, *widths[1:]) if is_sparse else widths, *how)
    require_memory(
        need + 8 * widths[0] * is_sparse,
        f"training a network {' -> '.join(f'{width:,}' for width in network.widths)}",
        "Reduce `batch_size`, or fit a network of fewer features.",
    )


def _connections(settings: Settings, shape: Shape) -> tuple[int, ...]:
    return settings.connections or tuple(
        connections_wanted(layer, epsilon=settings.epsilon, density=settings.density)
        for layer in pairwise(settings.widths(shape))  # raises for the layer that would have none
    )


def _most_connections(
    settings: Settings, shape: Shape, connections: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the connections per layer at the peak; some strategies exceed those at the start."""
    peak = float(getattr(settings.evolution, "peak", 1.0))
    layers = pairwise(settings.widths(shape))
    return tuple(
        max(count, min(round(peak * count), n_in * n_out))
        for count, (n_in, n_out) in zip(connections, layers, strict=True)
    )


def planned_memory(
    settings: Settings, shape: Shape, *, n_allowed: tuple[int, ...] = ()
) -> PlannedMemory:
    """Count the memory of a fit; ``n_allowed`` as in `make_plan`."""
    widths = settings.widths(shape)
    connections = _most_connections(settings, shape, _connections(settings, shape))
    size = checked_dtype(settings.dtype).itemsize
    weight_size = 2 if is_bfloat16(settings.dtype) else size
    n_states = settings.optimizer.n_states
    biases = sum(widths[1:])
    per_connection = _INDEX_BYTES + weight_size + size * n_states
    parameters = sum(connections) * per_connection + biases * size * (1 + n_states)
    parameters += _INDEX_BYTES * sum(n_allowed)
    rewires = settings.evolution.schedule.until > 0
    within = max(n_allowed, default=0) * _DRAWING_BYTES
    return PlannedMemory(
        parameter_bytes=parameters,
        workspace_bytes=workspace_bytes(widths, settings.batch_size, size, settings.n_threads)
        + _wide_bytes(widths, connections, settings.batch_size, weight_size, size),
        rewiring_bytes=_rewiring_bytes(max(connections), weight_size) + within if rewires else 0,
        scaling_bytes=shape.n_features * _SCALING_BYTES,
        best_copy_bytes=parameters if settings.early_stopping and settings.restore_best else 0,
    )


def file_bytes(estimator: Any, n_features: int, n_samples: int, n_outputs: int) -> int:
    """Return about how many bytes the model file of an estimator will have, without its names."""
    shape = Shape(n_samples, n_features, n_outputs, estimator._is_classifier)
    settings = resolve(estimator, shape)
    if settings.solver == CLOSED_FORM:
        return 8 * n_features * n_outputs
    return _stored_bytes(settings, shape)


def checkpoint_bytes(estimator: Any, n_features: int, n_samples: int, n_outputs: int) -> int:
    """Return about how many bytes a checkpoint of a training will have, at least."""
    shape = Shape(n_samples, n_features, n_outputs, estimator._is_classifier)
    call = FitCall(needs_epochs="checkpoints are written while a network is trained")
    return _stored_bytes(resolve(estimator, shape, call), shape)


def _stored_bytes(settings: Settings, shape: Shape) -> int:
    """Return the bytes of the connections in a file, with their optimizer's state."""
    size = checked_dtype(settings.dtype).itemsize
    weight_size = 2 if is_bfloat16(settings.dtype) else size
    connections = settings.connections or tuple(
        connections_wanted(layer, epsilon=settings.epsilon, density=settings.density)
        for layer in pairwise(settings.widths(shape))
    )
    per_connection = _INDEX_BYTES + weight_size + size * settings.optimizer.n_states
    return sum(connections) * per_connection


def _rewiring_bytes(n_connections: int, weight_size: int) -> int:
    """Return the extra memory for rewiring the largest layer.

    It holds the next indices, and the position and first weight of every new connection.  For large
    layers nine bytes per connection were measured.
    """
    if _INDEX_BYTES * n_connections >= _LARGE_BYTES:
        return n_connections * 9
    return round(n_connections * (_INDEX_BYTES + _REGROWN * (_INDEX_BYTES + weight_size)))


def workspace_bytes(widths: tuple[int, ...], batch: int, itemsize: int, n_threads: int = 1) -> int:
    """Return the working memory of a minibatch: activations of all layers, errors of two.

    Several threads also hold the inputs of the next minibatch.

    Examples
    --------
    >>> workspace_bytes((100, 50, 2), 5, 4), workspace_bytes((100, 50, 2), 5, 4, n_threads=2)
    (8064, 11264)
    """
    rows = sum(widths) + 2 * max(widths[1:])
    block = block_lanes(max(widths))
    if n_threads > 1 and batch <= block:
        rows += widths[0]
    return rows * padded(min(batch, block)) * itemsize


def _wide_bytes(
    widths: tuple[int, ...],
    connections: tuple[int, ...],
    batch: int,
    weight_size: int,
    itemsize: int,
) -> int:
    """Return what large minibatches need on top of activations.

    Gradients of several blocks are added up.  Layers whose rows fit the cache have their
    connections a second time, output by output (narrow ones do not) and input by input, and then
    the gradients of one layer at a time are kept.
    """
    block = block_lanes(max(widths))
    lanes, in_blocks = padded(min(batch, block)), batch > block
    need = (sum(connections) + sum(widths[1:])) * itemsize if in_blocks else 0
    largest = 0
    for (n_in, n_out), size in zip(pairwise(widths), connections, strict=True):
        if passes_by_runs(n_in, n_out, size, lanes=lanes, itemsize=itemsize):
            need += _LINK_BYTES * size * (1 if n_out <= _NARROW else 2)
            largest = max(largest, size)
    widened = largest * itemsize if weight_size < itemsize else 0
    return need + widened + (0 if in_blocks else largest * itemsize)


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.3g} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:,.3g} GB"


_CACHE_BYTES = 512_000
_PER_DOUBLING = 0.24
_AT_LEAST = 0.83
_SECONDS_PER_EPOCH = 3e-4
_SECONDS_PER_STEP = 5e-6
_ROUNDS = 5


def padded(batch: int) -> int:
    """Return the samples computed at once: 1, or a multiple of 8."""
    return 1 if batch == 1 else math.ceil(batch / LANES) * LANES


@dataclass(frozen=True)
class Speed:
    """Nanoseconds, on one thread, for a minibatch of some size."""

    per_first_connection: float
    """Between input and first hidden layer, where no error is propagated back."""
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
        total += n_connections * cost * relative_cost(min(n_in, n_out) * lanes * size)
    speed_up = 1.0 + 0.8 * (n_threads - 1)
    per_step = total * 1e-9 / speed_up + _SECONDS_PER_STEP
    n_steps = math.ceil(shape.n_samples / settings.batch_size)
    per_epoch = n_steps * per_step + _SECONDS_PER_EPOCH
    schedule = settings.evolution.schedule
    if schedule.until > 0:
        per_rewiring = sum(connections) * speed.per_rewired_connection * 1e-9 / speed_up
        clock = Clock(0, n_steps, n_steps * settings.max_iter)
        n_rewirings = n_steps / schedule.interval(clock)
        per_epoch += schedule.until * n_rewirings * per_rewiring
    return per_step, per_epoch


def relative_cost(row_bytes: float) -> float:
    """Return the cost of a connection, relative to that with activations of 512 kB.

    Measured on layers of 1500 to 250,000 neurons: a little less while they fit into the cache of
    a core, a quarter more for every doubling beyond that.

    Examples
    --------
    >>> [round(relative_cost(kilobytes * 1000), 2) for kilobytes in (0, 512, 1024, 8192)]
    [0.83, 1.0, 1.24, 1.96]
    """
    if row_bytes <= _CACHE_BYTES:
        return _AT_LEAST + (1.0 - _AT_LEAST) * row_bytes / _CACHE_BYTES
    return 1.0 + _PER_DOUBLING * math.log2(row_bytes / _CACHE_BYTES)


@cache
def measured_speed(dtype: str, lanes: int, rule: int, n_states: int) -> Speed:
    """Time small networks; most of a second, once per process."""
    n_wide = max(4096, 2**19 // lanes)
    # Wide enough not to depend on the placement of pages in memory, narrow enough to be quick.
    size = checked_dtype(dtype).itemsize
    width = int(np.clip(_CACHE_BYTES // (lanes * size), 4000, 32_000))
    density = 20 / width
    shapes: list[tuple[tuple[int, ...], float]] = [((n_wide, 1), 16 / n_wide)]
    shapes += [((width,) * (1 + n_hidden) + (4,), density) for n_hidden in (1, 2)]
    layer = SparseMLP.start((9000, 9000), epsilon=10, seed=0, dtype=dtype).layers[0]
    layer.clear_state(n_states)
    # Interleaved in rounds, so that a short disturbance does not affect one measurement only.
    wide, one, two, rewiring = np.min(
        [
            [_seconds_per_step(*shape, dtype, lanes, rule, n_states, seed) for shape in shapes]
            + [_seconds_of_rewiring(layer, seed)]
            for seed in range(_ROUNDS)
        ],
        axis=0,
    ).tolist()
    per_value = wide / (n_wide * lanes)
    usual = connections_wanted((width, width), density=density) * relative_cost(
        width * lanes * size
    )
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
        # CPU time of this thread: other processes must not make a plan longer.
        started = time.thread_time()
        run()
        times.append(max(time.thread_time() - started, 1e-9))
    return min(times)


_CV_VALUES, _SHORT_CV_VALUES = 4e6, 1.6e7
_CV_STEPS, _SHORT_CV_STEPS = 3e8, 1.5e9


def work_of_fit(estimator: Any, data: Any) -> tuple[float, float]:
    """Return how long a fit is, relative to one to repeat 15 times and one to repeat 5 times.

    It depends on the data and the parameters only: on values for the closed form, else on
    connections times samples times epochs.
    """
    n_outputs = max(data.n_classes, 1)
    shape = Shape(data.n_samples, data.n_features, n_outputs, estimator._is_classifier)
    settings = resolve(estimator, shape)
    if settings.is_closed_form:
        # With many samples the samples-by-samples systems take most of the time.
        work = float(shape.n_samples) * max(shape.n_features, 4 * shape.n_samples)
        return work / _CV_VALUES, work / _SHORT_CV_VALUES
    if settings.averages:
        work = work_of_average(shape)
    else:
        work = float(sum(_connections(settings, shape))) * shape.n_samples * settings.max_iter
    return work / _CV_STEPS, work / _SHORT_CV_STEPS

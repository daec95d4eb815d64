"""Plans: memory and time of a fit, told before anything is allocated.

Memory is counted; `ratoon.estimators.speed` says how time is estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from ratoon.estimators.presets import Settings, Shape
from ratoon.estimators.speed import padded, seconds_of
from ratoon.history import duration
from ratoon.initialise import connections_wanted
from ratoon.kernels.types import checked_dtype, is_bfloat16

BLOCK = 32
"""Samples of a minibatch that native code takes at a time."""

_INDEX_BYTES = 4
_DRAWING_BYTES = 40  # per allowed position: inputs, outputs, places, empty ones, an order
_SCALING_BYTES = 16  # per feature: means and factors in double precision
_REGROWN = 0.3  # of a layer's connections, at the usual zeta
_LARGE_BYTES = 4 * 2**20  # from here on native code keeps an array it is done with for the next use
_STATISTICS_BYTES = 3 * 2**20  # a block of samples, and what it is made from


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
    scaling_bytes: int
    best_copy_bytes: int
    seconds_per_step: float
    seconds_per_epoch: float

    @property
    def n_connections(self) -> int:
        """Connections of all layers."""
        return sum(self.connections)

    @property
    def peak_bytes(self) -> int:
        """The most that is held at any moment."""
        # The working space is kept for the next epoch while a rewiring is under way.
        passing = self.workspace_bytes + self.rewiring_bytes
        staying = self.parameter_bytes + self.best_copy_bytes + self.scaling_bytes
        return max(staying + passing, _STATISTICS_BYTES)

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
    settings: Settings,
    shape: Shape,
    *,
    n_threads: int,
    keeps_best: bool = False,
    n_allowed: tuple[int, ...] = (),
) -> FitPlan:
    """Count the memory and estimate the time of a fit.

    ``n_allowed`` are the positions that layers with a limit may use.
    """
    widths = settings.widths(shape)
    layers = list(pairwise(widths))
    connections = settings.connections or tuple(
        connections_wanted(layer, epsilon=settings.epsilon, density=settings.density)
        for layer in layers  # raises for the layer that would have none
    )
    size = checked_dtype(settings.dtype).itemsize
    weight_size = 2 if is_bfloat16(settings.dtype) else size
    n_states = settings.optimizer.n_states
    biases = sum(widths[1:])
    per_connection = _INDEX_BYTES + weight_size + size * n_states
    parameters = sum(connections) * per_connection + biases * size * (1 + n_states)
    parameters += _INDEX_BYTES * sum(n_allowed)
    rewires = settings.evolution.schedule.until > 0
    within = max(n_allowed, default=0) * _DRAWING_BYTES
    per_step, per_epoch = seconds_of(settings, shape, connections, n_threads)
    return FitPlan(
        widths=widths,
        connections=connections,
        dtype=settings.dtype,
        batch_size=settings.batch_size,
        n_epochs=settings.max_iter,
        n_threads=n_threads,
        parameter_bytes=parameters,
        workspace_bytes=workspace_bytes(widths, settings.batch_size, size, n_threads)
        # Wide minibatches go through in blocks, and add their gradients up.
        + (sum(connections) + biases) * size * (settings.batch_size > BLOCK),
        rewiring_bytes=_rewiring_bytes(max(connections), weight_size) + within if rewires else 0,
        scaling_bytes=shape.n_features * _SCALING_BYTES,
        best_copy_bytes=parameters if keeps_best else 0,
        seconds_per_step=per_step,
        seconds_per_epoch=per_epoch,
    )


def _rewiring_bytes(n_connections: int, weight_size: int) -> int:
    """Return what rewiring the largest layer takes beside it.

    The next indices, and of every new connection its place and its first weight.  Where the present
    indices are kept as well, nine bytes per connection were measured.
    """
    if _INDEX_BYTES * n_connections >= _LARGE_BYTES:
        return n_connections * 9
    return round(n_connections * (_INDEX_BYTES + _REGROWN * (_INDEX_BYTES + weight_size)))


def workspace_bytes(widths: tuple[int, ...], batch: int, itemsize: int, n_threads: int = 1) -> int:
    """Return the working memory of a minibatch: activations of all layers, errors of two.

    Several threads have the inputs of the next minibatch besides.

    Examples
    --------
    >>> workspace_bytes((100, 50, 2), 5, 4), workspace_bytes((100, 50, 2), 5, 4, n_threads=2)
    (8064, 11264)
    """
    rows = sum(widths) + 2 * max(widths[1:])
    if n_threads > 1 and batch <= BLOCK:
        rows += widths[0]
    return rows * padded(min(batch, BLOCK)) * itemsize


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.3g} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:,.3g} GB"

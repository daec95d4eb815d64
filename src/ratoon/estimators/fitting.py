"""From settings and data to a network in training: the steps between `fit` and the epoch loop."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.estimators.presets import Shape
from ratoon.estimators.settings import Settings
from ratoon.evolution import State
from ratoon.history import History
from ratoon.initialise import connections_wanted, guided
from ratoon.kernels import Scaling
from ratoon.network import SparseMLP
from ratoon.rng import derive_seed
from ratoon.samples.statistics import ConstantFeatureWarning, feature_statistics
from ratoon.topology import Topology, Within
from ratoon.training import EarlyStopping


@dataclass
class Progress:
    """Where training stands: all that is needed to go on exactly, beside parameters and data.

    A *cycle* is one training of ``max_iter`` epochs.  Going on after its end begins another: the
    learning-rate schedule starts again, with new random numbers and a clean optimizer state.
    """

    seed: int
    shape: Shape
    latest: SparseMLP
    cycle: int = 0
    epochs_done: int = 0
    stopping: EarlyStopping | None = None
    history: History = field(default_factory=History)
    rewired: list[int] = field(default_factory=list)
    evolution_state: State | None = None

    @property
    def cycle_seed(self) -> int:
        """Root of this cycle's random numbers."""
        return derive_seed(self.seed, "cycle", self.cycle) if self.cycle else self.seed

    @property
    def best(self) -> SparseMLP:
        """The network to predict with: the best one where early stopping keeps it."""
        if self.stopping is not None and self.stopping.best_network is not None:
            return self.stopping.best_network
        return self.latest

    def begin_cycle(self, n_states: int) -> None:
        """Start another training from the network that is best so far."""
        self.latest = self.best.copy() if self.best is not self.latest else self.latest
        for layer in self.latest.layers:
            layer.clear_state(n_states)
        self.cycle += 1
        self.epochs_done = 0
        self.stopping = None
        self.evolution_state = None


def learn_scaling(
    x: Any, weights: Array | None, *, scale: str | None, clip: float, dtype: str
) -> Scaling:
    """Learn from the training rows how samples are to be read; constant features become 0."""
    found = feature_statistics(x, weights)
    if dtype == "float32" and found.largest > float(np.finfo(np.float32).max):
        raise InvalidInputError(
            f"X holds values up to {found.largest:.3g}, too large for float32.\n"
            f'  Scale them down, or set `dtype="float64"`.'
        )
    if scale is None:
        return Scaling(None, None, clip)
    if n_constant := int(found.constant.sum()):
        warnings.warn(
            f"{n_constant} of {found.constant.size} features have the same value in all training"
            f" samples and are ignored.",
            ConstantFeatureWarning,
            stacklevel=7,
        )
    # Centring would turn every zero of a sparse matrix into something else.
    shift = None if scipy.sparse.issparse(x) else found.mean
    # What float32 cannot hold would become infinite.
    factors = np.minimum(found.factors(), 1e37) if dtype != "float64" else found.factors()
    return Scaling(shift, factors, clip)


def start_network(
    settings: Settings,
    shape: Shape,
    *,
    scaling: Scaling,
    topology: Sequence[Any] | None,
    seed: int,
    n_threads: int,
    guide: Array | None = None,
) -> SparseMLP:
    """Draw the network a training starts from; its first connections by strengths, if given."""
    widths = settings.widths(shape)
    topologies = None if topology is None else checked_topologies(topology, widths)
    if guide is not None and (topologies is None or topologies[0] is None):
        first = (widths[0], widths[1])
        wanted = connections_wanted(first, epsilon=settings.epsilon, density=settings.density)
        drawn = guided(first, wanted, guide, seed=seed, n_threads=n_threads)
        topologies = [drawn, *(topologies or [None] * (len(widths) - 1))[1:]]
    return SparseMLP.start(
        widths,
        seed=seed,
        epsilon=settings.epsilon,
        density=settings.density,
        start="exact" if guide is not None else settings.start,
        init=settings.init,
        output_init=settings.output_init,
        activation=settings.activation,
        slope=settings.slope,
        dropout=settings.dropout,
        topologies=topologies,
        scaling=scaling,
        dtype=settings.dtype,
        n_threads=n_threads,
    )


def checked_topologies(
    given: Sequence[Any], widths: Sequence[int]
) -> list[Topology | Within | None]:
    """Return one topology, limit or None per layer; layers that were not given are None.

    Examples
    --------
    >>> pathways = scipy.sparse.eye_array(4, 3)
    >>> checked_topologies([pathways], (4, 3, 2))
    [Topology(4 -> 3, 3 connections, density 0.25), None]
    """
    shapes = list(pairwise(widths))
    if len(given) > len(shapes):
        raise InvalidParameterError(
            f"`topology` names {len(given)} layers, the network has {len(shapes)}."
        )
    found: list[Topology | Within | None] = []
    for index, layer in enumerate(given):
        if scipy.sparse.issparse(layer):
            layer = Topology.from_scipy(layer)[0]
        if layer is not None and layer.shape != shapes[index]:
            raise InvalidParameterError(
                f"`topology[{index}]` is {layer.shape[0]} -> {layer.shape[1]}, but layer {index} of"
                f" this network is {shapes[index][0]} -> {shapes[index][1]}.\n"
                f'  Give the widths of the layers as `hidden_layer_sizes`, or leave it at "auto".'
            )
        found.append(layer)
    return found + [None] * (len(shapes) - len(given))

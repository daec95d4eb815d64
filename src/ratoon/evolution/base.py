"""What every evolution strategy is given, and what it must give back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from ratoon.evolution.clock import Clock, RewiringSchedule
from ratoon.layers import SparseLayer
from ratoon.rng import derive_seed
from ratoon.topology import Rewiring, Topology

Array = NDArray[Any]
Signals = tuple[Array, Array]
"""Activations (n_in, batch) and errors (n_out, batch) of a layer for one minibatch."""


@dataclass(frozen=True, eq=False)
class LayerState:
    """What a strategy may look at: read-only, and never a dense matrix.

    Parameters
    ----------
    topology : Topology
        The connections as they are.
    weights : ndarray
        Their weights.
    state : tuple of ndarray
        What the optimizer keeps per connection: momentum, or Adam's two moments.
    init : str
        How first weights of this layer are drawn (see `ratoon.initialise.weight_scale`).
    signals : callable, optional
        Returns activations and errors of the minibatch that comes next, computed when called.
        The gradient at position (i, j) is ``activations[i] @ errors[j]``.
    n_threads : int
        Threads that kernels may use; results do not depend on it.
    """

    topology: Topology
    weights: Array
    state: tuple[Array, ...] = ()
    init: str = "he"
    signals: Callable[[], Signals] | None = None
    n_threads: int = 1


class Strategy(Protocol):
    """A rule that says when and how the layers of a network rewire."""

    @property
    def schedule(self) -> RewiringSchedule:
        """When to rewire."""
        ...

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Return one rewiring per layer; change nothing in place."""
        ...


@runtime_checkable
class InPlaceStrategy(Protocol):
    """A strategy that also has a faster way, with the very same result."""

    def rewire_in_place(self, layer: SparseLayer, clock: Clock, seed: int, n_threads: int) -> int:
        """Rewire one layer and return how many connections are new."""
        ...


class LayerwiseStrategy(ABC):
    """For strategies that look at one layer at a time."""

    @property
    @abstractmethod
    def schedule(self) -> RewiringSchedule:
        """When to rewire."""

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Rewire every layer that is not full, each with random numbers of its own."""
        return [
            Rewiring.unchanged(layer.topology)
            if layer.topology.is_full
            else self.rewire_layer(layer, clock, layer_seed(seed, index))
            for index, layer in enumerate(layers)
        ]

    @abstractmethod
    def rewire_layer(self, layer: LayerState, clock: Clock, seed: int) -> Rewiring:
        """Return the next topology of ``layer``, which is itself left untouched."""


def layer_seed(seed: int, index: int) -> int:
    """Return the seed of one layer at one rewiring."""
    return derive_seed(seed, "rewire layer", index)

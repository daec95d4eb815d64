"""NeuroFS, pruning and regrowing input neurons (Atashgahi et al., TMLR 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ratoon.errors import InvalidParameterError, check_fraction
from ratoon.evolution.base import (
    LayerState,
    ScheduledFraction,
    Signals,
    State,
    StatefulStrategy,
    layer_seed,
)
from ratoon.evolution.clock import Clock
from ratoon.evolution.grow import (
    compose,
    empty_allowed,
    gradients_at,
    grow_largest_gradients,
    largest,
    largest_positions,
    retiled,
    signals_of,
)
from ratoon.evolution.prune import strongest_of_each_sign
from ratoon.evolution.recent import RecentGradients, n_remembered
from ratoon.kernels.absent import grow_at, largest_absent_per_output
from ratoon.rng import derive_generator
from ratoon.topology import IntArray, Rewiring, Topology

MAX_COLUMNS = 32
"""How many columns to remember at most; the smallest singular values of more are dropped."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class NeuroFS(ScheduledFraction, StatefulStrategy):
    """Prune and regrow input neurons until a given number of features is left.

    The number of active inputs, those with connections, falls linearly from all to ``n_features``
    at ``remove_until``.  A rewiring of the first layer prunes the inputs with the smallest
    ``sum |w|``, with all their connections, and some more: ``zeta_inputs * (1 - p)`` times the
    number removed so far, where p is the completed fraction of training.  As many inactive inputs
    return: those with the largest gradient at any of their positions, summed over the last
    minibatches as in `SNFS`.  An input that has just returned is kept at the next rewiring instead
    of exchanging another one.  Of the other connections, in all layers, the fraction ``zeta(t)``
    of each sign nearest to zero is pruned.  The layers grow back to their numbers of connections
    where the gradient is largest, the first one at its active inputs, with weights of 0.

    Parameters
    ----------
    n_features : int or float, default=50
        Features left at the end: a number, or a fraction of the inputs in (0, 1).
    zeta : float, default=0.2
        Fraction of the connections replaced at each rewiring (zeta_hid in the released code).
    zeta_inputs : float, default=0.4
        Inputs exchanged at the start of training, as a fraction of those removed.
    momentum : float, default=0.9
        Factor by which the gradients of past minibatches decay per step; 0 uses those of the next
        minibatch alone.
    remove_until : float, default=0.65
        Fraction of training after which the number of active inputs is constant.
    every : int, default=1
        Epochs between two rewirings.
    until : float, default=1.0
        Fraction of training after which the topology no longer changes.
    anneal : {"constant", "linear", "cosine"}, default="constant"
        How zeta falls to 0 by then.

    Notes
    -----
    The number of connections of the first layer is constant as long as its active inputs have that
    many positions, and falls with them then.  The number of features is reached at the first
    rewiring after ``remove_until``.

    Cost: one more forward and backward pass for each watched step; per rewiring two searches as in
    `RigL`, and about 0.1 microseconds per connection.  Memory: 32 numbers per input and output of
    the first layer, also between rewirings.

    Examples
    --------
    >>> neurofs = NeuroFS(20)
    >>> [neurofs.n_active(100, progress) for progress in (0.0, 0.325, 0.65, 1.0)]
    [100, 60, 20, 20]
    """

    keeps = "fewer"
    rewires_full_layers = True

    n_features: int | float = 50
    zeta: float = 0.2
    zeta_inputs: float = 0.4
    momentum: float = 0.9
    remove_until: float = 0.65
    every: int = 1
    until: float = 1.0
    anneal: str = "constant"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("zeta_inputs", "momentum"):
            check_fraction(name, getattr(self, name), owner="NeuroFS")
        is_number = isinstance(self.n_features, int | float | np.number)
        is_count = is_number and self.n_features >= 1 and float(self.n_features).is_integer()
        if isinstance(self.n_features, bool) or not (
            is_count or (is_number and 0.0 < self.n_features < 1.0)
        ):
            raise InvalidParameterError(
                f"NeuroFS: `n_features` must be a whole number of at least 1 or a fraction in"
                f" (0, 1), got {self.n_features!r}."
            )
        if not 0.0 < self.remove_until <= self.until:
            raise InvalidParameterError(
                f"NeuroFS: `remove_until` must be in (0, until], got {self.remove_until!r} with"
                f" until={self.until!r}."
            )

    @property
    def n_watched(self) -> int:
        """The number of steps after which a gradient has decayed below one per cent."""
        return n_remembered(self.momentum) if self.momentum > 0 else 0

    def n_active(self, n_inputs: int, progress: float) -> int:
        """Return the number of active inputs at this time, of ``n_inputs``."""
        wanted = self.n_features if self.n_features >= 1 else self.n_features * n_inputs
        last = min(n_inputs, max(1, round(wanted)))
        return n_inputs - round((n_inputs - last) * min(1.0, progress / self.remove_until))

    def start_state(self, layers: Sequence[LayerState], seed: int) -> State:
        """Return which inputs have just returned: none; and no gradients."""
        del seed
        first = layers[0]
        state: State = {"returned": np.zeros(first.topology.shape[0], dtype=bool)}
        return state | RecentGradients.empty(first.topology.shape, first.weights.dtype).to_state(
            "0"
        )

    def watch(self, state: State, layers: Sequence[LayerState], clock: Clock) -> State:
        """Add the gradients of the next minibatch."""
        return state | self._with_minibatch(state, layers[0], clock).to_state("0")

    def _with_minibatch(self, state: State, layer: LayerState, clock: Clock) -> RecentGradients:
        return RecentGradients.from_state(state, "0").with_minibatch(
            signals_of(layer), clock.step, mu=self.momentum, max_columns=MAX_COLUMNS
        )

    def rewire_from(
        self, state: State, layers: Sequence[LayerState], clock: Clock, seed: int
    ) -> tuple[list[Rewiring], State]:
        """Return one rewiring per layer."""
        factors = signals_of(layers[0])
        if self.momentum > 0:
            factors = self._with_minibatch(state, layers[0], clock).factors
        first, returned = self._first(
            layers[0], factors, state["returned"], clock, layer_seed(seed, 0)
        )
        rewirings = [first]
        for index, layer in enumerate(layers[1:], 1):
            if layer.is_full:
                rewirings.append(Rewiring.unchanged(layer.topology))
                continue
            kept = strongest_of_each_sign(layer.weights, self.fraction(clock))
            count = layer.topology.n_connections - kept.size
            rewirings.append(grow_largest_gradients(layer, kept, count, layer_seed(seed, index)))
        return rewirings, {**state, "returned": returned}

    def _first(
        self, layer: LayerState, signals: Signals, returned: Flags, clock: Clock, seed: int
    ) -> tuple[Rewiring, Flags]:
        topology = layer.topology
        n_in = topology.shape[0]
        n_active = self.n_active(n_in, clock.progress)
        n_exchanged = int((n_in - n_active) * self.zeta_inputs * (1.0 - clock.progress))
        stays = strongest_inputs(layer, returned, max(1, n_active - n_exchanged), n_active)
        slots = np.flatnonzero(stays[topology.rows])
        kept = slots[strongest_of_each_sign(layer.weights[slots], self.fraction(clock))]
        n_new = min(n_active - int(np.count_nonzero(stays)), topology.n_connections - kept.size)
        best = best_positions(layer, signals, ~stays, n_new)
        comes = np.zeros(n_in, dtype=bool)
        comes[best // topology.shape[1]] = True
        rewiring = grow_at(topology, kept, best)
        missing = topology.n_connections - rewiring.topology.n_connections
        rewiring = grow_at_inputs(layer, rewiring, signals, stays | comes, missing, seed)
        return retiled(rewiring), comes


def strongest_inputs(layer: LayerState, returned: Flags, n_strong: int, n_active: int) -> Flags:
    """Return the connected inputs left: the strongest, and those that have just returned.

    The latter fill the places between ``n_strong`` and ``n_active``, the strongest first.

    Examples
    --------
    >>> topology = Topology.from_pairs((4, 1), [0, 1, 2], [0, 0, 0])
    >>> layer = LayerState(topology, np.array([1.0, -3.0, 2.0]))
    >>> strongest_inputs(layer, np.array([True, False, False, True]), 1, 2).tolist()
    [True, True, False, False]
    """
    n_in = layer.topology.shape[0]
    rows = layer.topology.rows
    strength = np.bincount(rows, weights=np.abs(layer.weights), minlength=n_in)
    connected = np.flatnonzero(np.bincount(rows, minlength=n_in))
    by_strength = connected[np.argsort(-strength[connected], kind="stable")]
    recent = by_strength[n_strong:][returned[by_strength[n_strong:]]]
    stays = np.zeros(n_in, dtype=bool)
    stays[by_strength[:n_strong]] = True
    stays[recent[: max(0, n_active - n_strong)]] = True
    return stays


def best_positions(layer: LayerState, signals: Signals, is_wanted: Flags, count: int) -> IntArray:
    """Return the position with the largest gradient of each of the ``count`` best inputs.

    Only the wanted inputs are searched, and positions without a gradient are left out.
    """
    n_in, n_out = layer.topology.shape
    if count <= 0 or not is_wanted.any():
        return np.empty(0, dtype=np.int64)
    if layer.allowed is None:
        # The search per output, with inputs and outputs exchanged.
        nothing = Topology.from_pairs((n_out, n_in), [], [])
        found = largest_absent_per_output(
            nothing,
            np.empty(0, dtype=np.int64),
            signals[1],
            signals[0],
            is_wanted.astype(np.int64),
            n_threads=layer.n_threads,
        )
        positions = np.sort(found % n_in * n_out + found // n_in)
    else:
        positions = np.sort(layer.allowed.positions)
        positions = positions[is_wanted[positions // n_out]]
        sizes = np.abs(gradients_at(signals, n_out, positions))
        order = np.lexsort((-sizes, positions // n_out))
        order = order[sizes[order] > 0]
        is_first = np.diff(positions[order] // n_out, prepend=-1) != 0
        positions = positions[order[is_first]]
    best: IntArray = positions[largest(gradients_at(signals, n_out, positions), count)]
    return best


def grow_at_inputs(
    layer: LayerState,
    rewiring: Rewiring,
    signals: Signals,
    is_active: Flags,
    count: int,
    seed: int,
) -> Rewiring:
    """Grow up to ``count`` connections of active inputs: largest gradients, then at random."""
    before = rewiring.topology
    every_slot = np.arange(before.n_connections)
    x, d = signals
    here = replace(layer, topology=before)
    positions = largest_positions(here, every_slot, (x * is_active[:, None], d), count)
    rewiring = compose(rewiring, grow_at(before, every_slot, positions))
    positions = drawn_at_inputs(
        replace(layer, topology=rewiring.topology), is_active, count - positions.size, seed
    )
    if positions.size == 0:
        return rewiring
    every_slot = np.arange(rewiring.topology.n_connections)
    return compose(rewiring, grow_at(rewiring.topology, every_slot, positions))


def drawn_at_inputs(layer: LayerState, is_active: Flags, count: int, seed: int) -> IntArray:
    """Draw up to ``count`` empty positions of active inputs, each equally likely."""
    n_out = layer.topology.shape[1]
    inputs = np.flatnonzero(is_active)
    if count <= 0 or inputs.size == 0:
        return np.empty(0, dtype=np.int64)
    if layer.allowed is not None:
        empty = empty_allowed(layer, np.arange(layer.topology.n_connections))
        empty = empty[is_active[empty // n_out]]
        generator = derive_generator(seed, "within")
        count = min(count, empty.size)
        return np.sort(generator.choice(empty, size=count, replace=False, shuffle=False))
    # Draw in the layer of the active inputs alone.
    rows, columns = layer.topology.pairs()
    occupied = is_active[rows]
    number = np.cumsum(is_active) - 1
    alone = Topology.from_pairs((inputs.size, n_out), number[rows[occupied]], columns[occupied])
    count = min(count, alone.n_positions - alone.n_connections)
    grown = alone.regrow(np.arange(alone.n_connections), count, seed=seed)
    drawn = grown.topology.positions[grown.is_grown]
    return np.sort(inputs[drawn // n_out] * n_out + drawn % n_out)

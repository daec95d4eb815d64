"""TrainingState: what a training has reached, and all it needs to continue."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ratoon.evolution import State
from ratoon.history import History
from ratoon.network import SparseMLP
from ratoon.rng import derive_seed
from ratoon.training.stopping import EarlyStopping


@dataclass(eq=False)
class TrainingState:
    """What a training has reached.

    Together with the plan and the data this is enough to continue to the same bits: random
    numbers are functions of the seed, the cycle and the epoch.  `Training` advances it, estimators
    keep it, `ratoon.storage` writes it and ranks exchange it.

    A *cycle* is one run through a plan.  Training after its end begins another: the learning-rate
    schedule starts again, with new random numbers and an empty optimizer state.

    Parameters
    ----------
    network : SparseMLP
        The network as the last step left it, with the optimizer's state.
    seed : int
        Root of all random numbers; `cycle_seed` is that of the current cycle.
    cycle : int
        Number of the current cycle, from 0.
    epochs_done : int
        Completed epochs of the current cycle.
    history : History
        The records of all cycles.
    rewired_by_layer : list of int
        Connections replaced so far, in each layer.
    evolution_state : dict of ndarray, optional
        What the strategy remembers; None before its first step.
    stopping : EarlyStopping, optional
        Best score and best network, where there is early stopping.

    Examples
    --------
    >>> state = TrainingState(SparseMLP.start((4, 8, 2), density=0.5, seed=0), seed=3)
    >>> state.epochs_done, state.rewired_by_layer, state.best is state.network
    (0, [0, 0], True)
    """

    network: SparseMLP
    seed: int = 0
    cycle: int = 0
    epochs_done: int = 0
    history: History = field(default_factory=History)
    rewired_by_layer: list[int] = field(default_factory=list)
    evolution_state: State | None = None
    stopping: EarlyStopping | None = None

    def __post_init__(self) -> None:
        if not self.rewired_by_layer:
            self.rewired_by_layer = [0] * len(self.network.layers)

    @property
    def cycle_seed(self) -> int:
        """Root of the random numbers of the current cycle."""
        return derive_seed(self.seed, "cycle", self.cycle) if self.cycle else self.seed

    @property
    def epochs_before(self) -> int:
        """Completed epochs of earlier cycles."""
        return max(len(self.history) - self.epochs_done, 0)

    @property
    def best(self) -> SparseMLP:
        """The network to predict with: the best one where early stopping keeps it."""
        if self.stopping is not None and self.stopping.best_network is not None:
            return self.stopping.best_network
        return self.network

    def begin_cycle(self, n_states: int) -> None:
        """Begin the next cycle with the best network and ``n_states`` optimizer arrays of zeros."""
        self.network = self.best.copy() if self.best is not self.network else self.network
        for layer in self.network.layers:
            layer.clear_state(n_states)
        self.cycle += 1
        self.epochs_done = 0
        self.stopping = None
        self.evolution_state = None

    def take_over(self, other: TrainingState) -> None:
        """Continue where another state of the same training is, in place.

        The seed, the cycle and the parameters of early stopping are settings of a training, not
        results of it, and stay.
        """
        self.network.layers = other.network.layers
        self.network.scaling = other.network.scaling
        self.epochs_done = other.epochs_done
        self.history.records[:] = other.history.records
        self.rewired_by_layer = list(other.rewired_by_layer)
        self.evolution_state = other.evolution_state
        if self.stopping is not None and other.stopping is not None:
            self.stopping.take_over(other.stopping)

    def snapshot(self) -> TrainingState:
        """Return the state of this moment; its arrays are shared, and change in the next step."""
        return replace(
            self,
            network=SparseMLP(list(self.network.layers), self.network.scaling),
            history=History(list(self.history.records)),
            rewired_by_layer=list(self.rewired_by_layer),
            evolution_state=None if self.evolution_state is None else dict(self.evolution_state),
            stopping=None if self.stopping is None else replace(self.stopping),
        )

    def copy(self) -> TrainingState:
        """Return a snapshot whose network is a copy, to keep while training continues."""
        return replace(self.snapshot(), network=self.network.copy())

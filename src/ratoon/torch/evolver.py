"""Evolver: rewire the sparse layers of a PyTorch model by the strategies of `ratoon.evolution`.

When several processes train one model (DDP), weights, optimizer state and seed are the same on all
ranks; only the samples differ.  The signals of a layer are therefore gathered from all ranks.  All
ranks then draw the same rewiring, which is checked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ratoon import guard
from ratoon.errors import InvalidInputError, InvalidParameterError, RatoonError
from ratoon.evolution import (
    Clock,
    InPlaceStrategy,
    LayerState,
    RewiringSchedule,
    State,
    StatefulStrategy,
    Strategy,
    layer_seed,
    make_strategy,
    rewire_from,
    rewires_full_layers,
    start_state,
    warn_if_all_full,
)
from ratoon.evolution.base import Signals
from ratoon.rng import derive_seed
from ratoon.torch.carry import (
    apply_rewiring,
    can_move_in_place,
    per_connection,
    rewire_in_place,
    signals_of,
)
from ratoon.torch.connections import SparseConnections


def group_of(model: torch.nn.Module) -> Any | None:
    """Return the process group of a model, or None if one process trains it."""
    for module in model.modules():
        if isinstance(module, DistributedDataParallel):
            return module.process_group
    return None


def gathered(signals: Signals, group: Any) -> Signals:
    """Return the signals of a layer on all ranks, in the order of the ranks.

    The loss of a rank is the mean over its own samples, and DDP takes the mean over ranks.
    """
    parts: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(parts, signals, group=group)
    inputs, errors = (np.concatenate(kind, axis=1) for kind in zip(*parts, strict=True))
    errors /= len(parts)
    return inputs, errors


def check_agreement(layers: Sequence[SparseConnections], group: Any) -> None:
    """Raise unless all ranks have the same connections and weights."""
    digest = hashlib.sha256()
    for layer in layers:
        digest.update(layer.topology.content_hash().encode())
        digest.update(layer.values.detach().numpy().tobytes())
    mine = int.from_bytes(digest.digest()[:7], "little")
    ends = torch.tensor([mine, -mine])
    dist.all_reduce(ends, dist.ReduceOp.MAX, group=group)
    if ends[0] != -ends[1]:
        raise RatoonError(
            "the ranks have different connections or weights after a rewiring.\n"
            "  Use the same seed, strategy and optimizer on all ranks, and the same instruction"
            " set (RATOON_ISA)."
        )


FOREVER = 2**62


class Evolver:
    """Rewires the sparse layers of a model while an optimizer trains it.

    Call `step` after each step of the optimizer.  When a rewiring is due, the strategy prunes and
    grows connections.  Optimizer state per connection (momentum, the moments of Adam, anything of
    the weights' shape) moves with its connection.  Parameters stay the same objects, so the
    optimizer needs no change.

    Parameters
    ----------
    model : torch.nn.Module
        Model whose sparse layers are rewired, if the optimizer trains their ``values``.  With
        several processes, pass the `DistributedDataParallel` module: all ranks then rewire alike.
    optimizer : torch.optim.Optimizer
        Any optimizer that stores its state per parameter.
    strategy : str or Strategy, default="set"
        Any strategy of `ratoon.evolution`, by name or as an object.
    schedule : RewiringSchedule, optional
        When to rewire.  The default is the strategy's own schedule, which always determines the
        annealing of the replaced fraction.
    total_steps : int, optional
        Number of steps of the training; required by schedules with annealing or ``until``.  There
        is no rewiring after the last step.
    steps_per_epoch : int, optional
        ``len(loader)``; required by schedules that count epochs.
    seed : int, default=0
        Root seed.

    Notes
    -----
    Strategies that use gradients of absent connections (RigL and others) get the activations and
    errors of the last step.  They are recorded only in steps in which the strategy needs them.

    Examples
    --------
    >>> from ratoon.evolution import SET
    >>> from ratoon.torch import SparseLinear
    >>> model = SparseLinear(100, 50, density=0.1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    >>> evolver = Evolver(model, optimizer, SET(zeta=0.3), steps_per_epoch=2)
    >>> for x in torch.ones(4, 8, 100):
    ...     optimizer.zero_grad()
    ...     model(x).square().mean().backward()
    ...     optimizer.step()
    ...     evolver.step()
    0
    150
    0
    150
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        strategy: str | Strategy = "set",
        schedule: RewiringSchedule | None = None,
        *,
        total_steps: int | None = None,
        steps_per_epoch: int | None = None,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.strategy = make_strategy(strategy)
        self.schedule = self.strategy.schedule if schedule is None else schedule
        self.total_steps = total_steps
        self.steps_per_epoch = steps_per_epoch
        self.seed = seed
        self.steps_done = 0
        self._recording = False
        self._check()
        states = self._layer_states()
        warn_if_all_full(self.strategy, states)
        self.strategy_state: State = start_state(self.strategy, states, seed)
        self._record_if_needed()

    # ------------------------------------------------------------------------------- training

    @property
    def layers(self) -> list[SparseConnections]:
        """The layers that are rewired, in the order of the model."""
        trained = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
        return [
            module
            for module in self.model.modules()
            if isinstance(module, SparseConnections) and id(module.values) in trained
        ]

    @property
    def clock(self) -> Clock:
        """The current position in training."""
        total = FOREVER if self.total_steps is None else self.total_steps
        return Clock(self.steps_done, self.steps_per_epoch or total, total)

    def step(self) -> int:
        """Count one step, rewire if due, and return the number of new connections.

        Raises
        ------
        AlreadyTrainingError
            If another thread is in `step` or `rewire` of this evolver.
        """
        with guard.training(self, name="the model of this Evolver"):
            return self._step()

    def _step(self) -> int:
        if isinstance(self.strategy, StatefulStrategy) and self._is_watched(self.steps_done):
            self.strategy_state = self.strategy.watch(
                self.strategy_state, self._layer_states(), self.clock
            )
        self.steps_done += 1
        n_grown = self.rewire() if self._is_due(self.steps_done) else 0
        self._record_if_needed()
        return n_grown

    def rewire(self) -> int:
        """Rewire now and return the number of new connections."""
        with guard.training(self, *self.layers, name="the model of this Evolver"):
            n_grown = self._rewire()
        if (group := group_of(self.model)) is not None:
            check_agreement(self.layers, group)
        return n_grown

    def _rewire(self) -> int:
        seed = derive_seed(self.seed, "rewire", self.steps_done)
        layers, clock = self.layers, self.clock
        states: list[dict[Any, Any]] = [self.optimizer.state[layer.values] for layer in layers]
        if isinstance(self.strategy, InPlaceStrategy) and all(
            can_move_in_place(*pair) for pair in zip(layers, states, strict=True)
        ):
            return sum(
                rewire_in_place(layer, self.strategy, clock, layer_seed(seed, index), state)
                for index, (layer, state) in enumerate(zip(layers, states, strict=True))
                if rewires_full_layers(self.strategy) or not layer.topology.is_full
            )
        rewirings, self.strategy_state = rewire_from(
            self.strategy, self.strategy_state, self._layer_states(), clock, seed
        )
        for layer, rewiring, state in zip(layers, rewirings, states, strict=True):
            apply_rewiring(layer, rewiring, state)
        return sum(rewiring.n_grown for rewiring in rewirings)

    # ------------------------------------------------------------------------ saving, loading

    def state_dict(self) -> dict[str, Any]:
        """Return the state needed to resume exactly, together with those of model and optimizer."""
        remembered = {
            name: torch.from_numpy(np.array(array)) for name, array in self.strategy_state.items()
        }
        return {"steps_done": self.steps_done, "seed": self.seed, "strategy_state": remembered}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from the state of an evolver."""
        if set(state) != {"steps_done", "seed", "strategy_state"}:
            raise InvalidInputError(f"not the state of an evolver: it has {sorted(state)}.")
        self.steps_done, self.seed = int(state["steps_done"]), int(state["seed"])
        remembered = state["strategy_state"].items()
        self.strategy_state = {name: tensor.numpy().copy() for name, tensor in remembered}
        self._record_if_needed()

    # -------------------------------------------------------------------------------- details

    def _check(self) -> None:
        schedule = self.schedule
        for name in ("total_steps", "steps_per_epoch"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidParameterError(f"Evolver: `{name}` must be at least 1, got {value!r}.")
        if schedule.until > 0 and schedule.unit == "epoch" and self.steps_per_epoch is None:
            raise InvalidParameterError(
                "Evolver: the schedule counts epochs; pass `steps_per_epoch=len(loader)`,\n"
                "  or count steps: `schedule=RewiringSchedule(every=100, unit='step')`."
            )
        annealings = {schedule.anneal, self.strategy.schedule.anneal}
        needs_length = (
            0 < schedule.until < 1 or annealings != {"constant"} or schedule.unit == "permille"
        )
        if needs_length and self.total_steps is None:
            raise InvalidParameterError(
                "Evolver: the schedule depends on the length of training; pass `total_steps`."
            )
        if not self.layers:
            raise InvalidInputError(
                "Evolver: the optimizer trains no sparse layer of this model.\n"
                "  Build the optimizer from `model.parameters()` after `sparsify_(model, ...)`."
            )

    def _is_due(self, step: int) -> bool:
        clock = self.clock.at(step)
        return step < clock.total_steps and step in self.schedule.due_steps(clock, step + 1)

    def _is_watched(self, step: int) -> bool:
        if not isinstance(self.strategy, StatefulStrategy):
            return False
        return any(self._is_due(step + 1 + ahead) for ahead in range(self.strategy.n_watched))

    def _record_if_needed(self) -> None:
        """Switch recording on or off in all layers, for the next step."""
        # In-place strategies do not use signals.
        needed = self._is_watched(self.steps_done) or (
            self._is_due(self.steps_done + 1) and not isinstance(self.strategy, InPlaceStrategy)
        )
        if needed or self._recording:  # most steps need no loop over the layers
            for layer in self.layers:
                layer.handle.recording = needed
                layer.handle.recorded.clear()
        self._recording = needed

    def _layer_states(self) -> list[LayerState]:
        rates = {
            id(parameter): float(group["lr"])
            for group in self.optimizer.param_groups
            for parameter in group["params"]
        }
        seen = []
        for layer in self.layers:
            kept = per_connection(self.optimizer.state.get(layer.values, {}), layer.values)
            seen.append(
                LayerState(
                    layer.topology,
                    layer.values.detach().numpy(),
                    tuple(tensor.numpy() for _, tensor in kept),
                    layer.init,
                    partial(self._signals, layer),
                    torch.get_num_threads(),
                    rates[id(layer.values)],
                )
            )
        return seen

    def _signals(self, layer: SparseConnections) -> Signals:
        if not layer.handle.recorded:
            raise InvalidInputError(
                f"{self.strategy!r} uses gradients of absent connections, but a layer had no"
                " backward pass in the last step.\n"
                "  Call `evolver.step()` once after each `loss.backward()` and"
                " `optimizer.step()`."
            )
        group = group_of(self.model)
        signals = signals_of(layer)
        return signals if group is None else gathered(signals, group)

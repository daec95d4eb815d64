"""Evolver: rewire the sparse layers of a PyTorch model by the strategies of `ratoon.evolution`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

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
    start_state,
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
    """Return the process group that trains the model, or None if this process does it alone."""
    for module in model.modules():
        if isinstance(module, DistributedDataParallel):
            return module.process_group
    return None


def heard_by_all(signals: Signals, group: Any) -> Signals:
    """Return what flowed through a layer on all ranks, in their order.

    Each rank's loss is the mean of its own samples, and DDP takes the mean of the ranks.
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
            "ranks disagree about the connections after a rewiring.\n"
            "  Give all of them the same seed, strategy and optimizer, and run them on the same"
            " instruction set (RATOON_ISA)."
        )


FOREVER = 2**62


class Evolver:
    """Rewires the sparse layers of a model while an optimizer trains it.

    Call `step` after each step of the optimizer.  When a rewiring is due, weights are pruned and
    grown as the strategy says, and all that the optimizer keeps per connection (momentum, moments
    of Adam, anything of the weights' shape) moves along with its connection.  Parameters stay the
    same objects, so the optimizer needs no word of it.

    Parameters
    ----------
    model : torch.nn.Module
        Its sparse layers whose ``values`` the optimizer trains are rewired; others are left.  Where
        several processes train it, give the `DistributedDataParallel` around it: all of them then
        rewire alike.
    optimizer : torch.optim.Optimizer
        Any that keeps its state per parameter.
    strategy : str or Strategy, default="set"
        What to prune and grow: ``"set"``, ``SET(zeta=0.3)``, any strategy of `ratoon.evolution`.
    schedule : RewiringSchedule, optional
        When to rewire, instead of the strategy's own schedule.  How much is replaced over time
        stays the strategy's business.
    total_steps : int, optional
        Length of training, for schedules that look at it (annealing, ``until``).  There is no
        rewiring after the last step.
    steps_per_epoch : int, optional
        For schedules that count epochs: ``len(loader)``.
    seed : int, default=0
        Root of all random numbers.

    Notes
    -----
    Strategies that look at gradients of absent connections (RigL and others) are shown what
    flowed through each layer in the step just done.  It is kept for those steps only.

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
        self._listening = False
        self._check()
        self.strategy_state: State = start_state(self.strategy, self._layer_states(), seed)
        self._listen()

    # -------------------------------------------------------------------------------- running

    @property
    def layers(self) -> list[SparseConnections]:
        """The layers that are rewired, in the model's order."""
        trained = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
        return [
            module
            for module in self.model.modules()
            if isinstance(module, SparseConnections) and id(module.values) in trained
        ]

    @property
    def clock(self) -> Clock:
        """Where training stands."""
        total = FOREVER if self.total_steps is None else self.total_steps
        return Clock(self.steps_done, self.steps_per_epoch or total, total)

    def step(self) -> int:
        """Count one step of the optimizer, rewire if that is due, return how many are new."""
        if isinstance(self.strategy, StatefulStrategy) and self._is_watched(self.steps_done):
            self.strategy_state = self.strategy.watch(
                self.strategy_state, self._layer_states(), self.clock
            )
        self.steps_done += 1
        n_grown = self.rewire() if self._is_due(self.steps_done) else 0
        self._listen()
        return n_grown

    def rewire(self) -> int:
        """Rewire now, whatever the schedule says, and return how many connections are new."""
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
                if not layer.topology.is_full
            )
        rewirings, self.strategy_state = rewire_from(
            self.strategy, self.strategy_state, self._layer_states(), clock, seed
        )
        for layer, rewiring, state in zip(layers, rewirings, states, strict=True):
            apply_rewiring(layer, rewiring, state)
        return sum(rewiring.n_grown for rewiring in rewirings)

    # ------------------------------------------------------------------------ saving, loading

    def state_dict(self) -> dict[str, Any]:
        """Return all that is needed to go on exactly, once model and optimizer are restored."""
        remembered = {
            name: torch.from_numpy(np.array(array)) for name, array in self.strategy_state.items()
        }
        return {"steps_done": self.steps_done, "seed": self.seed, "strategy_state": remembered}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where another evolver stood."""
        if set(state) != {"steps_done", "seed", "strategy_state"}:
            raise InvalidInputError(f"not the state of an evolver: it has {sorted(state)}.")
        self.steps_done, self.seed = int(state["steps_done"]), int(state["seed"])
        remembered = state["strategy_state"].items()
        self.strategy_state = {name: tensor.numpy().copy() for name, tensor in remembered}
        self._listen()

    # -------------------------------------------------------------------------------- details

    def _check(self) -> None:
        schedule = self.schedule
        for name in ("total_steps", "steps_per_epoch"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidParameterError(f"Evolver: `{name}` must be at least 1, got {value!r}.")
        if schedule.until > 0 and schedule.unit == "epoch" and self.steps_per_epoch is None:
            raise InvalidParameterError(
                "Evolver: the schedule counts epochs; say how many steps one has with"
                " `steps_per_epoch=len(loader)`,\n"
                "  or count steps: `schedule=RewiringSchedule(every=100, unit='step')`."
            )
        annealings = {schedule.anneal, self.strategy.schedule.anneal}
        looks_at_length = (
            0 < schedule.until < 1 or annealings != {"constant"} or schedule.unit == "permille"
        )
        if looks_at_length and self.total_steps is None:
            raise InvalidParameterError(
                "Evolver: the schedule looks at the length of training; give `total_steps`."
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

    def _listen(self) -> None:
        """Have layers remember what flows through them in steps that the strategy looks at."""
        # In-place strategies get no signals to look at.
        needed = self._is_watched(self.steps_done) or (
            self._is_due(self.steps_done + 1) and not isinstance(self.strategy, InPlaceStrategy)
        )
        if needed or self._listening:  # most steps need no look at the model
            for layer in self.layers:
                layer.handle.listening = needed
                layer.handle.heard.clear()
        self._listening = needed

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
        if not layer.handle.heard:
            raise InvalidInputError(
                f"{self.strategy!r} looks at gradients of absent connections, but no gradient"
                " passed through a layer in the step before.\n"
                "  Call `evolver.step()` once after each `loss.backward()` and"
                " `optimizer.step()`."
            )
        group = group_of(self.model)
        heard = signals_of(layer)
        return heard if group is None else heard_by_all(heard, group)

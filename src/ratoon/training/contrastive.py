"""The epoch loop of a Boltzmann machine: contrastive divergence, and rewiring when due."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ratoon import guard
from ratoon.arrays import Array
from ratoon.boltzmann import BoltzmannMachine
from ratoon.errors import DivergenceError
from ratoon.evolution import (
    Clock,
    InPlaceStrategy,
    LayerState,
    State,
    StatefulStrategy,
    layer_seed,
    rewire_from,
    rewires_full_layers,
    start_state,
    watched_steps,
)
from ratoon.history import EpochRecord, History
from ratoon.rng import derive_generator, derive_seed
from ratoon.training.plan import TrainingPlan

Rows = Callable[[NDArray[np.int64]], Array]
"""Returns the features of the samples with these numbers, in rows, one column per sample."""


class ContrastiveTraining:
    """A machine and a plan; each call of `run_epoch` is one exact epoch.

    As with `Training`, the machine with its optimizer state, the plan, the number of epochs done
    and the strategy's memory are enough to continue.  The plan's loss is not used; the loss in the
    history is the mean squared error of reconstructions.

    Examples
    --------
    >>> from ratoon.layers import make_layer
    >>> x = np.eye(4, dtype=np.float32)
    >>> machine = BoltzmannMachine.of(make_layer((4, 16), density=0.5, seed=0))
    >>> plan = TrainingPlan(learning_rate=0.1, batch_size=4, n_epochs=200)
    >>> training = ContrastiveTraining(machine, plan)
    >>> for _ in range(200):
    ...     _ = training.run_epoch(lambda rows: x[rows].T, 4)
    >>> training.history[-1].loss < training.history[0].loss
    True
    """

    def __init__(self, machine: BoltzmannMachine, plan: TrainingPlan, *, n_gibbs: int = 1) -> None:
        self.machine = machine
        self.plan = plan
        self.n_gibbs = n_gibbs
        self.epochs_done = 0
        self.evolution_state: State | None = None
        self.history = History()
        if len(machine.layer.state) != plan.optimizer.n_states:
            machine.clear_state(plan.optimizer.n_states)

    def run_epoch(self, rows_of: Rows, n_samples: int) -> EpochRecord:
        """Take one step per minibatch; rewire before the steps where that is due."""
        with guard.training(self.machine, self.machine.layer, name="this machine"):
            return self._run_epoch(rows_of, n_samples)

    def _run_epoch(self, rows_of: Rows, n_samples: int) -> EpochRecord:
        plan, machine = self.plan, self.machine
        clock = self._clock(n_samples)
        batch = plan.batch_for(n_samples)
        order = np.arange(n_samples, dtype=np.int64)
        if plan.shuffle:
            order = derive_generator(plan.seed, "shuffle", self.epochs_done).permutation(order)
        stop = clock.step + clock.steps_per_epoch
        due = set(plan.evolution.schedule.due_steps(clock, stop))
        watched = set(watched_steps(plan.evolution, clock, stop))
        rewired, rewire_seconds, lost = 0, 0.0, 0.0
        started = time.perf_counter()
        for number in range(clock.steps_per_epoch):
            now = clock.at(clock.step + number)
            visible = np.ascontiguousarray(rows_of(order[number * batch : (number + 1) * batch]))
            if self.evolution_state is None:
                states = [self._layer_state(visible, now)]
                self.evolution_state = start_state(plan.evolution, states, plan.seed)
            before = time.perf_counter()
            if now.step in due:
                rewired += self._rewire(visible, now)
            if now.step in watched:
                self._watch(visible, now)
            rewire_seconds += time.perf_counter() - before
            contrast = self._contrast(visible, now.step)
            step = plan.optimizer.step(plan.rate_at(now), now.step)
            machine.descend(contrast, plan.optimizer.rule, step)
            n_here = visible.shape[1]
            error = contrast[0][:, n_here:] - visible
            lost += float(np.einsum("ij,ij->", error, error)) / visible.shape[0]
        if not np.isfinite(lost):
            raise DivergenceError(
                f"training diverged: reconstructions are not finite in epoch"
                f" {self.epochs_done + 1}.\n"
                f"  The learning rate is {plan.rate_at(clock):.3g}; try a tenth of it."
            )
        self.epochs_done += 1
        topology = machine.layer.topology
        record = EpochRecord(
            epoch=self.epochs_done - 1,
            loss=lost / n_samples,
            learning_rate=plan.rate_at(clock),
            n_connections=topology.n_connections,
            density=topology.density,
            rewired=rewired,
            train_seconds=time.perf_counter() - started - rewire_seconds,
            rewire_seconds=rewire_seconds,
        )
        self.history.append(record)
        return record

    def _clock(self, n_samples: int) -> Clock:
        """Return the time; beyond the end of its plan, training rewires as at the end."""
        clock = self.plan.clock(self.epochs_done, n_samples)
        n_epochs = max(self.plan.n_epochs, self.epochs_done + 1)
        return Clock(clock.step, clock.steps_per_epoch, n_epochs * clock.steps_per_epoch)

    def _contrast(self, visible: Array, step: int) -> tuple[Array, Array]:
        rng = derive_generator(self.plan.seed, "gibbs", step)
        return self.machine.contrast(visible, rng, n_gibbs=self.n_gibbs)

    def _layer_state(self, visible: Array, clock: Clock) -> LayerState:
        layer = self.machine.layer
        return LayerState(
            layer.topology,
            layer.weights,
            tuple(layer.state),
            layer.init,
            # The same random numbers as those of the next step.
            lambda: self._contrast(visible, clock.step),
            self.plan.n_threads,
            self.plan.rate_at(clock),
        )

    def _rewire(self, visible: Array, clock: Clock) -> int:
        strategy, layer = self.plan.evolution, self.machine.layer
        seed = derive_seed(self.plan.seed, "rewire", clock.step)
        if layer.topology.is_full and not rewires_full_layers(strategy):
            return 0
        if isinstance(strategy, InPlaceStrategy):
            return strategy.rewire_in_place(layer, clock, layer_seed(seed, 0), self.plan.n_threads)
        states = [self._layer_state(visible, clock)]
        [rewiring], self.evolution_state = rewire_from(
            strategy, self.evolution_state or {}, states, clock, seed
        )
        layer.apply(rewiring)
        return rewiring.n_grown

    def _watch(self, visible: Array, clock: Clock) -> None:
        strategy = self.plan.evolution
        assert isinstance(strategy, StatefulStrategy)
        states = [self._layer_state(visible, clock)]
        self.evolution_state = strategy.watch(self.evolution_state or {}, states, clock)

"""The epoch loop: train, rewire when due, evaluate, record."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon import guard
from ratoon.arrays import Array
from ratoon.errors import DivergenceError, InvalidInputError, InvalidParameterError
from ratoon.evolution import (
    Clock,
    InPlaceStrategy,
    LayerState,
    State,
    StatefulStrategy,
    layer_seed,
    rewire_from,
    rewires_full_layers,
    watched_steps,
)
from ratoon.history import EpochRecord, History
from ratoon.kernels import NativeNetwork, NativeSamples, Pace, as_samples
from ratoon.losses import mean_loss
from ratoon.network import SparseMLP
from ratoon.rng import derive_generator, derive_seed
from ratoon.training.callbacks import Callback
from ratoon.training.cox import CoxRunner
from ratoon.training.plan import TrainingPlan
from ratoon.training.runner import StepRunner, runner_of_block
from ratoon.training.state import TrainingState
from ratoon.training.stopping import EarlyStopping

logger = logging.getLogger(__name__)

Scorer = Callable[[Array, "TrainingData"], float]
"""Computes a score, higher is better, from raw outputs and the data they belong to."""


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Samples with targets (samples, outputs), and optionally weights and an offset.

    The offset, of the shape of the targets, is added to the network's outputs: the network then
    learns what the offset leaves unexplained.  Where ``rows`` is given, only those samples are
    trained on, without a copy of them.
    """

    samples: NativeSamples
    targets: Array
    weights: Array | None = None
    offset: Array | None = None
    rows: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        x: Any,
        targets: Array,
        dtype: Any,
        *,
        weights: Array | None = None,
        offset: Array | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> TrainingData:
        """Wrap arrays for a network of this number type, without copying or reading the samples."""
        if targets.ndim != 2 or x.shape[0] != targets.shape[0]:
            raise InvalidInputError(
                f"{x.shape[0]} samples need targets of shape (samples, outputs), got"
                f" {targets.shape}."
            )
        typed = partial(np.ascontiguousarray, dtype=dtype)
        return cls(
            as_samples(x, dtype),
            typed(targets),
            None if weights is None else typed(weights),
            None if offset is None else typed(offset),
            None if rows is None else np.ascontiguousarray(rows, dtype=np.int64),
        )

    @property
    def n_samples(self) -> int:
        """Number of samples to train on."""
        return self.samples.n_rows if self.rows is None else self.rows.size


class Training:
    """A network, its data and a plan; each call of `run_epoch` is one exact epoch.

    All that changes is in ``state``; random numbers are functions of the plan's seed and the
    epoch.  So the state, the plan and the data are enough to continue to the same bits.

    Parameters
    ----------
    network : SparseMLP or TrainingState
        What to train: a network from the beginning, or a state from where it is.
    data : TrainingData
        What to train on.
    plan : TrainingPlan
        How to train.
    validation : TrainingData, optional
        Evaluated after every epoch.
    scorer : callable, optional
        Scores the validation data; minus its loss by default.
    stopping : EarlyStopping, optional
        When to stop before the end of the plan; that of the state by default.
    callbacks : sequence of Callback
        Run while training.
    runner : StepRunner, optional
        Takes the steps instead of the native loop of this process.
    loss_of : callable, optional
        Computes the loss of validation data from raw outputs; that of the plan by default.

    Examples
    --------
    >>> x = np.eye(4, dtype=np.float32)
    >>> network = SparseMLP.start((4, 16, 4), density=0.5, seed=0)
    >>> plan = TrainingPlan(learning_rate=0.1, batch_size=2, n_epochs=20)
    >>> training = Training(network, TrainingData.of(x, x, np.float32), plan)
    >>> training.run()
    >>> training.history[-1].loss < training.history[0].loss
    True
    """

    def __init__(
        self,
        network: SparseMLP | TrainingState,
        data: TrainingData,
        plan: TrainingPlan,
        *,
        validation: TrainingData | None = None,
        scorer: Scorer | None = None,
        stopping: EarlyStopping | None = None,
        callbacks: Sequence[Callback] = (),
        runner: StepRunner | None = None,
        loss_of: Scorer | None = None,
        **deprecated: Any,
    ) -> None:
        if isinstance(network, SparseMLP):
            network = TrainingState(network, plan.seed)
        self.state = network
        self.data = data
        self.plan = plan
        self.validation = validation
        self.scorer = scorer
        if stopping is not None:
            self.state.stopping = stopping
        self.stopping = self.state.stopping
        self.callbacks = list(callbacks)
        self.runner = runner
        self.loss_of = loss_of
        self.should_stop = False
        self._pace = Pace()  # of all epochs, whose native networks are one for each
        if deprecated:
            self._set_deprecated(deprecated)
        for layer in self.network.layers:
            if len(layer.state) != plan.optimizer.n_states:
                layer.clear_state(plan.optimizer.n_states)

    def _set_deprecated(self, given: dict[str, Any]) -> None:
        """Set parts of the state that were separate parameters before version 1.0."""
        if unknown := sorted(given.keys() - {"epochs_done", "evolution_state", "history"}):
            raise TypeError(f"Training got unexpected keyword arguments {unknown}.")
        warnings.warn(
            f"the parameters {sorted(given)} of Training will be removed in the next version; give"
            f" a TrainingState instead of a network.",
            DeprecationWarning,
            stacklevel=3,
        )
        for name, value in given.items():
            if value is not None:
                setattr(self.state, name, value)

    # ---------------------------------------------------------------------- what it has reached

    @property
    def network(self) -> SparseMLP:
        """The network as the last step left it."""
        return self.state.network

    @property
    def epochs_done(self) -> int:
        """Completed epochs of the plan."""
        return self.state.epochs_done

    @property
    def history(self) -> History:
        """One record per epoch, also of earlier cycles."""
        return self.state.history

    @property
    def samples(self) -> NativeSamples:
        """The samples as this epoch trains on them."""
        if self.plan.augment is None:
            return self.data.samples
        seed = derive_seed(self.plan.seed, "augment", self.epochs_done)
        return self.data.samples.augmented(self.plan.augment, seed)

    @property
    def evolution_state(self) -> State | None:
        """What the strategy remembers."""
        return self.state.evolution_state

    @property
    def rewired_by_layer(self) -> list[int]:
        """Connections replaced so far, in each layer."""
        return self.state.rewired_by_layer

    def continue_from(self, state: TrainingState) -> None:
        """Continue where another state of the same training is."""
        self.state.take_over(state)
        self.should_stop = self.stopping is not None and self.stopping.is_over

    # -------------------------------------------------------------------------------- running

    def run(self, n_epochs: int | None = None, *, restore_best: bool = True) -> None:
        """Train to the end of the plan, or for ``n_epochs``, or until something stops it.

        Then return to the best network, where early stopping kept one.  With
        ``restore_best=False`` the network stays as the last epoch left it, to train on.
        """
        last = self.plan.n_epochs if n_epochs is None else self.epochs_done + n_epochs
        runner, begun = self._step_runner(), 0
        try:
            for callback in self.callbacks:
                callback.on_fit_begin(self)
                begun += 1
            if runner is not None:
                runner.end_epoch(self, last)
            while self.epochs_done < last and not self.should_stop:
                self.run_epoch()
                if runner is not None:
                    runner.end_epoch(self, last)
        except BaseException as error:
            if runner is not None:
                runner.fail(error)
            raise
        finally:
            if restore_best and begun == len(self.callbacks):
                self.restore_best()
            try:
                for callback in self.callbacks[:begun]:
                    callback.on_fit_end(self)
            finally:
                if runner is not None:
                    runner.finish()

    def run_epoch(self) -> EpochRecord:
        """Train for one epoch; rewire before the steps where that is due; evaluate; record.

        Raises
        ------
        AlreadyTrainingError
            If another thread is training the same network or one of its layers.
        """
        with guard.training(self.state, *self.network.layers, name="this network"):
            return self._run_epoch()

    def _run_epoch(self) -> EpochRecord:
        epoch, state, runner = self.epochs_done, self.state, self._step_runner()
        n_samples = self.data.n_samples
        clock = self.plan.clock(epoch, n_samples)
        stop = clock.step + clock.steps_per_epoch
        batch = self.plan.batch_for(n_samples)
        order = self._order(epoch)
        due = self.plan.evolution.schedule.due_steps(clock, stop)
        watched = watched_steps(self.plan.evolution, clock, stop)
        pauses = sorted({clock.step, *due, *watched})
        if state.evolution_state is None:
            state.evolution_state = self._first_state(order[:batch], clock)
        rewired, rewire_seconds, train_seconds, total = 0, 0.0, 0.0, 0.0
        native: NativeNetwork | None = None
        for first, last in pairwise([*pauses, stop]):
            started = time.perf_counter()
            here = (first - clock.step) * batch
            if first in due:
                rewired += self._rewire(clock.at(first), order[here : here + batch])
                native = None
                if runner is not None:
                    runner.agree(self)
            if first in watched:
                self._watch(clock.at(first), order[here : here + batch])
            rewire_seconds += time.perf_counter() - started
            started = time.perf_counter()
            part = order[here : (last - clock.step) * batch]
            if runner is not None:
                loss = runner.train(self, part, batch, clock.at(first), last)
            else:
                plan = self.plan
                native = native or self.network.native(plan.loss, plan.n_threads, self._pace)
                loss = self._train(native, part, batch, clock.at(first), last)
            total += loss * part.size
            train_seconds += time.perf_counter() - started
        before = state.epochs_before
        state.epochs_done += 1
        record = self._evaluated(
            EpochRecord(
                epoch=before + epoch,
                loss=total / n_samples,
                learning_rate=self.plan.rate_at(clock),
                n_connections=self.network.n_connections,
                density=self.network.density,
                rewired=rewired,
                train_seconds=train_seconds,
                rewire_seconds=rewire_seconds,
            )
        )
        self.history.append(record)
        if logger.isEnabledFor(logging.INFO):
            logger.info(
                "epoch %d: loss %.4g",
                record.epoch + 1,
                record.loss,
                extra={"event": "epoch", "facts": {**asdict(record), "epoch": record.epoch + 1}},
            )
        for callback in self.callbacks:
            callback.on_epoch_end(self, record)
        return record

    def restore_best(self) -> None:
        """Return to the best network, where early stopping kept one."""
        if self.stopping is not None and self.stopping.best_network is not None:
            self.network.layers = self.stopping.best_network.layers
            self.state.evolution_state = None  # it belongs to other layers

    # ------------------------------------------------------------------------------- one epoch

    def _step_runner(self) -> StepRunner | None:
        offered = [self.runner, *(callback.step_runner() for callback in self.callbacks)]
        found = [runner for runner in offered if runner is not None]
        if len(found) > 1:
            raise InvalidParameterError(
                f"{len(found)} runners cannot take the steps of one training; give one of them as"
                f" `runner` or by a callback."
            )
        return found[0] if found else runner_of_block()

    def _order(self, epoch: int) -> NDArray[np.int64]:
        rows = self.data.rows
        if rows is None:
            rows = np.arange(self.data.n_samples, dtype=np.int64)
        if not self.plan.shuffle:
            return rows
        generator = derive_generator(self.plan.seed, "shuffle", epoch)
        return self.data.samples.shuffled(rows, generator)

    def _train(
        self,
        native: NativeNetwork,
        order: NDArray[np.int64],
        batch: int,
        clock: Clock,
        stop: int,
    ) -> float:
        progress = partial(self._report_progress, clock.step % clock.steps_per_epoch)
        outcome = native.train(
            self.samples,
            self.data.targets,
            order,
            batch,
            self.plan.optimizer.rule,
            self.plan.steps(clock, stop),
            sample_weights=self.data.weights,
            offset=self.data.offset,
            scaling=self.network.scaling,
            dropout_seed=derive_seed(self.plan.seed, "dropout"),
            first_step=clock.step,
            progress=progress if self.callbacks else None,
        )
        if outcome.diverged:
            raise DivergenceError(
                f"training diverged: the loss is not finite at step {outcome.steps_done} of epoch"
                f" {clock.epoch + 1}.\n"
                f"  The learning rate is {self.plan.rate_at(clock):.3g}; try a tenth of it,\n"
                f"  scale the features, or clip them."
            )
        return outcome.loss

    def _report_progress(self, steps_before: int, steps_done: int) -> None:
        for callback in self.callbacks:
            callback.on_progress(self, steps_before + steps_done)

    # -------------------------------------------------------------------------------- rewiring

    def _rewire(self, clock: Clock, next_batch: NDArray[np.int64]) -> int:
        strategy, n_threads = self.plan.evolution, self.plan.n_threads
        seed = derive_seed(self.plan.seed, "rewire", clock.step)
        listeners = [callback for callback in self.callbacks if callback.needs_rewirings]
        # The in-place path does not support limits.
        is_limited = any(layer.allowed is not None for layer in self.network.layers)
        if isinstance(strategy, InPlaceStrategy) and not (listeners or is_limited):
            return self._count_rewired(
                0
                if layer.topology.is_full and not rewires_full_layers(strategy)
                else strategy.rewire_in_place(layer, clock, layer_seed(seed, index), n_threads)
                for index, layer in enumerate(self.network.layers)
            )
        layers = self._layer_states(next_batch, clock)
        rewirings, self.state.evolution_state = rewire_from(
            strategy, self.evolution_state or {}, layers, clock, seed
        )
        for layer, rewiring in zip(self.network.layers, rewirings, strict=True):
            layer.apply(rewiring)
        for callback in listeners:
            callback.on_rewire(self, rewirings)
        return self._count_rewired(rewiring.n_grown for rewiring in rewirings)

    def _count_rewired(self, by_layer: Iterable[int]) -> int:
        counts = list(by_layer)
        self.state.rewired_by_layer = [
            before + new for before, new in zip(self.rewired_by_layer, counts, strict=True)
        ]
        return sum(counts)

    def _first_state(self, batch: NDArray[np.int64], clock: Clock) -> State:
        strategy = self.plan.evolution
        if not isinstance(strategy, StatefulStrategy):
            return {}  # without a look at the layers, which may cost memory
        return strategy.start_state(self._layer_states(batch, clock), self.plan.seed)

    def _watch(self, clock: Clock, batch: NDArray[np.int64]) -> None:
        strategy = self.plan.evolution
        assert isinstance(strategy, StatefulStrategy)
        layers = self._layer_states(batch, clock)
        self.state.evolution_state = strategy.watch(self.evolution_state or {}, layers, clock)

    def _layer_states(self, batch: NDArray[np.int64], clock: Clock) -> list[LayerState]:
        found: list[tuple[Array, Array]] = []

        def signals_of(index: int) -> tuple[Array, Array]:
            # Computed once for all layers, and only if a strategy needs them.
            if not found:
                if isinstance(self.runner, CoxRunner):
                    self.runner.set_gradient(self, np.ascontiguousarray(batch), clock.step)
                native = self.network.native(self.plan.loss, self.plan.n_threads)
                found.extend(
                    native.signals(
                        self.samples,
                        self.data.targets,
                        np.ascontiguousarray(batch),
                        sample_weights=self.data.weights,
                        offset=self.data.offset,
                        scaling=self.network.scaling,
                        dropout_seed=derive_seed(self.plan.seed, "dropout"),
                        step=clock.step,
                    )
                )
            return found[index]

        return [
            LayerState(
                layer.topology,
                layer.weights,
                tuple(layer.state),
                layer.init,
                partial(signals_of, index),
                self.plan.n_threads,
                self.plan.rate_at(clock),
                layer.allowed,
            )
            for index, layer in enumerate(self.network.layers)
        ]

    # ------------------------------------------------------------------------------ evaluation

    def _evaluated(self, record: EpochRecord) -> EpochRecord:
        if self.validation is None:
            self._observe(-record.loss)
            return record
        started = time.perf_counter()
        native = self.network.native(self.plan.loss, self.plan.n_threads)
        outputs = native.predict(self.validation.samples, scaling=self.network.scaling)
        if self.validation.offset is not None:
            outputs += self.validation.offset
        if self.loss_of is not None:
            loss = self.loss_of(outputs, self.validation)
        else:
            loss = mean_loss(
                self.plan.loss, outputs, self.validation.targets, self.validation.weights
            )
        score = -loss if self.scorer is None else self.scorer(outputs, self.validation)
        self._observe(score)
        return EpochRecord(
            **{
                **record.__dict__,
                "evaluate_seconds": time.perf_counter() - started,
                "validation_score": score,
                "validation_loss": loss,
            }
        )

    def _observe(self, score: float) -> None:
        """Stop if the validation score, or without validation data the loss, is no better."""
        epoch = self.epochs_done - 1
        if self.stopping is not None and self.stopping.observe(epoch, score, self.network):
            self.should_stop = True

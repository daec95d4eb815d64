"""Data parallel steps: gradients summed over the ranks, or local steps and averages."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ratoon import kernels
from ratoon.arrays import Array
from ratoon.distributed.agreement import MAX_LINES, compare_trainings
from ratoon.distributed.communicator import Communicator
from ratoon.distributed.cost import StepCost, best_seconds
from ratoon.distributed.exchange import check_agreement, share_layer, share_training
from ratoon.distributed.watched import WatchedRanks
from ratoon.errors import DivergenceError, InvalidParameterError
from ratoon.evolution import Clock
from ratoon.kernels import NativeNetwork, Step
from ratoon.rng import derive_seed
from ratoon.training import Callback, Training
from ratoon.training.runner import StepRunner, run_in_block

AverageEvery = int | Literal["auto"] | None


@dataclass
class DataParallel(Callback):
    """Callback that trains together with other ranks.

    Give it to an estimator or to a `Training` on every rank.  All ranks begin with the state of
    rank 0, so put it after a `ratoon.storage.Checkpoint`, which only rank 0 has: training then
    resumes on any number of ranks.

    Before the first step the ranks compare settings, seed, network and data; if they differ,
    training ends on all ranks with a message that names the difference.  An error on one rank ends
    the training of the others with a `RankFailedError`.  Training stops on all ranks after an epoch
    in which a callback or early stopping of any rank has stopped it.

    Parameters
    ----------
    communicator : Communicator
        The group of ranks.
    average_every : int, None or "auto", default="auto"
        None: gradients are summed at every step, and the result is that of one rank up to the
        order of sums.  A number: every rank takes that many steps on its own part of the
        minibatches, and then weights and optimizer state are averaged.  That sends less and is
        another algorithm (local SGD).  ``"auto"``: one of the two, by the measured costs of
        computing and sending.
    log : callable, optional
        Called on rank 0 with a line about what was measured and chosen.

    Attributes
    ----------
    cost : StepCost or None
        What was measured, once ``"auto"`` has chosen.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> from ratoon.distributed import SingleRank
    >>> together = DataParallel(SingleRank())
    >>> model = SparseMLPClassifier((4,), max_iter=2, callbacks=together, random_state=0)
    >>> model.fit([[0.0, 1.0], [1.0, 0.0]], [0, 1]).n_iter_
    2
    """

    communicator: Communicator
    average_every: AverageEvery = "auto"
    log: Callable[[str], None] | None = None
    cost: StepCost | None = field(default=None, init=False)
    _ranks: WatchedRanks = field(init=False, repr=False)
    _compared: Training | None = field(default=None, init=False, repr=False)
    _buffer: Array = field(default_factory=lambda: np.empty(0), init=False, repr=False)

    def __post_init__(self) -> None:
        every = self.average_every
        if every not in ("auto", None) and not (isinstance(every, int) and every >= 1):
            raise InvalidParameterError(
                f'`average_every` must be at least 1, "auto" or None, got {every!r}.'
            )
        self._ranks = WatchedRanks(self.communicator)

    # ----------------------------------------------------------------- callback and step runner

    def on_fit_begin(self, training: Training) -> None:
        """Compare the training with those of the other ranks; take over the state of rank 0."""
        self._compare(training)
        share_training(self._ranks, training)

    def step_runner(self) -> StepRunner:
        """Return this object, which takes the steps."""
        return self

    def train(
        self,
        training: Training,
        order: NDArray[np.int64],
        batch: int,
        clock: Clock,
        stop: int,
    ) -> float:
        """Take the steps from the clock's to ``stop``; return the mean loss."""
        if training.network.weight_type == "bfloat16":
            raise InvalidParameterError(
                "weights kept in bfloat16 cannot be trained by several ranks: rounding would undo"
                " the averages.  Use float32."
            )
        native = training.network.native(training.plan.loss, training.plan.n_threads)
        steps = training.plan.steps(clock, stop)
        batches = [order[at : at + batch] for at in range(0, order.size, batch)]
        average_every = self._chosen_average_every(training, native, batches[0])
        if average_every is None:
            self._ranks.begin_sums(self._buffer_for(training))
            sums = [
                self._step(
                    training,
                    native,
                    rows,
                    step,
                    clock.step + number,
                    is_last=number == len(batches) - 1,
                )
                for number, (rows, step) in enumerate(zip(batches, steps, strict=True))
            ]
            loss, weight = np.sum(sums, axis=0)
            return float(loss / max(weight, 1e-300))
        total = 0.0
        for first in range(0, len(batches), average_every):
            part = slice(first, first + average_every)
            total += self._local_steps(
                training, native, batches[part], steps[part], clock.step + first
            )
        return total / max(order.size, 1)

    def agree(self, training: Training) -> None:
        """Take over the layers of rank 0 after a rewiring, and compare them between the ranks."""
        for index, layer in enumerate(training.network.layers):
            share_layer(self._ranks, layer)
            check_agreement(self._ranks, layer, f"layer {index + 1}")

    def end_epoch(self, training: Training, last: int) -> None:
        """Stop on all ranks if a callback or early stopping of any rank stops."""
        if self._compared is not training:
            self._compare(training)  # `train_together` is not among the callbacks
        ends = self._ranks.gather((training.epochs_done, last, training.should_stop))
        if len({(done, planned) for done, planned, _ in ends}) > 1:
            lines = [
                f"rank {rank} is at epoch {done} of {planned}"
                for rank, (done, planned, _) in enumerate(ends)
            ]
            raise InvalidParameterError(
                "the ranks would not train for the same number of epochs:\n  "
                + "\n  ".join(lines[:MAX_LINES])
            )
        training.should_stop = any(stop for *_, stop in ends)

    def fail(self, error: BaseException) -> None:
        """End the training of the other ranks with the error of this one."""
        self._ranks.fail(error)

    def finish(self) -> None:
        """Forget the training."""
        self._compared = None
        self._ranks.finish()

    @property
    def reported(self) -> BaseException | None:
        """The last error of this rank that ended the training of the other ranks."""
        return self._ranks.reported

    def _compare(self, training: Training) -> None:
        every: Any = self.average_every
        if every == "auto" and self.cost is not None:
            every = f"auto ({self.cost.average_every})"
        compare_trainings(self._ranks, training, average_every=every)
        self._compared = training

    # ------------------------------------------------------------- sums of gradients or averages

    def _chosen_average_every(
        self, training: Training, native: NativeNetwork, rows: NDArray[np.int64]
    ) -> int | None:
        if self.average_every != "auto":
            return self.average_every
        if self._ranks.size == 1:
            return None
        if self.cost is None:
            # All ranks use what rank 0 has measured, so that they choose the same.
            self.cost = self._ranks.from_first(self._measured(training, native, rows))
            if self.log is not None and self._ranks.rank == 0:
                self.log(str(self.cost))
        return self.cost.average_every

    def _measured(
        self, training: Training, native: NativeNetwork, rows: NDArray[np.int64]
    ) -> StepCost:
        mine = self._part_of(rows)
        flat = self._buffer_for(training)
        computing = best_seconds(lambda: self._gradients(training, native, mine, 0, flat))
        flat[:] = 0
        self._ranks.add(flat)  # waits here, not below, for ranks that compute longer
        sending = best_seconds(lambda: self._ranks.add(flat))
        layer = training.network.layers[0]
        return StepCost(computing, sending, 1 + len(layer.state))

    # ------------------------------------------------------------------------------ together

    def _part_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        parts = np.array_split(rows, self._ranks.size)
        return np.ascontiguousarray(parts[self._ranks.rank])

    def _step(
        self,
        training: Training,
        native: NativeNetwork,
        rows: NDArray[np.int64],
        step: Step,
        number: int,
        *,
        is_last: bool,
    ) -> tuple[float, float]:
        """Sum the gradients of all ranks, and take the same step on each.

        Returns the summed loss and weight of the minibatch.
        """
        mine, data = self._part_of(rows), training.data
        flat = self._buffer_for(training)
        if mine.size:
            loss = self._gradients(training, native, mine, number, flat)
            weight = mine.size if data.weights is None else float(data.weights[mine].sum())
            flat[:-3] *= weight
            flat[-3:-1] = weight, weight * loss
        else:
            flat[:] = 0
        self._ranks.add_next(flat, is_last=is_last)
        total = float(flat[-3])
        if not np.isfinite(flat[-2]):
            raise DivergenceError(
                f"training diverged: the loss is not finite at step {number + 1}.\n"
                f"  Try a tenth of the learning rate, scale the features, or clip them."
            )
        if total > 0.0:
            flat[:-3] /= total
            self._update(training, flat, step)
        return float(flat[-2]), total

    def _gradients(
        self,
        training: Training,
        native: NativeNetwork,
        rows: NDArray[np.int64],
        number: int,
        flat: Array,
    ) -> float:
        """Write the gradients of this rank's samples into ``flat``; return the mean loss."""
        parts = iter(np.split(flat, np.cumsum(_sizes(training))))
        pairs = [(next(parts), next(parts)) for _ in training.network.layers]
        loss, _, _ = native.gradients(
            training.samples,
            training.data.targets,
            rows,
            sample_weights=training.data.weights,
            offset=training.data.offset,
            scaling=training.network.scaling,
            dropout_seed=self._dropout_seed(training),
            step=number,
            out=([weights for weights, _ in pairs], [bias for _, bias in pairs]),
        )
        return loss

    def _buffer_for(self, training: Training) -> Array:
        """Return an array for all gradients, the samples' weight and loss, and a flag."""
        size, dtype = sum(_sizes(training)) + 3, training.network.dtype
        if self._buffer.size != size or self._buffer.dtype != dtype:
            self._buffer = np.zeros(size, dtype=dtype)
        return self._buffer

    def _dropout_seed(self, training: Training) -> int:
        # Ranks have different samples, and must not drop the same neurons for them.
        return derive_seed(training.plan.seed, "dropout", self._ranks.rank)

    def _update(self, training: Training, flat: Array, step: Step) -> None:
        rule, at = training.plan.optimizer.rule, 0
        for layer in training.network.layers:
            for values, state, how in (
                (layer.weights, layer.state, step),
                (layer.bias, layer.bias_state, step.of_biases()),
            ):
                first, second = (*state, None, None)[:2]
                gradient = flat[at : at + values.size]
                kernels.update(rule, values, gradient, how, first=first, second=second)
                at += values.size

    def _local_steps(
        self,
        training: Training,
        native: NativeNetwork,
        batches: list[NDArray[np.int64]],
        steps: list[Step],
        number: int,
    ) -> float:
        """Take some steps alone, then average over the ranks; return the summed loss."""
        data, total = training.data, 0.0
        for count, (rows, step) in enumerate(zip(batches, steps, strict=True)):
            mine = self._part_of(rows)
            if mine.size == 0:
                continue
            outcome = native.train(
                training.samples,
                data.targets,
                mine,
                mine.size,
                training.plan.optimizer.rule,
                [step],
                sample_weights=data.weights,
                offset=data.offset,
                scaling=training.network.scaling,
                dropout_seed=self._dropout_seed(training),
                first_step=number + count,
            )
            total += outcome.loss * mine.size
        summed = np.array([total])
        self._ranks.add(summed)
        for layer in training.network.layers:
            for values in (layer.weights, layer.bias, *layer.state, *layer.bias_state):
                self._ranks.add(values)
                values /= self._ranks.size
        if not np.isfinite(summed[0]):
            raise DivergenceError("training diverged: the loss of a rank is not finite.")
        return float(summed[0])


def _sizes(training: Training) -> list[int]:
    """Return the numbers of weights and of biases, layer by layer."""
    layers = training.network.layers
    return [size for layer in layers for size in (layer.weights.size, layer.bias.size)]


class Follow(Callback):
    """Callback that takes over the state of rank 0; a `DataParallel` callback does so by itself.

    .. deprecated:: 1.0
        It is only needed with `train_together`.
    """

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator

    def on_fit_begin(self, training: Training) -> None:
        """Take over the state of rank 0."""
        ranks = WatchedRanks(self.communicator)
        compare_trainings(ranks, training)
        share_training(ranks, training)


@contextmanager
def train_together(
    communicator: Communicator,
    *,
    average_every: AverageEvery = "auto",
    tell: Callable[[str], None] | None = None,
) -> Iterator[DataParallel]:
    """Train together with other ranks in every training inside the block.

    .. deprecated:: 1.0
        Give a `DataParallel` as callback instead.
    """
    warnings.warn(
        "train_together will be removed in the next version; give the estimator or the Training"
        " callbacks=[DataParallel(communicator)].",
        DeprecationWarning,
        stacklevel=3,
    )
    runner = DataParallel(communicator, average_every, tell)
    with run_in_block(runner):
        yield runner

"""Data parallel steps: gradients of shares, added up; or local steps, averaged now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ratoon import kernels
from ratoon.arrays import Array
from ratoon.distributed.communicator import Communicator
from ratoon.distributed.cost import StepCost, best_seconds
from ratoon.distributed.exchange import check_agreement, share_layer
from ratoon.errors import DivergenceError, InvalidParameterError
from ratoon.evolution import Clock
from ratoon.kernels import NativeNetwork, Step
from ratoon.rng import derive_seed
from ratoon.training import Training
from ratoon.training.runner import run_by

AverageEvery = int | Literal["auto"] | None


@dataclass
class DataParallel:
    """Takes steps together with other ranks.

    Parameters
    ----------
    communicator : Communicator
        The group.
    average_every : int, None or "auto", default="auto"
        None: gradients are added up at every step, and the result is that of one rank up to the
        order of sums.  A number: every rank takes that many steps on its own share, and then
        weights and optimizer state are averaged: less to send, another algorithm (local SGD).
        ``"auto"``: one of the two, by what computing and sending cost before the first step.
    tell : callable, optional
        Told on rank 0 what was measured and chosen.

    Attributes
    ----------
    cost : StepCost or None
        What was measured, once ``"auto"`` has chosen.
    """

    communicator: Communicator
    average_every: AverageEvery = "auto"
    tell: Callable[[str], None] | None = None
    cost: StepCost | None = field(default=None, init=False)
    _room: Array = field(default_factory=lambda: np.empty(0), init=False, repr=False)

    def __post_init__(self) -> None:
        every = self.average_every
        if every not in ("auto", None) and not (isinstance(every, int) and every >= 1):
            raise InvalidParameterError(
                f'`average_every` must be at least 1, "auto" or None, got {every!r}.'
            )

    # ----------------------------------------------------------------------------- the runner

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
                "weights kept in bfloat16 cannot be trained by several ranks: averages would be"
                " rounded away.  Use float32."
            )
        native = training.network.native(training.plan.loss, training.plan.n_threads)
        steps = training.plan.steps(clock, stop)
        batches = [order[at : at + batch] for at in range(0, order.size, batch)]
        average_every = self._chosen(training, native, batches[0])
        if average_every is None:
            sums = [
                self._step(training, native, rows, step, clock.step + number)
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
        """Take over the layers of rank 0 after a rewiring, and compare what all have."""
        for index, layer in enumerate(training.network.layers):
            share_layer(self.communicator, layer)
            check_agreement(self.communicator, layer, f"layer {index + 1}")

    # -------------------------------------------------------------------------- which way

    def _chosen(
        self, training: Training, native: NativeNetwork, rows: NDArray[np.int64]
    ) -> int | None:
        if self.average_every != "auto":
            return self.average_every
        if self.communicator.size == 1:
            return None
        if self.cost is None:
            # What rank 0 has measured counts, so that all go the same way.
            self.cost = self.communicator.from_first(self._measured(training, native, rows))
            if self.tell is not None and self.communicator.rank == 0:
                self.tell(str(self.cost))
        return self.cost.average_every

    def _measured(
        self, training: Training, native: NativeNetwork, rows: NDArray[np.int64]
    ) -> StepCost:
        mine = self._share(rows)
        flat = self._room_for(training)
        computing = best_seconds(lambda: self._gradients(training, native, mine, 0, flat))
        flat[:] = 0
        self.communicator.add(flat)  # whoever computes longer is waited for here, not below
        sending = best_seconds(lambda: self.communicator.add(flat))
        layer = training.network.layers[0]
        return StepCost(computing, sending, 1 + len(layer.state))

    # ------------------------------------------------------------------------------ together

    def _share(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        shares = np.array_split(rows, self.communicator.size)
        return np.ascontiguousarray(shares[self.communicator.rank])

    def _step(
        self,
        training: Training,
        native: NativeNetwork,
        rows: NDArray[np.int64],
        step: Step,
        number: int,
    ) -> tuple[float, float]:
        """Add up the gradients of all shares, and let every rank take the same step.

        Returns the summed loss and weight of the minibatch.
        """
        mine, data = self._share(rows), training.data
        flat = self._room_for(training)
        if mine.size:
            loss = self._gradients(training, native, mine, number, flat)
            weight = mine.size if data.weights is None else float(data.weights[mine].sum())
            flat[:-2] *= weight
            flat[-2:] = weight, weight * loss
        else:
            flat[:] = 0
        self.communicator.add(flat)
        total = float(flat[-2])
        if not np.isfinite(flat[-1]):
            raise DivergenceError(
                f"training diverged: the loss is not finite at step {number + 1}.\n"
                f"  Try a tenth of the learning rate, scale the features, or clip them."
            )
        if total > 0.0:
            flat[:-2] /= total
            self._update(training, flat, step)
        return float(flat[-1]), total

    def _gradients(
        self,
        training: Training,
        native: NativeNetwork,
        rows: NDArray[np.int64],
        number: int,
        flat: Array,
    ) -> float:
        """Put the gradients of this rank's samples one after the other; return the mean loss."""
        parts = iter(np.split(flat, np.cumsum(_sizes(training))))
        pairs = [(next(parts), next(parts)) for _ in training.network.layers]
        loss, _, _ = native.gradients(
            training.data.samples,
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

    def _room_for(self, training: Training) -> Array:
        """Return room for all gradients, the weight of the samples and their loss."""
        size, dtype = sum(_sizes(training)) + 2, training.network.dtype
        if self._room.size != size or self._room.dtype != dtype:
            self._room = np.zeros(size, dtype=dtype)
        return self._room

    def _dropout_seed(self, training: Training) -> int:
        # Ranks hold different samples, so they must not drop the same neurons for them.
        return derive_seed(training.plan.seed, "dropout", self.communicator.rank)

    def _update(self, training: Training, flat: Array, step: Step) -> None:
        rule, at = training.plan.optimizer.rule, 0
        undecayed = Step(
            step.lr,
            mu=step.mu,
            beta2=step.beta2,
            adam_eps=step.adam_eps,
            correction=step.correction,
        )
        for layer in training.network.layers:
            for values, state, how in (
                (layer.weights, layer.state, step),
                (layer.bias, layer.bias_state, undecayed),  # decay is for connections
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
        """Take some steps alone, then average with the others; return the summed loss."""
        data, total = training.data, 0.0
        for count, (rows, step) in enumerate(zip(batches, steps, strict=True)):
            mine = self._share(rows)
            if mine.size == 0:
                continue
            outcome = native.train(
                data.samples,
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
        self.communicator.add(summed)
        for layer in training.network.layers:
            for values in (layer.weights, layer.bias, *layer.state, *layer.bias_state):
                self.communicator.add(values)
                values /= self.communicator.size
        if not np.isfinite(summed[0]):
            raise DivergenceError("training diverged: the loss of a rank is not finite.")
        return float(summed[0])


def _sizes(training: Training) -> list[int]:
    """Return how many weights and biases each layer has, one after the other."""
    layers = training.network.layers
    return [size for layer in layers for size in (layer.weights.size, layer.bias.size)]


@contextmanager
def train_together(
    communicator: Communicator,
    *,
    average_every: AverageEvery = "auto",
    tell: Callable[[str], None] | None = None,
) -> Iterator[DataParallel]:
    """Let every training inside the block be shared with the other ranks.

    Parameters are those of `DataParallel`.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> from ratoon.distributed import SingleRank
    >>> model = SparseMLPClassifier((4,), max_iter=2, random_state=0)
    >>> with train_together(SingleRank()):
    ...     _ = model.fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    >>> model.n_iter_
    2
    """
    runner = DataParallel(communicator, average_every, tell)
    with run_by(runner):
        yield runner

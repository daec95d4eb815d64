"""Data parallel steps: gradients of shares, added up; or local steps, averaged now and then."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon import kernels
from ratoon.distributed.communicator import Communicator
from ratoon.errors import DivergenceError, InvalidParameterError, RatoonError
from ratoon.evolution import Clock
from ratoon.kernels import NativeNetwork, Step
from ratoon.layers import SparseLayer
from ratoon.rng import derive_seed
from ratoon.topology import Topology
from ratoon.training import Training
from ratoon.training.runner import run_by

Array = NDArray[Any]


@dataclass(frozen=True)
class DataParallel:
    """Takes steps together with other ranks.

    Parameters
    ----------
    communicator : Communicator
        The group.
    average_every : int, optional
        Without it gradients are added up at every step, and the result is that of one rank up to
        the order of sums.  With it every rank takes that many steps on its own share, and then
        weights and optimizer state are averaged: less to send, another algorithm (local SGD).
    """

    communicator: Communicator
    average_every: int | None = None

    def __post_init__(self) -> None:
        if self.average_every is not None and self.average_every < 1:
            raise InvalidParameterError(
                f"`average_every` must be at least 1, got {self.average_every!r}."
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
        native = training.network.native(training.plan.loss, training.plan.n_threads)
        steps = training.plan.steps(clock, stop)
        batches = [order[at : at + batch] for at in range(0, order.size, batch)]
        if self.average_every is None:
            sums = [
                self._step(training, native, rows, step, clock.step + number)
                for number, (rows, step) in enumerate(zip(batches, steps, strict=True))
            ]
            loss, weight = np.sum(sums, axis=0)
            return float(loss / max(weight, 1e-300))
        total = 0.0
        for first in range(0, len(batches), self.average_every):
            part = slice(first, first + self.average_every)
            total += self._local_steps(
                training, native, batches[part], steps[part], clock.step + first
            )
        return total / max(order.size, 1)

    def agree(self, training: Training) -> None:
        """Take over the layers of rank 0 after a rewiring, and compare what all have."""
        for index, layer in enumerate(training.network.layers):
            told = self.communicator.from_first(
                parts_of(layer) if self.communicator.rank == 0 else None
            )
            if self.communicator.rank != 0:
                take_over(layer, told)
            self._compare(layer, index)

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
        mine = self._share(rows)
        layers, data = training.network.layers, training.data
        sizes = [size for layer in layers for size in (layer.weights.size, layer.bias.size)]
        flat = np.zeros(sum(sizes) + 2, dtype=training.network.dtype)
        if mine.size:
            loss, of_weights, of_biases = native.gradients(
                data.samples,
                data.targets,
                mine,
                sample_weights=data.weights,
                offset=data.offset,
                scaling=training.network.scaling,
                # Ranks hold different samples, so they must not drop the same neurons for them.
                dropout_seed=derive_seed(training.plan.seed, "dropout", self.communicator.rank),
                step=number,
            )
            weight = mine.size if data.weights is None else float(data.weights[mine].sum())
            gradients = [g for pair in zip(of_weights, of_biases, strict=True) for g in pair]
            flat[:-2] = np.concatenate(gradients)
            flat[:-2] *= weight
            flat[-2:] = weight, weight * loss
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
                dropout_seed=derive_seed(training.plan.seed, "dropout", self.communicator.rank),
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

    def _compare(self, layer: SparseLayer, index: int) -> None:
        """Raise unless every rank has the same connections and weights in this layer."""
        digest = hashlib.sha256(layer.topology.content_hash().encode())
        digest.update(layer.weights.tobytes())
        mine = int.from_bytes(digest.digest()[:4], "little")
        summed = np.array([mine, mine * mine], dtype=np.float64)
        self.communicator.add(summed)
        size = self.communicator.size
        # Equal numbers, and only those, have size * sum of squares = square of sum.
        if size * summed[1] - summed[0] ** 2 > 1e-9 * summed[0] ** 2:
            raise RatoonError(
                f"ranks disagree about layer {index + 1} after a rewiring.\n"
                f"  All must run the same version on the same instruction set (RATOON_ISA)."
            )


def parts_of(layer: SparseLayer) -> dict[str, Any]:
    """Return all of a layer that training changes, as plain arrays."""
    topology = layer.topology
    return {
        "shape": topology.shape,
        "tile": topology.tile,
        "grouped": topology.grouped,
        "starts": np.array(topology.starts),
        "packed": np.array(topology.packed),
        "weights": layer.weights,
        "bias": layer.bias,
        "state": layer.state,
        "bias_state": layer.bias_state,
    }


def take_over(layer: SparseLayer, parts: dict[str, Any]) -> None:
    """Make a layer what `parts_of` has told; indices are checked on the way."""
    layer.topology = Topology.checked(
        parts["shape"], parts["tile"], parts["grouped"], parts["starts"], parts["packed"]
    )
    layer.weights = np.array(parts["weights"])
    layer.bias = np.array(parts["bias"])
    layer.state = [np.array(values) for values in parts["state"]]
    layer.bias_state = [np.array(values) for values in parts["bias_state"]]


@contextmanager
def train_together(
    communicator: Communicator, *, average_every: int | None = None
) -> Iterator[DataParallel]:
    """Let every training inside the block be shared with the other ranks.

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
    runner = DataParallel(communicator, average_every)
    with run_by(runner):
        yield runner

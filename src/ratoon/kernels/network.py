"""Whole networks in compiled code: the minibatch loop and prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ratoon import _native
from ratoon.arrays import Array
from ratoon.kernels.samples import Chunk, NativeSamples
from ratoon.kernels.types import ACTIVATION_NUMBERS, LOSS_NUMBERS, Rule, Scaling, Step
from ratoon.topology import Topology

Progress = Callable[[int], None]
Pace = _native.Pace
"""Measured speed by number of threads; passed on from one network to the next."""

NO_SCALING = Scaling()


@dataclass(frozen=True)
class EpochOutcome:
    """The result of one run over minibatches."""

    loss: float
    steps_done: int
    diverged: bool


class NativeNetwork:
    """Layers as native code sees them; the arrays belong to the caller and are changed in place."""

    def __init__(
        self, dtype: DTypeLike, loss: str, n_threads: int, pace: Pace | None = None
    ) -> None:
        """Begin without layers; ``pace`` has the times of earlier networks of this training.

        Training uses ``n_threads`` or one thread, whichever is faster at the moment.
        """
        self.dtype = np.dtype(dtype)
        kind = _native.NetworkF64 if self.dtype == np.float64 else _native.NetworkF32
        self._native: Any = kind(LOSS_NUMBERS[loss], n_threads, pace or Pace())
        self._shapes: list[tuple[int, int]] = []
        self._n_connections: list[int] = []

    def add_layer(
        self,
        topology: Topology,
        weights: Array,
        bias: Array,
        *,
        state: Sequence[Array] = (),
        bias_state: Sequence[Array] = (),
        activation: str = "identity",
        slope: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        """Append a layer; ``state`` is what the optimizer keeps per connection, at most two."""
        first, second = (*state, None, None)[:2]
        bias_first, bias_second = (*bias_state, None, None)[:2]
        self._native.add_layer(
            topology.native,
            weights,
            bias,
            first,
            second,
            bias_first,
            bias_second,
            ACTIVATION_NUMBERS[activation],
            slope,
            dropout,
        )
        self._shapes.append(topology.shape)
        self._n_connections.append(topology.n_connections)

    def train(
        self,
        samples: NativeSamples,
        targets: Array,
        order: NDArray[np.int64],
        batch: int,
        rule: Rule,
        steps: Sequence[Step],
        *,
        sample_weights: Array | None = None,
        offset: Array | None = None,
        scaling: Scaling = NO_SCALING,
        dropout_seed: int = 0,
        first_step: int = 0,
        progress: Progress | None = None,
    ) -> EpochOutcome:
        """Train on the samples named by ``order``, minibatch by minibatch, the last one short."""
        native_steps: dict[Step, Any] = {}
        for step in steps:
            if step not in native_steps:
                native_steps[step] = step.native(self.dtype)
        total, weight, done = 0.0, 0.0, 0
        for chunk in samples.chunks(order, batch):
            last = len(steps) if chunk.rows is None else done - (-chunk.order.size // batch)
            loss, steps_done, diverged = self._native.train(
                self._minibatch(
                    chunk,
                    targets,
                    sample_weights,
                    offset,
                    scaling,
                    dropout_seed,
                    first_step + done,
                ),
                batch,
                int(rule),
                [native_steps[step] for step in steps[done:last]],
                _counted_from(done, progress),
            )
            done += steps_done
            if chunk.rows is None or diverged:
                return EpochOutcome(loss, done, diverged)
            weights = chunk.select(sample_weights)
            chunk_weight = chunk.order.size if weights is None else float(weights.sum())
            weight += chunk_weight
            total += loss * chunk_weight
        return EpochOutcome(total / weight if weight > 0 else 0.0, done, diverged=False)

    def predict(
        self, samples: NativeSamples, *, scaling: Scaling = NO_SCALING, layer: int | None = None
    ) -> Array:
        """Return the raw outputs of every sample, or the activations of one hidden layer."""
        width = self._shapes[-1 if layer is None else layer][1]
        out = np.empty((samples.n_rows, width), dtype=self.dtype)
        for rows, block in samples.blocks():
            self._native.predict(
                block,
                scaling.shift,
                scaling.scale,
                scaling.clip,
                -1 if layer is None else layer,
                out[rows],
            )
        return out

    def signals(
        self,
        samples: NativeSamples,
        targets: Array,
        order: NDArray[np.int64],
        *,
        sample_weights: Array | None = None,
        offset: Array | None = None,
        scaling: Scaling = NO_SCALING,
        dropout_seed: int = 0,
        step: int = 0,
    ) -> list[tuple[Array, Array]]:
        """Return what flows through every layer for one minibatch: (activations, errors).

        Neurons drop out as they will in training's step of that number.

        The gradient at any position (i, j) of a layer, connected or not, is
        ``activations[i] @ errors[j]``.
        """
        inputs = [np.empty((n_in, order.size), dtype=self.dtype) for n_in, _ in self._shapes]
        deltas = [np.empty((n_out, order.size), dtype=self.dtype) for _, n_out in self._shapes]
        self._native.signals(
            self._minibatch(
                samples.chunk(order), targets, sample_weights, offset, scaling, dropout_seed, step
            ),
            inputs,
            deltas,
        )
        return list(zip(inputs, deltas, strict=True))

    def gradients(
        self,
        samples: NativeSamples,
        targets: Array,
        order: NDArray[np.int64],
        *,
        sample_weights: Array | None = None,
        offset: Array | None = None,
        scaling: Scaling = NO_SCALING,
        dropout_seed: int = 0,
        step: int = 0,
        out: tuple[list[Array], list[Array]] | None = None,
    ) -> tuple[float, list[Array], list[Array]]:
        """Return mean loss over the samples of ``order``, and its gradients; update nothing.

        There is one array per layer, aligned with the connections, and one with the biases; those
        of ``out``, where it is given.
        """
        of_weights, of_biases = out or (
            [np.empty(n, dtype=self.dtype) for n in self._n_connections],
            [np.empty(n_out, dtype=self.dtype) for _, n_out in self._shapes],
        )
        loss = self._native.gradients(
            self._minibatch(
                samples.chunk(order), targets, sample_weights, offset, scaling, dropout_seed, step
            ),
            of_weights,
            of_biases,
        )
        return loss, of_weights, of_biases

    def training_outputs(
        self,
        samples: NativeSamples,
        order: NDArray[np.int64],
        *,
        scaling: Scaling = NO_SCALING,
        dropout_seed: int = 0,
        step: int = 0,
    ) -> Array:
        """Return raw outputs of one minibatch as training computes them, with dropout."""
        chunk = samples.chunk(order)
        targets = np.zeros((samples.n_rows, self._shapes[-1][1]), dtype=self.dtype)
        out = np.empty((order.size, self._shapes[-1][1]), dtype=self.dtype)
        self._native.training_outputs(
            self._minibatch(chunk, targets, None, None, scaling, dropout_seed, step), out
        )
        return out

    def workspace_bytes(self, batch: int, n_threads: int = 1) -> int:
        """Bytes of working memory for minibatches of this size."""
        widths = [self._shapes[0][0], *(n_out for _, n_out in self._shapes)]
        return int(self._native.workspace_bytes(widths, batch, n_threads))

    def _minibatch(
        self,
        chunk: Chunk,
        targets: Array,
        sample_weights: Array | None,
        offset: Array | None,
        scaling: Scaling,
        dropout_seed: int,
        step: int,
    ) -> Any:
        """Return a chunk of samples, its targets and their order as native code takes them."""
        kind: Any = _native.MinibatchF64 if self.dtype == np.float64 else _native.MinibatchF32
        return kind(
            samples=chunk.handle,
            targets=chunk.select(targets),
            sample_weights=chunk.select(sample_weights),
            offset=chunk.select(offset),
            shift=scaling.shift,
            scale=scaling.scale,
            clip=scaling.clip,
            order=chunk.order,
            dropout_seed=dropout_seed,
            step=step,
        )


def _counted_from(done: int, progress: Progress | None) -> Progress | None:
    if progress is None or done == 0:
        return progress
    return lambda steps: progress(done + steps)

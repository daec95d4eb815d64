"""Whole networks in compiled code: the minibatch loop and prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike, NDArray

from ratoon import _native
from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.kernels.pieces import pieces, read_piece, train_in_pieces
from ratoon.kernels.types import ACTIVATION_NUMBERS, LOSS_NUMBERS, Rule, Scaling, Step
from ratoon.samples.on_disk import DiskRows, is_readable
from ratoon.topology import Topology

Progress = Callable[[int], None]
Samples = _native.Samples | DiskRows
"""Samples in memory, or rows on disk that are read chunk by chunk."""
Pace = _native.Pace
"""Measured speed by number of threads; passed on from one network to the next."""

NO_SCALING = Scaling()


def as_samples(x: Any, dtype: DTypeLike) -> _native.Samples:
    """Wrap samples for native code: a dense array as it lies in memory, or a CSR matrix.

    Dense float32 and float64 arrays (memory maps too) are read where they are, whatever the number
    type of the network.  Sparse matrices are read as CSR and checked entry by entry.

    Raises
    ------
    InvalidInputError
        If a sparse matrix is damaged, or there are not two dimensions.
    """
    if scipy.sparse.issparse(x):
        try:
            return sparse_samples(x, dtype)
        except ValueError as error:
            raise InvalidInputError(f"the sparse samples cannot be used: {error}") from None
    dense = np.asarray(x)
    if dense.ndim != 2:
        raise InvalidInputError(f"samples are rows of features, got shape {dense.shape}.")
    if dense.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        dense = dense.astype(dtype)
    if not is_readable(dense) and dense.size > 0:
        dense = np.require(dense, requirements=["C", "A"])
    return _native.Samples.dense(dense)


def sparse_samples(x: Any, dtype: DTypeLike) -> _native.Samples:
    """Wrap a SciPy matrix of any format; entries given twice are summed, as SciPy does."""
    # SciPy converts and sorts without looking at indices: a damaged matrix would crash it.
    if x.format == "coo":
        x = scipy.sparse.coo_array((x.data, (x.row, x.col)), shape=x.shape)
    elif x.format in ("csr", "csc", "bsr"):
        x = type(x)((x.data, x.indices, x.indptr), shape=x.shape)
        x.check_format(full_check=True)
    matrix = scipy.sparse.csr_array(x)
    if max(matrix.shape) > np.iinfo(np.int32).max:
        raise ValueError(f"shape {matrix.shape} is too large")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return _native.Samples.csr(
        np.array(matrix.indptr, dtype=np.int64),  # a copy, which cannot be changed from outside
        np.ascontiguousarray(matrix.indices, dtype=np.int32),
        np.ascontiguousarray(matrix.data, dtype=dtype),
        matrix.shape[1],
    )


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
        """Begin without layers; ``pace`` has what earlier networks of this training measured.

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
        samples: Samples,
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
        if isinstance(samples, DiskRows):
            return train_in_pieces(
                self,
                samples,
                targets,
                order,
                batch,
                rule,
                list(steps),
                sample_weights=sample_weights,
                offset=offset,
                first_step=first_step,
                progress=progress,
                scaling=scaling,
                dropout_seed=dropout_seed,
            )
        native_steps: dict[Step, Any] = {}
        for step in steps:
            if step not in native_steps:
                native_steps[step] = step.native(self.dtype)
        loss, steps_done, diverged = self._native.train(
            self._minibatch(
                samples, targets, order, sample_weights, offset, scaling, dropout_seed, first_step
            ),
            batch,
            int(rule),
            [native_steps[step] for step in steps],
            progress,
        )
        return EpochOutcome(loss, steps_done, diverged)

    def predict(
        self, samples: Samples, *, scaling: Scaling = NO_SCALING, layer: int | None = None
    ) -> Array:
        """Return the raw outputs of every sample, or the activations of one hidden layer."""
        width = self._shapes[-1 if layer is None else layer][1]
        out = np.empty((samples.n_rows, width), dtype=self.dtype)
        if isinstance(samples, DiskRows):
            for rows in pieces(np.arange(samples.n_rows), samples.rows_at_once):
                piece = as_samples(samples[rows], self.dtype)
                out[rows] = self.predict(piece, scaling=scaling, layer=layer)
            return out
        self._native.predict(
            samples,
            scaling.shift,
            scaling.scale,
            scaling.clip,
            -1 if layer is None else layer,
            out,
        )
        return out

    def signals(
        self,
        samples: Samples,
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
                samples, targets, order, sample_weights, offset, scaling, dropout_seed, step
            ),
            inputs,
            deltas,
        )
        return list(zip(inputs, deltas, strict=True))

    def gradients(
        self,
        samples: Samples,
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
                samples, targets, order, sample_weights, offset, scaling, dropout_seed, step
            ),
            of_weights,
            of_biases,
        )
        return loss, of_weights, of_biases

    def workspace_bytes(self, batch: int, n_threads: int = 1) -> int:
        """Bytes of working memory for minibatches of this size."""
        widths = [self._shapes[0][0], *(n_out for _, n_out in self._shapes)]
        return int(self._native.workspace_bytes(widths, batch, n_threads))

    def _minibatch(
        self,
        samples: Samples,
        targets: Array,
        order: NDArray[np.int64],
        sample_weights: Array | None,
        offset: Array | None,
        scaling: Scaling,
        dropout_seed: int,
        step: int,
    ) -> Any:
        """Return samples, targets and their order as native code takes them."""
        if isinstance(samples, DiskRows):
            x, targets, sample_weights, offset = read_piece(
                samples, order, targets, sample_weights, offset
            )
            samples, order = as_samples(x, self.dtype), np.arange(order.size, dtype=np.int64)
        kind = _native.MinibatchF64 if self.dtype == np.float64 else _native.MinibatchF32
        return kind(
            samples=samples,
            targets=targets,
            sample_weights=sample_weights,
            offset=offset,
            shift=scaling.shift,
            scale=scaling.scale,
            clip=scaling.clip,
            order=order,
            dropout_seed=dropout_seed,
            step=step,
        )

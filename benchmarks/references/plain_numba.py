"""The whole step in numba: plain loops over CSR by output, neuron-major rows.

For the error at the inputs every layer also has its connections by input, with a permutation into
the one array of weights; so all loops run over rows of their own and need no locks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from references.base import Reference, biases_of, updated
from references.start import Array, Start


@njit(fastmath=True, parallel=True, cache=True)
def product(row_starts, columns, weights, bias, x, y):
    """Write y = W x + b."""
    for i in prange(row_starts.size - 1):
        for b in range(x.shape[1]):
            y[i, b] = bias[i]
        for k in range(row_starts[i], row_starts[i + 1]):
            w, j = weights[k], columns[k]
            for b in range(x.shape[1]):
                y[i, b] += w * x[j, b]


@njit(fastmath=True, parallel=True, cache=True)
def transposed_product(column_starts, rows, slots, weights, dy, dx):
    """Write dx = W^T dy."""
    for j in prange(column_starts.size - 1):
        for b in range(dy.shape[1]):
            dx[j, b] = 0
        for k in range(column_starts[j], column_starts[j + 1]):
            w, i = weights[slots[k]], rows[k]
            for b in range(dy.shape[1]):
                dx[j, b] += w * dy[i, b]


@njit(fastmath=True, parallel=True, cache=True)
def update(row_starts, columns, weights, velocity, x, dy, lr, momentum, decay):
    """Compute each gradient and apply it at once."""
    for i in prange(row_starts.size - 1):
        for k in range(row_starts[i], row_starts[i + 1]):
            j = columns[k]
            gradient = np.float32(0)
            for b in range(x.shape[1]):
                gradient += dy[i, b] * x[j, b]
            velocity[k] = momentum * velocity[k] - lr * gradient
            weights[k] += velocity[k] - decay * weights[k]


class PlainNumba(Reference):
    """Numba loops, gathers by output."""

    neuron_major = True

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self.by_output = [matrix.T.tocsr() for matrix in start.matrices]
        self.by_input = []
        for matrix in self.by_output[1:]:
            slots = matrix.copy()
            slots.data = np.arange(matrix.nnz, dtype=np.int32)
            self.by_input.append(slots.tocsc())
        self.velocities = [np.zeros_like(matrix.data) for matrix in self.by_output]
        self.biases = list(biases_of(start))
        self.bias_velocities = [np.zeros_like(bias) for bias in self.biases]

    def forward(self, layer: int, a: Array) -> Array:
        """Return W a + b."""
        matrix = self.by_output[layer]
        z = np.empty((matrix.shape[0], a.shape[1]), dtype=np.float32)
        product(matrix.indptr, matrix.indices, matrix.data, self.biases[layer], a, z)
        return z

    def backward(self, layer: int, a: Array, delta: Array, with_dx: bool) -> Any:
        """Compute the error at the inputs, then gradients and update in one loop."""
        matrix = self.by_output[layer]
        dx = None
        if with_dx:
            back = self.by_input[layer - 1]
            dx = np.empty((matrix.shape[1], a.shape[1]), dtype=np.float32)
            transposed_product(back.indptr, back.indices, back.data, matrix.data, delta, dx)
        lr, momentum, decay = map(
            np.float32, (self.hyper.lr, self.hyper.momentum, self.hyper.decay)
        )
        update(
            matrix.indptr, matrix.indices, matrix.data, self.velocities[layer], a, delta,
            lr, momentum, decay,
        )  # fmt: skip
        updated(self.biases[layer], self.bias_velocities[layer], delta.sum(axis=1),
                self.hyper.lr, self.hyper.momentum, 0.0)  # fmt: skip
        return dx

"""The best to be had with SciPy's products: neuron-major rows, gradients by numba.

A row is one neuron seen over the minibatch, so SciPy's product reads and writes whole rows; the
sampled product for the gradient, for which SciPy has no function, is a loop that numba compiles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from references.base import Reference, biases_of, updated
from references.start import Array, Start


@njit(fastmath=True, parallel=True, cache=True)
def sampled_product(row_starts, columns, x, dy, out):
    """Write <dy[i], x[j]> for every stored (i, j)."""
    for i in prange(row_starts.size - 1):
        for k in range(row_starts[i], row_starts[i + 1]):
            j = columns[k]
            total = np.float32(0)
            for b in range(x.shape[1]):
                total += dy[i, b] * x[j, b]
            out[k] = total


class ScipyNumba(Reference):
    """SciPy CSR by output, neuron-major; numba for the gradient."""

    neuron_major = True

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self.weights = [matrix.T.tocsr() for matrix in start.matrices]
        self.transposed = [matrix.T for matrix in self.weights]  # views
        self.velocities = [np.zeros_like(matrix.data) for matrix in self.weights]
        self.gradients = [np.zeros_like(matrix.data) for matrix in self.weights]
        self.biases = list(biases_of(start))
        self.bias_velocities = [np.zeros_like(bias) for bias in self.biases]

    def forward(self, layer: int, a: Array) -> Array:
        """Return W a + b."""
        z: Array = self.weights[layer] @ a
        z += self.biases[layer][:, None]
        return z

    def backward(self, layer: int, a: Array, delta: Array, with_dx: bool) -> Any:
        """Compute gradients where there are connections, and update."""
        weights, gradient = self.weights[layer], self.gradients[layer]
        dx = self.transposed[layer] @ delta if with_dx else None
        sampled_product(weights.indptr, weights.indices, a, delta, gradient)
        rule = (self.hyper.lr, self.hyper.momentum)
        updated(weights.data, self.velocities[layer], gradient, *rule, self.hyper.decay)
        updated(self.biases[layer], self.bias_velocities[layer], delta.sum(axis=1), *rule, 0.0)
        return dx

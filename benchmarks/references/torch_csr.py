"""Torch with CSR weights and sampled gradients, each operation the fastest torch has for it.

* the product is `torch.sparse.mm` of a CSR matrix by output with neuron-major rows;
* the error at the inputs needs a transposed copy: of a CSC view torch makes one at every call,
  which is slower by far;
* the gradient is `torch.sparse.sampled_addmm`, dense nowhere;
* the update works on the arrays of values, because adding CSR tensors leaks memory.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import torch

from references.base import Reference
from references.start import Array, Start

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


def torch_csr(matrix: Any) -> Any:
    """Return a SciPy CSR matrix as a torch one with 32-bit indices, which are faster."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "in beta state"
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int32)),
            torch.from_numpy(matrix.indices.astype(np.int32)),
            torch.from_numpy(matrix.data),
            size=matrix.shape,
        )


class TorchReference(Reference):
    """What references in torch share."""

    neuron_major = True

    def enter(self, x: Array) -> Any:
        """Turn samples into neuron-major rows."""
        return torch.from_numpy(np.ascontiguousarray(x.T))

    def relu(self, z: Any) -> Any:
        """Return max(z, 0)."""
        return z.clamp_(min=0)

    def where_active(self, dx: Any, a: Any) -> Any:
        """Return the error before the ReLU whose output was ``a``."""
        return dx * (a > 0)

    def output_error(self, z: Any, targets: Array) -> tuple[float, Any]:
        """Return the mean softmax cross-entropy, and its derivative by ``z``."""
        wanted = torch.from_numpy(targets).T
        log_p = torch.log_softmax(z, dim=0)
        loss = float(-(wanted * log_p).sum() / targets.shape[0])
        return loss, (log_p.exp() - wanted) / targets.shape[0]

    def update(self, values: Any, velocity: Any, gradient: Any, decay: float) -> None:
        """Apply the paper's update in place."""
        velocity.mul_(self.hyper.momentum).add_(gradient, alpha=-self.hyper.lr)
        if decay:
            values.mul_(1.0 - decay)
        values.add_(velocity)


class TorchCsr(TorchReference):
    """torch.sparse.mm and sampled_addmm."""

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        by_output = [matrix.T.tocsr() for matrix in start.matrices]
        self.weights = [torch_csr(matrix) for matrix in by_output]
        self.transposed, self.slots = [], []
        for matrix in by_output:
            back = matrix.copy()
            back.data = np.arange(matrix.nnz, dtype=np.int32)
            back = back.T.tocsr()
            self.slots.append(torch.from_numpy(back.data))
            back.data = matrix.data[back.data]
            self.transposed.append(torch_csr(back))
        self.velocities = [torch.zeros_like(weights.values()) for weights in self.weights]
        self.biases = [torch.zeros(matrix.shape[0]) for matrix in by_output]
        self.bias_velocities = [torch.zeros_like(bias) for bias in self.biases]

    def forward(self, layer: int, a: Any) -> Any:
        """Return W a + b."""
        return torch.sparse.mm(self.weights[layer], a).add_(self.biases[layer][:, None])

    def backward(self, layer: int, a: Any, delta: Any, with_dx: bool) -> Any:
        """Compute gradients where there are connections, and update."""
        weights, dx = self.weights[layer], None
        if with_dx:
            back = self.transposed[layer]
            torch.index_select(weights.values(), 0, self.slots[layer], out=back.values())
            dx = torch.sparse.mm(back, delta)
        gradient = torch.sparse.sampled_addmm(weights, delta, a.T, beta=0.0)
        self.update(weights.values(), self.velocities[layer], gradient.values(), self.hyper.decay)
        self.update(self.biases[layer], self.bias_velocities[layer], delta.sum(dim=1), 0.0)
        return dx

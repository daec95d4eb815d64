"""SparseLab's SparseLinear layers under torch's SGD."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import sparselab
import torch
from common.models import Model

from references.base import Reference
from references.start import Array, Start
from references.torch_csr import torch_csr

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


class SparselabNetwork(Reference):
    """`sparselab.SparseLinear` with our connections put in place of those it draws.

    Its constructor draws a dense matrix and a dense mask, so layers whose dense size exceeds the
    limit are left out.
    """

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        parts: list[Any] = []
        for matrix in start.matrices:
            n_in, n_out = matrix.shape
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # torch: CSR "in beta state"
                layer = sparselab.SparseLinear(
                    n_in, n_out, sparsity=1 - matrix.nnz / (n_in * n_out)
                )
            by_output = matrix.T.tocsr()
            layer._csr = sparselab.PaddedCSR.from_torch_sparse_csr(torch_csr(by_output))
            layer._values = torch.nn.Parameter(torch.from_numpy(np.asarray(layer._csr.values)))
            torch.nn.init.zeros_(layer.bias)
            parts += [layer, torch.nn.ReLU()]
        self.network = torch.nn.Sequential(*parts[:-1])
        self.optimizer = torch.optim.SGD(
            self.network.parameters(), lr=start.hyper.lr, momentum=start.hyper.momentum
        )

    @staticmethod
    def why_not(model: Model, limit_bytes: float) -> str | None:
        """A dense matrix, dense random numbers and two masks, per layer while it is made."""
        largest = max(i * o for i, o in zip(model.widths, model.widths[1:], strict=False))
        needed = 4 * largest * 4
        return f"its constructor needs {needed / 1e9:.1f} GB" if needed > limit_bytes else None

    def step(self, x: Array, targets: Array) -> float:
        """Train on one minibatch."""
        self.optimizer.zero_grad()
        outputs = self.network(torch.from_numpy(x))
        loss = torch.nn.functional.cross_entropy(outputs, torch.from_numpy(targets))
        loss.backward()
        with torch.no_grad():  # torch's SGD has no decay free of the learning rate
            for layer in self.network[::2]:
                layer._values.mul_(1.0 - self.hyper.decay)
        self.optimizer.step()
        return float(loss.detach())

    def forward(self, layer: int, a: Array) -> Array:
        """Not to be had by the layer."""
        raise NotImplementedError

    def backward(self, layer: int, a: Array, delta: Array, with_dx: bool) -> Array:
        """Not to be had by the layer."""
        raise NotImplementedError

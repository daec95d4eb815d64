"""Torch with dense weights and a mask: how most sparse training is simulated."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from common.models import Model

from references.start import Start
from references.torch_csr import TorchReference


class TorchMasked(TorchReference):
    """Dense products; the mask is applied to the gradient, absent weights stay 0."""

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self.weights, self.masks = [], []
        for matrix in start.matrices:
            self.weights.append(torch.from_numpy(np.ascontiguousarray(matrix.T.toarray())))
            present = matrix.copy()
            present.data = np.ones(matrix.nnz, dtype=np.float32)
            self.masks.append(torch.from_numpy(np.ascontiguousarray(present.T.toarray())))
        self.velocities = [torch.zeros_like(weights) for weights in self.weights]
        self.biases = [torch.zeros(matrix.shape[1]) for matrix in start.matrices]
        self.bias_velocities = [torch.zeros_like(bias) for bias in self.biases]

    @staticmethod
    def why_not(model: Model, limit_bytes: float) -> str | None:
        """Weights, masks, momentum and gradients are all dense."""
        needed = 4 * model.dense_bytes
        return f"needs {needed / 1e9:.1f} GB" if needed > limit_bytes else None

    def forward(self, layer: int, a: Any) -> Any:
        """Return W a + b."""
        return torch.mm(self.weights[layer], a).add_(self.biases[layer][:, None])

    def backward(self, layer: int, a: Any, delta: Any, with_dx: bool) -> Any:
        """Compute the dense gradient, mask it, update."""
        weights = self.weights[layer]
        dx = torch.mm(weights.T, delta) if with_dx else None
        gradient = torch.mm(delta, a.T).mul_(self.masks[layer])
        self.update(weights, self.velocities[layer], gradient, self.hyper.decay)
        self.update(self.biases[layer], self.bias_velocities[layer], delta.sum(dim=1), 0.0)
        return dx

"""Rows: the layout the kernels work in, one row per neuron, one column per sample.

PyTorch's tensors have samples as rows.  What a sparse layer returns is therefore a *transposed
view* of its rows: of the usual shape, with the batch as the innermost dimension in memory.
Elementwise operations keep that order, so that between two sparse layers nothing is moved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ratoon.kernels import LANES

# Above this many samples PyTorch turns a matrix faster than NumPy, below it is the other way
# round (measured for 32 x 54,675 up to 4096 x 768).
_LARGE_BATCH = 512


def padded_size(batch: int) -> int:
    """Return the columns that the kernels need for that many samples.

    Examples
    --------
    >>> [padded_size(batch) for batch in (1, 2, 8, 9)]
    [1, 8, 8, 16]
    """
    return batch if batch <= 1 else -(-batch // LANES) * LANES


def lies_in_rows(x: torch.Tensor) -> bool:
    """Whether the transpose of samples x features is what the kernels take, as it lies."""
    return bool(x.shape[0] == padded_size(x.shape[0]) and x.t().is_contiguous())


def as_array(tensor: torch.Tensor) -> NDArray[Any]:
    """Return the NumPy array on a tensor's memory, or on a copy in C order and aligned."""
    plain = tensor.detach()
    if plain.ndim == 2 and not plain.is_contiguous() and plain.shape[1] > _LARGE_BATCH:
        plain = plain.contiguous()
    return np.require(plain.numpy(), requirements=["C", "A"])


@torch.library.custom_op("ratoon::to_rows", mutates_args=())
def to_rows(x: torch.Tensor) -> torch.Tensor:
    """Turn samples x features into features x samples, padded with zeros."""
    batch, n_features = x.shape
    lanes = padded_size(batch)
    if batch == lanes and batch > _LARGE_BATCH:
        return x.t().clone(memory_format=torch.contiguous_format)
    rows = np.empty((n_features, lanes), dtype=x.detach().numpy().dtype)
    rows[:, :batch] = x.detach().numpy().T
    rows[:, batch:] = 0
    return torch.from_numpy(rows)


@to_rows.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    batch, n_features = x.shape
    return x.new_empty((n_features, padded_size(batch)))


def _remember_batch(ctx: Any, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
    del output
    ctx.batch = inputs[0].shape[0]


def _from_rows(ctx: Any, d_rows: torch.Tensor) -> torch.Tensor:
    return d_rows[:, : ctx.batch].t()


to_rows.register_autograd(_from_rows, setup_context=_remember_batch)

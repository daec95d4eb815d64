"""Operators: ratoon's kernels as PyTorch sees them, with gradients.

They work on rows (see `ratoon.torch.rows`) and are opaque to `torch.compile`, which only knows
their shapes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ratoon import kernels
from ratoon.kernels import Rule
from ratoon.torch.gradients import register_gradients
from ratoon.torch.handles import handle_of
from ratoon.torch.rows import as_array


@torch.library.custom_op("ratoon::linear", mutates_args=(), device_types="cpu")
def linear(
    rows: torch.Tensor,
    values: torch.Tensor,
    bias: torch.Tensor | None,
    grid: torch.Tensor,
    starts: torch.Tensor,
    packed: torch.Tensor,
    token: torch.Tensor,
    n_out: int,
) -> torch.Tensor:
    """Return ``W x + b`` for rows of inputs."""
    if rows.shape[1] == 0:
        return rows.new_empty((n_out, 0))
    weights = as_array(values)
    topology = handle_of(token).topology((grid, starts, packed))
    b = np.zeros(n_out, dtype=weights.dtype) if bias is None else as_array(bias)
    threads = torch.get_num_threads()
    return torch.from_numpy(
        kernels.forward(topology, weights, b, as_array(rows), n_threads=threads)
    )


@linear.register_fake
def _(rows: torch.Tensor, values: torch.Tensor, *others: Any) -> torch.Tensor:
    n_out = others[-1]
    return rows.new_empty((n_out, rows.shape[1]))


@torch.library.custom_op("ratoon::linear_backward", mutates_args=(), device_types="cpu")
def linear_backward(
    d_out: torch.Tensor,
    rows: torch.Tensor,
    values: torch.Tensor,
    grid: torch.Tensor,
    starts: torch.Tensor,
    packed: torch.Tensor,
    token: torch.Tensor,
    with_d_rows: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of the values and, where wanted, of the inputs."""
    if rows.shape[1] == 0:
        return torch.zeros_like(values), torch.zeros_like(rows if with_d_rows else rows[:0])
    handle = handle_of(token)
    x, dy = as_array(rows), as_array(d_out)
    gradient = np.empty(values.shape, dtype=x.dtype)
    dx = kernels.backward(
        handle.topology((grid, starts, packed)),
        Rule.STORE,
        as_array(values),
        x,
        dy,
        first=gradient,
        with_dx=with_d_rows,
        n_threads=torch.get_num_threads(),
    )
    if handle.listening:
        handle.heard.append((x, dy))
    d_rows = rows.new_empty((0, rows.shape[1])) if dx is None else torch.from_numpy(dx)
    return torch.from_numpy(gradient), d_rows


@linear_backward.register_fake
def _(
    d_out: torch.Tensor, rows: torch.Tensor, values: torch.Tensor, *others: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    with_d_rows = others[-1]
    n_in = rows.shape[0] if with_d_rows else 0
    return torch.empty_like(values), rows.new_empty((n_in, rows.shape[1]))


register_gradients(linear, linear_backward, bias_sums_over=(1,))

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
def _(
    rows: torch.Tensor,
    values: torch.Tensor,
    bias: torch.Tensor | None,
    grid: torch.Tensor,
    starts: torch.Tensor,
    packed: torch.Tensor,
    token: torch.Tensor,
    n_out: int,
) -> torch.Tensor:
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
    d_out: torch.Tensor,
    rows: torch.Tensor,
    values: torch.Tensor,
    grid: torch.Tensor,
    starts: torch.Tensor,
    packed: torch.Tensor,
    token: torch.Tensor,
    with_d_rows: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    n_in = rows.shape[0] if with_d_rows else 0
    return torch.empty_like(values), rows.new_empty((n_in, rows.shape[1]))


def _keep_inputs(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    del output
    rows, values, bias, grid, starts, packed, token, _ = inputs
    ctx.with_bias = bias is not None
    ctx.save_for_backward(rows, values, grid, starts, packed, token)


def _gradients(ctx: Any, d_out: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    rows, values, *topology = ctx.saved_tensors
    wants_rows, wants_values, wants_bias, *_ = ctx.needs_input_grad
    d_rows = d_values = d_bias = None
    if wants_rows or wants_values:
        d_values, d_rows = linear_backward(d_out, rows, values, *topology, wants_rows)
    if ctx.with_bias and wants_bias:
        d_bias = d_out.sum(dim=1)
    return d_rows if wants_rows else None, d_values, d_bias, None, None, None, None, None


linear.register_autograd(_gradients, setup_context=_keep_inputs)


def refuse_second_derivatives(ctx: Any, *gradients: torch.Tensor) -> None:
    """Say that there are none, and what to do."""
    del ctx, gradients
    raise NotImplementedError(
        "sparse layers have first derivatives only: the gradient of a gradient was asked for.\n"
        "  Leave out `create_graph=True`, or use `to_dense()` where second derivatives are needed."
    )


linear_backward.register_autograd(refuse_second_derivatives)

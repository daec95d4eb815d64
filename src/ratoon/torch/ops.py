"""Operators: ratoon's kernels as PyTorch operators, their layout and their gradients.

The kernels work on rows: one row per neuron, one column per sample.  PyTorch's tensors have samples
as rows.  The output of a sparse layer is therefore a *transposed view* of its rows: of the usual
shape, with the batch as the innermost dimension in memory.  Elementwise operations keep that order,
so nothing is copied between two sparse layers.

Operators are opaque to `torch.compile`, which only knows their shapes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ratoon import kernels
from ratoon.kernels import LANES, Rule
from ratoon.topology import Topology
from ratoon.torch.handles import TopologyBuffers, TopologyHandle, handle_of

# Above this number of samples PyTorch transposes a matrix faster than NumPy, below it NumPy is
# faster (measured for 32 x 54,675 up to 4096 x 768).
_LARGE_BATCH = 512


def padded_size(batch: int) -> int:
    """Return the number of columns that the kernels need for a batch.

    Examples
    --------
    >>> [padded_size(batch) for batch in (1, 2, 8, 9)]
    [1, 8, 8, 16]
    """
    return batch if batch <= 1 else -(-batch // LANES) * LANES


def lies_in_rows(x: torch.Tensor) -> bool:
    """Whether the transpose of samples x features has the layout of the kernels."""
    return bool(x.shape[0] == padded_size(x.shape[0]) and x.t().is_contiguous())


def lies_in_samples(rows: torch.Tensor) -> bool:
    """Whether rows are the transpose of samples, as many as the kernels take."""
    n_rows, lanes = rows.shape
    return bool(n_rows > 1 and lanes == padded_size(lanes) and rows.t().is_contiguous())


def as_array(tensor: torch.Tensor) -> NDArray[Any]:
    """Return a tensor as a NumPy array; copy it if it is not aligned and in C order."""
    detached = tensor.detach()
    if detached.ndim == 2 and detached.shape[1] > 1 and lies_in_samples(detached):
        return kernels.rows_of(detached.t().numpy(), n_threads=torch.get_num_threads())
    if detached.ndim == 2 and not detached.is_contiguous() and detached.shape[1] > _LARGE_BATCH:
        detached = detached.contiguous()
    array: NDArray[Any] = detached.numpy()
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        return array
    return np.require(array, requirements=["C", "A"])


def rows_of_samples(x: torch.Tensor) -> torch.Tensor:
    """Transpose samples x features to features x samples, padded with zeros."""
    batch, n_features = x.shape
    if batch == 0 or n_features == 0:
        return x.new_empty((n_features, padded_size(batch)))
    samples = x.detach().numpy()
    if samples.strides[1] != samples.itemsize or samples.strides[0] < 0:
        samples = np.ascontiguousarray(samples)
    return torch.from_numpy(kernels.rows_of(samples, n_threads=torch.get_num_threads()))


@torch.library.custom_op("ratoon::to_rows", mutates_args=())
def to_rows(x: torch.Tensor) -> torch.Tensor:
    """Do the same as `rows_of_samples`."""
    return rows_of_samples(x)


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


def register_gradients(operator: Any, backward: Any, *, bias_sums_over: tuple[int, ...]) -> None:
    """Register the gradient of a sparse operator; second derivatives raise an error.

    The operator takes an input, the values, a bias or None, the four tensors of the topology, the
    number of outputs, and optional arguments without gradient.  ``backward`` takes the gradient of
    the output, the input, the values, the topology, the optional arguments, and whether the
    gradient of the input is needed; it returns the gradients of values and input.

    ``bias_sums_over`` are the dimensions of the output over which the bias is broadcast.
    """

    def keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        del output
        x, values, bias, grid, starts, packed, token, _, *more = inputs
        ctx.with_bias, ctx.more = bias is not None, more
        ctx.save_for_backward(x, values, grid, starts, packed, token)

    def gradients(ctx: Any, d_out: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, values, *topology = ctx.saved_tensors
        needs_x, needs_values, needs_bias, *others = ctx.needs_input_grad
        d_x = d_values = d_bias = None
        if needs_x or needs_values:
            d_values, d_x = backward(d_out, x, values, *topology, *ctx.more, needs_x)
        if ctx.with_bias and needs_bias:
            d_bias = d_out.sum(dim=bias_sums_over)
        return d_x if needs_x else None, d_values, d_bias, *(None for _ in others)

    operator.register_autograd(gradients, setup_context=keep)
    backward.register_autograd(refuse_second_derivatives)


def refuse_second_derivatives(ctx: Any, *gradients: torch.Tensor) -> None:
    """Raise an error with advice."""
    del ctx, gradients
    raise NotImplementedError(
        "sparse layers have first derivatives only, but a second derivative was requested.\n"
        "  Omit `create_graph=True`, or use `to_dense()` where second derivatives are needed."
    )


def product_of_rows(
    rows: torch.Tensor, values: torch.Tensor, bias: torch.Tensor | None, topology: Topology
) -> torch.Tensor:
    """Return ``W x + b`` for rows of inputs."""
    n_out = topology.shape[1]
    if rows.shape[1] == 0:
        return rows.new_empty((n_out, 0))
    weights, threads = as_array(values), torch.get_num_threads()
    b = np.zeros(n_out, dtype=weights.dtype) if bias is None else as_array(bias)
    return torch.from_numpy(
        kernels.forward(topology, weights, b, as_array(rows), n_threads=threads)
    )


def gradients_of_rows(
    d_out: torch.Tensor,
    rows: torch.Tensor,
    values: torch.Tensor,
    buffers: TopologyBuffers,
    handle: TopologyHandle,
    *,
    with_d_rows: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of the values and, if ``with_d_rows``, of the inputs."""
    if rows.shape[1] == 0:
        return torch.zeros_like(values), torch.zeros_like(rows if with_d_rows else rows[:0])
    x, dy = as_array(rows), as_array(d_out)
    gradient = np.empty(values.shape, dtype=x.dtype)
    dx = kernels.backward(
        handle.topology(buffers),
        Rule.STORE,
        as_array(values),
        x,
        dy,
        first=gradient,
        with_dx=with_d_rows,
        n_threads=torch.get_num_threads(),
    )
    if handle.recording:
        handle.recorded.append((x, dy))
    d_rows = rows.new_empty((0, rows.shape[1])) if dx is None else torch.from_numpy(dx)
    return torch.from_numpy(gradient), d_rows


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
    """Do the same as `product_of_rows`, for `torch.compile` with the number of outputs."""
    del n_out
    return product_of_rows(rows, values, bias, handle_of(token).topology((grid, starts, packed)))


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
    """Do the same as `gradients_of_rows`."""
    buffers = grid, starts, packed
    return gradients_of_rows(
        d_out, rows, values, buffers, handle_of(token), with_d_rows=with_d_rows
    )


@linear_backward.register_fake
def _(
    d_out: torch.Tensor, rows: torch.Tensor, values: torch.Tensor, *others: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    with_d_rows = others[-1]
    n_in = rows.shape[0] if with_d_rows else 0
    return torch.empty_like(values), rows.new_empty((n_in, rows.shape[1]))


register_gradients(linear, linear_backward, bias_sums_over=(1,))

"""One sparse layer as a step of PyTorch's autograd, without the dispatcher.

A registered operator is needed for `torch.compile`, for `torch.export` and wherever PyTorch looks
at operators instead of running them.  Everywhere else it costs more time than a small layer itself:
every call passes through the dispatcher, in Python, several times.  Here the same kernels are
called directly.
"""

from __future__ import annotations

from typing import Any

import torch

from ratoon.torch.handles import TopologyBuffers, TopologyHandle
from ratoon.torch.ops import (
    gradients_of_rows,
    lies_in_rows,
    linear_backward,
    product_of_rows,
    rows_of_samples,
    to_rows,
)

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def is_eager(*tensors: torch.Tensor) -> bool:
    """Whether PyTorch runs what it is given now, and does not trace or transform it.

    Examples
    --------
    >>> is_eager(torch.ones(1)), torch.vmap(lambda x: x * is_eager(x))(torch.ones(1))
    (True, tensor([0.]))
    """
    return (
        all(type(tensor) in _PLAIN for tensor in tensors)
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()
        and not torch._C._are_functorch_transforms_active()
        and not torch._C._len_torch_dispatch_stack()
    )


def apply_eagerly(
    x: torch.Tensor,
    values: torch.Tensor,
    bias: torch.Tensor | None,
    buffers: TopologyBuffers,
    handle: TopologyHandle,
) -> torch.Tensor:
    """Return ``W x + b`` for samples x inputs, as a transposed view of rows of outputs."""
    if torch.is_grad_enabled():
        out: torch.Tensor = SparseProduct.apply(x, values, bias, *buffers, handle)
        return out
    rows = x.t() if lies_in_rows(x) else rows_of_samples(x)
    return _samples(product_of_rows(rows, values, bias, handle.topology(buffers)), x.shape[0])


def _samples(rows: torch.Tensor, batch: int) -> torch.Tensor:
    return (rows if rows.shape[1] == batch else rows[:, :batch]).t()


class SparseProduct(torch.autograd.Function):
    """``W x + b`` for samples x inputs; second derivatives raise an error."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        values: torch.Tensor,
        bias: torch.Tensor | None,
        grid: torch.Tensor,
        starts: torch.Tensor,
        packed: torch.Tensor,
        handle: TopologyHandle,
    ) -> torch.Tensor:
        """Return the outputs; keep what the gradients need."""
        ctx.handle, ctx.batch, ctx.lies_in_rows = handle, x.shape[0], lies_in_rows(x)
        kept = x if ctx.lies_in_rows else rows_of_samples(x)
        rows = x.t() if ctx.lies_in_rows else kept
        ctx.save_for_backward(kept, values, grid, starts, packed)
        out = product_of_rows(rows, values, bias, handle.topology((grid, starts, packed)))
        return _samples(out, ctx.batch)

    @staticmethod
    def backward(ctx: Any, d_out: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of input, values and bias."""
        kept, values, *buffers = ctx.saved_tensors
        needs_x, needs_values, needs_bias = ctx.needs_input_grad[:3]
        rows = kept.t() if ctx.lies_in_rows else kept
        # With `create_graph` gradients are differentiated again, which only operators refuse.
        is_recorded = torch.is_grad_enabled()
        turn = to_rows if is_recorded else rows_of_samples
        d_rows = d_out.t() if lies_in_rows(d_out) else turn(d_out)
        d_x = d_values = None
        if is_recorded and (needs_x or needs_values):
            token = ctx.handle.token
            d_values, d_x = linear_backward(d_rows, rows, values, *buffers, token, needs_x)
        elif needs_x or needs_values:
            d_values, d_x = gradients_of_rows(
                d_rows, rows, values, tuple(buffers), ctx.handle, with_d_rows=needs_x
            )
        d_x = _samples(d_x, ctx.batch) if needs_x else None
        d_bias = None
        if needs_bias:
            # As the operators do, whose sums have this order.
            d_bias = (d_out.t() if d_rows.shape[1] == ctx.batch else d_rows).sum(dim=1)
        return d_x, d_values, d_bias, None, None, None, None

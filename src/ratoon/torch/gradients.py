"""Gradients of sparse operators: what all of them have in common.

Such an operator takes an input, the values, a bias or None, the four tensors that name the
topology, the number of outputs, and perhaps more that needs no gradient.  Its backward operator
takes the gradient of the output, input, values, topology, the same more, and whether the gradient
of the input is wanted; it returns the gradients of values and input.
"""

from __future__ import annotations

from typing import Any

import torch


def register_gradients(operator: Any, backward: Any, *, bias_sums_over: tuple[int, ...]) -> None:
    """Tell PyTorch the derivatives of an operator, and that there are no second ones.

    ``bias_sums_over`` are the dimensions of the output along which a bias is repeated.
    """

    def keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        del output
        x, values, bias, grid, starts, packed, token, _, *more = inputs
        ctx.with_bias, ctx.more = bias is not None, more
        ctx.save_for_backward(x, values, grid, starts, packed, token)

    def gradients(ctx: Any, d_out: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, values, *topology = ctx.saved_tensors
        wants_x, wants_values, wants_bias, *others = ctx.needs_input_grad
        d_x = d_values = d_bias = None
        if wants_x or wants_values:
            d_values, d_x = backward(d_out, x, values, *topology, *ctx.more, wants_x)
        if ctx.with_bias and wants_bias:
            d_bias = d_out.sum(dim=bias_sums_over)
        return d_x if wants_x else None, d_values, d_bias, *(None for _ in others)

    operator.register_autograd(gradients, setup_context=keep)
    backward.register_autograd(refuse_second_derivatives)


def refuse_second_derivatives(ctx: Any, *gradients: torch.Tensor) -> None:
    """Say that there are none, and what to do."""
    del ctx, gradients
    raise NotImplementedError(
        "sparse layers have first derivatives only: the gradient of a gradient was asked for.\n"
        "  Leave out `create_graph=True`, or use `to_dense()` where second derivatives are needed."
    )

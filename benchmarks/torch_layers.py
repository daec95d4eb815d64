"""Sparse layers of `ratoon.torch` and PyTorch's dense ones: one forward and backward pass.

Milliseconds of processor time on one thread, gradient of the input included; the least of several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from common.machine import MachineState
from common.tables import markdown, parser, write_json
from common.timing import repeat

from ratoon.torch import SparseConv2d, SparseLinear, SparseLSTM

EXAMPLES = """\
  torch_layers.py --json torch_layers.json
  torch_layers.py --layers conv --densities 0.1,0.01
"""


def linear(n: int, batch: int) -> tuple[str, Callable[..., Any], torch.nn.Module, torch.Tensor]:
    """Return name, maker of the sparse layer, the dense one and an input."""
    return (
        f"Linear({n}, {n}), batch {batch}",
        lambda density: SparseLinear(n, n, density=density),
        torch.nn.Linear(n, n),
        torch.randn(batch, n),
    )


def conv(
    channels: int, images: int, side: int
) -> tuple[str, Callable[..., Any], torch.nn.Module, torch.Tensor]:
    """Return the same for a 3 x 3 convolution."""
    return (
        f"Conv2d({channels}, {channels}, 3), {images} images of {side} x {side}",
        lambda density: SparseConv2d(channels, channels, 3, padding=1, density=density),
        torch.nn.Conv2d(channels, channels, 3, padding=1),
        torch.randn(images, channels, side, side),
    )


def lstm(
    n_in: int, n: int, steps: int, batch: int
) -> tuple[str, Callable[..., Any], torch.nn.Module, torch.Tensor]:
    """Return the same for a recurrent layer."""
    return (
        f"LSTM({n_in}, {n}), {steps} steps, batch {batch}",
        lambda density: SparseLSTM(n_in, n, density=density),
        torch.nn.LSTM(n_in, n),
        torch.randn(steps, batch, n_in),
    )


LAYERS = {
    "linear": [linear(1000, 128), linear(4096, 32), linear(4096, 128)],
    "conv": [conv(64, 16, 32), conv(128, 16, 16), conv(256, 32, 8)],
    "lstm": [lstm(256, 512, 50, 32)],
}


def milliseconds(layer: torch.nn.Module, x: torch.Tensor, repeats: int) -> float:
    """Return the processor time of one pass there and back."""
    x = x.clone().requires_grad_()

    def run() -> None:
        layer.zero_grad()
        x.grad = None
        out = layer(x)
        out = out[0] if isinstance(out, tuple) else out
        out.backward(torch.ones_like(out))

    run()
    return 1e3 * repeat(run, repeats=repeats, budget_s=20.0).cpu_s


def main() -> None:
    """Measure and print."""
    options = parser(__doc__ or "", EXAMPLES)
    options.add_argument("--layers", default="linear,conv,lstm", help=f"of {','.join(LAYERS)}")
    options.add_argument("--densities", default="0.2,0.1,0.05,0.02,0.01")
    options.add_argument("--repeats", type=int, default=7)
    given = options.parse_args()
    densities = [float(word) for word in given.densities.split(",")]
    torch.set_num_threads(1)
    rows = []
    with MachineState() as machine:
        for kind in given.layers.split(","):
            for name, make_sparse, dense, x in LAYERS[kind]:
                row: dict[str, Any] = {"layer": name}
                row["dense"] = milliseconds(dense, x, given.repeats)
                for density in densities:
                    layer = make_sparse(density)
                    row[f"{100 * density:g} %"] = milliseconds(layer, x, given.repeats)
                rows.append(row)
    print(markdown(rows))
    write_json(given.json, {"milliseconds": rows, "machine": machine.facts()})


if __name__ == "__main__":
    main()

"""The density at which a sparse layer becomes faster than a dense one, as a table and a picture.

One layer of n x n: ratoon's kernels at several densities, PyTorch's dense product (MKL or oneDNN)
of the same shape; forward alone, and forward with both gradients.  Time is the minimum over turns:
CPU time on one thread, wall time on several.  Time of a sparse pass is close to linear in the
density, so the crossing is interpolated between the two densities around it on a logarithmic scale.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from common.machine import MachineState
from common.tables import markdown, numbers, parser, write_json

from ratoon import kernels
from ratoon.kernels import Rule
from ratoon.kernels.linear import padded
from ratoon.network import SparseMLP

EXAMPLES = """\
  crossover.py --svg crossover.svg --json crossover.json
  crossover.py --widths 512,2048 --batches 32,128 --threads 1
"""
DENSITIES = (0.005, 0.02, 0.08, 0.3, 0.8)
MOST_CONNECTIONS = 8_000_000  # of a layer that is made for a measurement
PASSES = ("forward", "forward + backward")


def best(works: list[Callable[[], Any]], threads: int, rounds: int, budget_s: float) -> list[float]:
    """Return the least seconds of each, measured in turns."""
    clock = time.process_time if threads == 1 else time.perf_counter
    found = [math.inf] * len(works)
    started = time.process_time()
    for turn in range(rounds):
        for index, work in enumerate(works):
            if found[index] < math.inf and time.process_time() - started > budget_s:
                continue
            begin = clock()
            work()
            taken = clock() - begin
            if turn > 0 or taken > budget_s / 4:  # the first run is to warm up
                found[index] = min(found[index], taken)
    return found


def sparse_work(n: int, density: float, batch: int, threads: int) -> list[Callable[[], Any]]:
    """Return forward, and forward with backward, of a sparse layer."""
    layer = SparseMLP.start((n, n), density=density, seed=0).layers[0]
    rng = np.random.default_rng(0)
    x, dy = (padded(rng.normal(size=(n, batch)).astype(np.float32)) for _ in range(2))
    gradient = np.empty_like(layer.stored)

    def forward() -> None:
        kernels.forward(layer.topology, layer.stored, layer.bias, x, n_threads=threads)

    def both() -> None:
        forward()
        kernels.backward(
            layer.topology, Rule.STORE, layer.stored, x, dy, first=gradient, n_threads=threads
        )

    return [forward, both]


def dense_work(n: int, batch: int) -> list[Callable[[], Any]]:
    """Return the same of a dense layer, samples as rows as PyTorch has them."""
    x, dy, weights = torch.randn(batch, n), torch.randn(batch, n), torch.randn(n, n)
    y, dx, gradient = torch.empty(batch, n), torch.empty(batch, n), torch.empty(n, n)

    def forward() -> None:
        torch.mm(x, weights.t(), out=y)

    def both() -> None:
        forward()
        torch.mm(dy, weights, out=dx)
        torch.mm(dy.t(), x, out=gradient)

    return [forward, both]


def crossing(densities: list[float], ratios: list[float]) -> float:
    """Return the density at which sparse time divided by dense time is 1.

    >>> round(crossing([0.01, 0.1], [0.1, 10.0]), 4)
    0.0316
    >>> crossing([0.01, 0.1], [0.1, 0.5]), crossing([0.01, 0.1], [2.0, 4.0])
    (1.0, 0.005)
    """
    if ratios[0] >= 1:
        return densities[0] / ratios[0]
    for low, high, before, after in zip(densities, densities[1:], ratios, ratios[1:], strict=False):
        if after >= 1:
            share = -math.log(before) / (math.log(after) - math.log(before))
            return float(low * (high / low) ** share)
    return min(1.0, densities[-1] / ratios[-1])


def measure(n: int, batch: int, threads: int, given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row per pass."""
    densities = [one for one in DENSITIES if one * n * n <= MOST_CONNECTIONS]
    works = [dense_work(n, batch)]
    works += [sparse_work(n, density, batch, threads) for density in densities]
    ratios = {}
    for name, turns in zip(PASSES, zip(*works, strict=True), strict=True):
        dense, *sparse = best(list(turns), threads, given.rounds, given.seconds)
        ratios[name] = [one / dense for one in sparse]
    return [
        {
            "threads": threads,
            "pass": name,
            "batch": batch,
            "width": n,
            "crossing": crossing(densities, ratios[name]),
            "densities": densities,
            "times as long": ratios[name],
        }
        for name in PASSES
    ]


def shown(crossing: float) -> str:
    """Return a density as a percentage.

    >>> shown(0.0123), shown(0.456), shown(1.0)
    ('1.2 %', '46 %', 'always')
    """
    if crossing >= 1:
        return "always"
    percent = 100 * crossing
    return f"{percent:.1f} %" if percent < 10 else f"{percent:.0f} %"


def table(rows: list[dict[str, Any]], widths: list[int]) -> str:
    """Return one line per threads, pass and batch, one column per width."""
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = row["threads"], row["pass"], row["batch"]
        line = lines.setdefault(key, {"threads": key[0], "pass": key[1], "batch": str(key[2])})
        line[f"{row['width']:,}"] = shown(row["crossing"])
    names = [f"{width:,}" for width in widths]
    return markdown([{**dict.fromkeys(names), **line} for line in lines.values()])


def draw(rows: list[dict[str, Any]], path: str) -> None:
    """Draw a heat map per number of threads and pass."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt
    from matplotlib.colors import LogNorm

    threads = sorted({row["threads"] for row in rows})
    widths = sorted({row["width"] for row in rows})
    batches = sorted({row["batch"] for row in rows})
    figure, axes = plt.subplots(
        len(threads), 2, figsize=(9, 0.6 + 2.4 * len(threads)), squeeze=False, layout="constrained"
    )
    for axis_row, count in zip(axes, threads, strict=True):
        for axis, name in zip(axis_row, PASSES, strict=True):
            grid = np.full((len(batches), len(widths)), np.nan)
            for row in rows:
                if row["threads"] == count and row["pass"] == name:
                    at = batches.index(row["batch"]), widths.index(row["width"])
                    grid[at] = row["crossing"]
            axis.imshow(grid, norm=LogNorm(0.01, 1), cmap="viridis", aspect="auto")
            for (i, j), value in np.ndenumerate(grid):
                if np.isfinite(value):
                    colour = "black" if value > 0.2 else "white"
                    axis.text(j, i, shown(value), ha="center", va="center", color=colour)
            axis.set_xticks(range(len(widths)), [f"{width:,}" for width in widths])
            axis.set_yticks(range(len(batches)), [f"{batch:,}" for batch in batches])
            axis.set_title(f"{name}, {count} thread{'s' * (count > 1)}", fontsize=10)
            axis.set_xlabel("width")
            axis.set_ylabel("batch")
    figure.suptitle("Sparse is faster than dense below this density", fontsize=11)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure, print the table, draw the picture."""
    options = parser(__doc__ or "", EXAMPLES)
    options.add_argument("--widths", type=numbers, default=[512, 1024, 2048, 4096, 8192])
    options.add_argument("--batches", type=numbers, default=[1, 32, 128, 1024])
    options.add_argument("--threads", type=numbers, default=[1, 2])
    options.add_argument("--rounds", type=int, default=12, help="turns at most")
    options.add_argument("--seconds", type=float, default=1.5, help="for a case and pass, about")
    options.add_argument("--svg", metavar="OUT", help="draw the heat map")
    given = options.parse_args()
    rows: list[dict[str, Any]] = []
    with MachineState() as machine:
        for threads in given.threads:
            torch.set_num_threads(threads)
            for width in given.widths:
                for batch in given.batches:
                    rows += measure(width, batch, threads, given)
                    print(table(rows[-2:], [width]).splitlines()[-1], flush=True)
    print("\n" + table(rows, given.widths))
    write_json(given.json, {"rows": rows, "machine": machine.facts()})
    if given.svg:
        draw(rows, given.svg)


if __name__ == "__main__":
    main()

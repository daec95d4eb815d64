"""Time of one rewiring (prune and grow) of a square layer, native and as the paper has it twice.

Implementation I visits one connection at a time, II works on whole arrays; both are in
`ratoon.evolution.contrib.paper`.  ``native`` is what training uses: `SET.rewire_in_place`, which
moves the momentum along and draws the new weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common.isolate import run_fresh
from common.machine import MachineState, describe
from common.tables import markdown, numbers, parser, write_json
from common.timing import Timing, repeat

from ratoon.evolution import SET, Clock
from ratoon.evolution.contrib.paper import rewire_one_by_one, rewire_vectorised
from ratoon.layers import make_layer

EXAMPLES = """\
  rewire.py --json rewire.json
  rewire.py --sizes 500,15000 --threads 1,2
"""
SIZES = (500, 2000, 8000, 15000, 500_000)
PAPER_S = {500: (0.58, 0.14), 2000: (2.56, 0.71), 8000: (11.13, 2.08), 15000: (24.14, 3.75)}
"""Mean seconds of Implementations I and II in the paper's table."""


def measure(
    size: int, epsilon: float, zeta: float, threads: list[int], most_one_by_one: int
) -> dict[str, Any]:
    """Measure one layer size here and now; the caller gives it a fresh process."""
    layer = make_layer((size, size), epsilon=epsilon, init="set", seed=0)
    layer.clear_state(1)
    found: dict[str, Any] = {"size": size, "connections": layer.n_connections, "epsilon": epsilon}
    strategy, seeds = SET(zeta=zeta), iter(range(10**9))
    for n_threads in threads:
        timing = repeat(
            lambda n_threads=n_threads: strategy.rewire_in_place(
                layer, Clock(1, 1, 10), next(seeds), n_threads
            ),
            repeats=5,
            at_least_s=2.0,
            budget_s=30.0,
        )
        build = repeat(
            lambda n_threads=n_threads: make_layer(
                (size, size), epsilon=epsilon, init="set", seed=0, n_threads=n_threads
            ),
            repeats=3,
            at_least_s=1.0,
        )
        found[f"native_{n_threads}t_ms"] = 1e3 * timing.wall_s
        found[f"native_{n_threads}t_cpu_ms"] = 1e3 * timing.cpu_s
        found[f"build_{n_threads}t_ms"] = 1e3 * build.wall_s
    matrix, rng = layer.to_csr(), np.random.default_rng(0)
    found["implementation_2_s"] = best(
        repeat(lambda: rewire_vectorised(matrix, zeta, rng), repeats=3, budget_s=20.0)
    )
    if layer.n_connections <= most_one_by_one:
        found["implementation_1_s"] = best(
            repeat(lambda: rewire_one_by_one(matrix, zeta, rng), repeats=3, budget_s=20.0)
        )
    return found


def best(timing: Timing) -> float:
    """Return CPU time: all of this runs on one thread."""
    return timing.cpu_s


def row_of(found: dict[str, Any], threads: list[int]) -> dict[str, Any]:
    """Return a size's line of the table, and add the ratios to what was found."""
    native_s = found[f"native_{threads[0]}t_cpu_ms" if threads[0] == 1 else
                     f"native_{threads[0]}t_ms"] / 1e3  # fmt: skip
    paper = PAPER_S.get(found["size"], (None, None))
    for number, paper_s in zip((1, 2), paper, strict=True):
        ours = found.get(f"implementation_{number}_s")
        found[f"implementation_{number}_over_native"] = ours / native_s if ours else None
        found[f"paper_implementation_{number}_s"] = paper_s
    return {
        "layer": f"{found['size']:,} x {found['size']:,}",
        "connections": found["connections"],
        **{f"native ms, {n} thread(s)": found[f"native_{n}t_ms"] for n in threads},
        "CPU ms": 1e3 * native_s,
        "ns per connection": 1e9 * native_s / found["connections"],
        "I s": found.get("implementation_1_s"),
        "II s": found["implementation_2_s"],
        "I / native": found["implementation_1_over_native"],
        "II / native": found["implementation_2_over_native"],
        "paper I s": paper[0],
        "paper II s": paper[1],
    }


def main() -> None:
    """Measure the sizes asked for, print a table, write JSON."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument("--sizes", type=numbers, default=list(SIZES), help="of square layers")
    arguments.add_argument("--threads", type=numbers, default=[1], help="such as 1 or 1,2")
    arguments.add_argument("--epsilon", type=float, default=10.0)
    arguments.add_argument("--zeta", type=float, default=0.3)
    arguments.add_argument(
        "--most-one-by-one",
        type=int,
        default=500_000,
        help="connections up to which Implementation I is tried (default 500000: seconds)",
    )
    given = arguments.parse_args()
    layers = []
    with MachineState() as machine:
        for size in given.sizes:
            found = run_fresh(
                "rewire:measure",
                n_threads=max(given.threads),
                size=size,
                epsilon=given.epsilon,
                zeta=given.zeta,
                threads=given.threads,
                most_one_by_one=given.most_one_by_one,
            )
            if "failed" in found:
                raise SystemExit(f"{size} x {size}: {found['failed']}")
            layers.append(found)
    rows = [row_of(found, given.threads) for found in layers]
    print(markdown(rows))
    print("\n" + describe(machine.facts()))
    write_json(given.json, {"machine": machine.facts(), "layers": layers})


if __name__ == "__main__":
    main()

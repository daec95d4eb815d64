"""Memory and time of one network whose parts are on several MPI ranks; and a larger one on paper.

Every number of ranks runs in processes of its own, with one thread each.  ``share`` is the memory
of one rank alone divided by the number of ranks; samples are left out.  The last table computes
what 16 machines would need, from the time per connection measured here and a given network.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from common.machine import MachineState
from common.memory import forget_peak, peak_mb, resident_mb
from common.tables import markdown, parser, write_json

from ratoon.distributed import MPICommunicator
from ratoon.distributed.split import SplitNetwork, SplitTraining, split_cost
from ratoon.evolution import SET
from ratoon.optimizers import SGD
from ratoon.training import TrainingPlan

EXAMPLES = """\
  python benchmarks/split_ranks.py
  python benchmarks/split_ranks.py --widths 10000,500000,500000,2 --ranks 1,2,4 --batch 8
"""
PAPER_WIDTHS = (54_675, *[200_000_000] * 5, 18)
PAPER_RANKS, PAPER_EPSILON = 16, 10.0
GIGABITS = (10, 100)


def measure(widths: tuple[int, ...], batch: int, steps: int) -> dict[str, Any]:
    """Train on this rank for some steps with a rewiring between; return what it costs."""
    ranks = MPICommunicator()
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch * steps, widths[0]), dtype=np.float32)
    y = np.eye(widths[-1], dtype=np.float32)[rng.integers(0, widths[-1], x.shape[0])]
    plan = TrainingPlan(
        optimizer=SGD(0.9), learning_rate=1e-3, batch_size=batch, n_epochs=2, evolution=SET(0.3)
    )
    forget_peak()
    before = resident_mb()
    started = time.process_time()
    network = SplitNetwork.start(widths, ranks.size, ranks, epsilon=10.0, seed=0)
    drawn = time.process_time() - started
    training = SplitTraining(network, x, y, plan)
    training.run()
    last = training.history.records[-1]
    return {
        "connections": last.n_connections,
        "draw s": drawn,
        "ms per step": 1e3 * last.train_seconds / steps,
        "rewire s": last.rewire_seconds,
        "peak MB": max(ranks.gather(peak_mb() - before)),
        "loss": last.loss,
        "rank": ranks.rank,
    }


def on_paper(ns_per_connection: float, batch: int) -> list[dict[str, Any]]:
    """Return what a step of 10^9 neurons on 16 machines would take."""
    cost = split_cost(PAPER_WIDTHS, PAPER_RANKS, epsilon=PAPER_EPSILON, batch_size=batch)
    computing = ns_per_connection * 1e-9 * cost.n_connections / PAPER_RANKS
    return [
        {
            "neurons": sum(PAPER_WIDTHS),
            "connections": cost.n_connections,
            "machines": PAPER_RANKS,
            "GB per machine": cost.rank_bytes / 1e9,
            "GB sent per step": cost.sent_bytes / 1e9,
            "computing s": computing,
            "network": f"{gigabits} Gbit/s",
            "sending s": cost.sent_bytes * 8 / (gigabits * 1e9),
        }
        for gigabits in GIGABITS
    ]


def main() -> None:
    """Run one number of ranks after the other, and print the tables."""
    options = parser(__doc__ or "", EXAMPLES)
    options.add_argument("--widths", default="10000,200000,200000,2")
    options.add_argument("--ranks", default="1,2,4")
    options.add_argument("--batch", type=int, default=8)
    options.add_argument("--steps", type=int, default=5)
    options.add_argument("--one", action="store_true", help="run as one of the ranks")
    given = options.parse_args()
    widths = tuple(int(width) for width in given.widths.split(","))
    if given.one:
        found = measure(widths, given.batch, given.steps)
        if found["rank"] == 0:
            print(json.dumps(found))
        return
    rows = []
    mpiexec = Path(sys.executable).with_name("mpiexec")
    with MachineState() as machine:
        for n_ranks in map(int, given.ranks.split(",")):
            command = [mpiexec, "-n", n_ranks, sys.executable, __file__, "--one"]
            command += ["--widths", given.widths, "--batch", given.batch, "--steps", given.steps]
            done = subprocess.run(
                list(map(str, command)), capture_output=True, text=True, check=True, timeout=3600
            )
            found = json.loads(done.stdout.splitlines()[-1])
            del found["rank"]
            rows.append({"ranks": n_ranks, **found})
    for row in rows:
        row["share MB"] = rows[0]["peak MB"] * rows[0]["ranks"] / row["ranks"]
        row["above share %"] = 100 * (row["peak MB"] / row["share MB"] - 1)
    print(markdown(rows))
    ns = 1e6 * rows[0]["ms per step"] / rows[0]["connections"]
    print(f"\n{ns:.1f} ns per connection and step on one rank\n")
    paper = on_paper(ns, given.batch)
    print(markdown(paper))
    if given.json:
        write_json(given.json, {"rows": rows, "paper": paper, "machine": machine.facts()})


if __name__ == "__main__":
    main()

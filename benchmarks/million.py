"""All stages of the paper's million-neuron network (model e), from building to loading.

54675-500000-500000-18, epsilon 10: 1,054,693 neurons counted as the paper does, inputs and outputs
included, and 20.5 million connections.  Seconds per minibatch are compared with SciPy's.
"""

from __future__ import annotations

from typing import Any

from common.isolate import run_fresh
from common.lifecycle import table_rows
from common.machine import MachineState, describe
from common.models import PAPER, Model
from common.tables import markdown, parser, write_json
from references.measure import measure_fresh

EXAMPLES = """\
  million.py --json million.json
  million.py --minibatches 280 --threads 2      a whole epoch of the paper's data
  million.py --scale 0.01 --no-scipy            a hundredth of the width: a look at how it goes
"""
SCIPY = ("SciPy + NumPy", "SciPy + NumPy by sample", "SciPy + numba")
MEMORY_LIMIT_MB = 1200.0
"""Memory limit of the whole process, without the data."""


def scaled(model: Model, scale: float) -> Model:
    """Return the model with hidden layers of this fraction of their width."""
    inner = tuple(max(16, round(width * scale)) for width in model.widths[1:-1])
    widths = (model.widths[0], *inner, model.widths[-1])
    return Model.from_dict({**model.to_dict(), "widths": widths})


def per_minibatch(found: dict[str, Any], threads: int) -> float:
    """Return seconds of one training step: CPU time on one thread, else wall time."""
    [row] = [row for row in found["phases"] if row["phase"].startswith("train")]
    return float(row["cpu_s" if threads == 1 else "wall_s"] / row["steps"])


def against_scipy(ours_s: float, model: Model, threads: int, budget_s: float) -> dict[str, Any]:
    """Time steps of SciPy implementations on the same network."""
    rows = {}
    for name in SCIPY:
        found = measure_fresh(name, model, n_threads=threads, budget_s=budget_s)
        if "skipped" in found:
            rows[name] = {"skipped": found["skipped"]}
            continue
        seconds = found["step_cpu_ms" if threads == 1 else "step_ms"] / 1e3
        rows[name] = {
            "s_per_minibatch": seconds,
            "over_ours": seconds / ours_s,
            "peak_rss_mb": found["step_rss_mb"],
        }
    return rows


def main() -> None:
    """Lead the network through its life, print tables, write JSON."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument("--minibatches", type=int, default=20, help="of 5 samples, to train on")
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--folder", default=".", help="where the file goes meanwhile (260 MB)")
    arguments.add_argument("--scale", type=float, default=1.0, help="of the hidden layers' width")
    arguments.add_argument("--no-scipy", action="store_true", help="leave SciPy out")
    arguments.add_argument("--budget", type=float, default=15.0, help="seconds per SciPy variant")
    given = arguments.parse_args()
    model = scaled(PAPER["e"], given.scale)
    with MachineState() as machine:
        found = run_fresh(
            "common.lifecycle:live",
            n_threads=given.threads,
            model=model.to_dict(),
            threads=given.threads,
            batches=[model.batch],
            minibatches=given.minibatches,
            folder=given.folder,
        )
        if "failed" in found:
            raise SystemExit(found["failed"])
        ours_s = per_minibatch(found, given.threads)
        scipy = {} if given.no_scipy else against_scipy(
            ours_s, model, given.threads, given.budget
        )  # fmt: skip
    found["s_per_minibatch"] = ours_s
    found["memory_limit_mb"] = MEMORY_LIMIT_MB
    print(f"{model.n_neurons:,} neurons, {found['connections']:,} connections\n")
    print(markdown(table_rows(found)))
    print(
        f"\nPeak {found['peak_rss_mb']:.0f} MB, of which data {found['data_mb']:.0f} MB: without it"
        f" {found['beside_data_mb']:.0f} MB (limit {MEMORY_LIMIT_MB:.0f}). The loaded network"
        f" predicts the same: {found['same_after_loading']}.\n"
    )
    rows = [{"by": "ratoon", "s_per_minibatch": ours_s, "over_ours": 1.0}]
    rows += [{"by": name, **row} for name, row in scipy.items()]
    print(markdown(rows))
    print("\n" + describe(machine.facts()))
    content = {"machine": machine.facts(), "model": model.to_dict(), **found}
    write_json(given.json, {**content, "scipy": scipy})


if __name__ == "__main__":
    main()

"""Every strategy on one very wide network: seconds and memory of a rewiring, under a limit.

54675-27500-27500-18 at epsilon 10, random samples, a few short epochs with a rewiring after each.
Every strategy runs in a process of its own whose address space is limited, so that one that makes
a dense array of any layer (6 GB for the first) fails.  ``over arrays`` is what a rewiring needs on
top of what is there already, as a multiple of the network's own arrays (indices, weights and
momentum, 12 bytes per connection); ``state`` is what the strategy remembers between rewirings.

How well they learn is the subject of `strategies_accuracy.py`.
"""

from __future__ import annotations

import argparse
import gc
import resource
from pathlib import Path
from typing import Any

import numpy as np
from common.isolate import run_fresh
from common.machine import MachineState, describe
from common.memory import forget_peak, peak_mb, resident_mb
from common.models import PAPER, Model, chosen
from common.tables import markdown, parser, write_json
from common.timing import Timing
from numpy.typing import NDArray
from references.start import samples_of

from ratoon.evolution import STRATEGIES, Clock, Static
from ratoon.network import SparseMLP
from ratoon.training import Training, TrainingData, TrainingPlan

EXAMPLES = """\
  strategies.py --json strategies.json --markdown strategies.md
  strategies.py --strategies rigl,snfs --model b          seconds
  strategies.py --limit-gb 2 --threads 2
"""
STEPS = 8
EPOCHS = 4
BUSY: dict[str, dict[str, Any]] = {
    "guided_set": {"every": 1000 // EPOCHS, "until": 1.0, "anneal": "constant"},
    "rigl": {"every": STEPS, "until": 1.0, "anneal": "constant"},
    "srigl": {"every": STEPS, "until": 1.0, "anneal": "constant"},
    "gse": {"every": STEPS, "until": 1.0, "anneal": "constant"},
    "mest": {"until": 1.0, "anneal": "constant"},
    "granet": {"every": 1000 // EPOCHS, "anneal": "constant"},
    "snfs": {"anneal": "constant"},
    "cht": {"overlap": 1.0},
    "dsr": {"every": STEPS, "threshold": 0.05},
    "deep_r": {"every": STEPS, "alpha": 0.1},
    "wast": {"every": STEPS},
    "neuron_pruning": {"warm_up": 0.0, "prune_every": 1},
}
"""Settings that make every strategy rewire after every epoch, as much as it would at first."""


class MeasuredTraining(Training):
    """Takes time and memory of every rewiring."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.timing, self.watching = Timing(), Timing()
        self.extra_mb: list[float] = []
        self.own_mb: list[float] = []

    def _rewire(self, clock: Clock, next_batch: NDArray[np.int64]) -> int:
        own = arrays_mb(self.network)
        gc.collect()
        forget_peak()
        before = resident_mb()
        n_grown: int = self.timing.add(
            lambda: super(MeasuredTraining, self)._rewire(clock, next_batch)
        )
        self.extra_mb.append(peak_mb() - before)
        self.own_mb.append(max(own, arrays_mb(self.network)))
        return n_grown

    def _watch(self, clock: Clock, batch: NDArray[np.int64]) -> None:
        self.watching.add(lambda: super(MeasuredTraining, self)._watch(clock, batch))


def arrays_mb(network: SparseMLP) -> float:
    """Return the size of all layers' arrays."""
    return sum(layer.nbytes() for layer in network.layers) / 1e6


def measure(name: str, model: dict[str, Any], threads: int, limit_gb: float) -> dict[str, Any]:
    """Measure one strategy here and now; the caller gives it a fresh process."""
    limit = int(limit_gb * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    shape = Model.from_dict(model)
    x, targets = samples_of(shape, STEPS * shape.batch)
    network = SparseMLP.start(shape.widths, epsilon=shape.epsilon, seed=0, n_threads=threads)
    n_before = network.n_connections
    strategy = STRATEGIES[name](**BUSY.get(name, {}))
    plan = TrainingPlan(
        learning_rate=shape.learning_rate,
        batch_size=shape.batch,
        n_epochs=EPOCHS,
        evolution=strategy,
        n_threads=threads,
    )
    training = MeasuredTraining(network, TrainingData.of(x, targets, np.float32), plan)
    # Once without rewiring, so that what training itself needs is there already.
    Training(network, training.data, TrainingPlan(n_epochs=1, evolution=Static())).run()
    training.run()
    state = sum(array.nbytes for array in (training.evolution_state or {}).values()) / 1e6
    found: dict[str, Any] = {
        "strategy": name,
        "settings": repr(strategy),
        "connections": n_before,
        "connections_after": network.n_connections,
        "rewirings": len(training.timing.walls),
        "arrays_mb": arrays_mb(network),
        "state_mb": state,
        "state_over_arrays": state / arrays_mb(network),
    }
    if training.timing.walls:
        ratios = np.array(training.extra_mb) / np.array(training.own_mb)
        found |= {
            "rewire_s": training.timing.wall_s,
            "rewire_cpu_s": training.timing.cpu_s,
            "rewire_s_each": training.timing.walls,
            "rewire_cpu_s_each": training.timing.cpus,
            "watch_s": training.watching.wall_s if training.watching.walls else 0.0,
            "grown": sum(training.history.column("rewired")) / len(training.timing.walls),
            "extra_mb": max(training.extra_mb),
            "extra_over_arrays": float(ratios.max()),
        }
    return found


def row_of(found: dict[str, Any]) -> dict[str, Any]:
    """Return a strategy's line of the table."""
    if "failed" in found:
        return {"strategy": found["strategy"], "rewiring, s": found["failed"]}
    return {
        "strategy": found["strategy"],
        "rewiring, s": found.get("rewire_s"),
        "CPU, s": found.get("rewire_cpu_s"),
        "slowest, CPU s": max(found.get("rewire_cpu_s_each", [0.0])) or None,
        "grown": found.get("grown"),
        "connections after": found["connections_after"],
        "over arrays": found.get("extra_over_arrays"),
        "state over arrays": found["state_over_arrays"],
        "watched step, s": found.get("watch_s") or None,
        "peak MB": found["peak_rss_mb"],
    }


def measure_all(given: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Measure time and memory of all strategies; return text and figures."""
    [model] = chosen(given.model, PAPER)
    results = []
    for name in given.strategies.split(","):
        found = run_fresh(
            "strategies:measure",
            n_threads=given.threads,
            name=name,
            model=model.to_dict(),
            threads=given.threads,
            limit_gb=given.limit_gb,
        )
        results.append({"strategy": name, **found})
        print(markdown([row_of(results[-1])]).splitlines()[-1], flush=True)
    words = "-".join(map(str, model.widths))
    title = f"{words}, batch {model.batch}, {given.threads} thread(s), {given.limit_gb:g} GB"
    table = markdown([row_of(found) for found in results])
    return f"{title}\n\n{table}", {"model": model.to_dict(), "strategies": results}


def main() -> None:
    """Measure, print a table, write JSON and Markdown."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument("--strategies", default=",".join(STRATEGIES))
    arguments.add_argument("--model", default="a", help="one of the paper's (default a)")
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--limit-gb", type=float, default=4.0, help="address space of each")
    arguments.add_argument("--markdown", metavar="OUT", help="write the table to this file as well")
    given = arguments.parse_args()
    with MachineState() as machine:
        text, figures = measure_all(given)
    text += f"\n\n{describe(machine.facts())}\n"
    print("\n" + text)
    if given.markdown:
        Path(given.markdown).write_text(text)
    write_json(given.json, {"machine": machine.facts(), **figures})


if __name__ == "__main__":
    main()

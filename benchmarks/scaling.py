"""Growth of cost: neurons doubled again and again at fixed epsilon; time and bytes per connection.

The network is 1000-n-n-10, so that nearly all of its neurons are hidden ones and it has about
2 epsilon connections per neuron.  If cost grows with connections alone, nanoseconds and bytes per
connection stay the same down the table; they do not where a cache ends, and the table says which.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from common.isolate import run_fresh
from common.lifecycle import rewire, start, training_of
from common.machine import MachineState, describe
from common.memory import peak_mb, resident_mb
from common.models import Model
from common.tables import markdown, parser, write_json
from common.timing import Timing, repeat

EXAMPLES = """\
  scaling.py --json scaling.json                  to 4e7 neurons: 15 GB of memory, many minutes
  scaling.py --max 1e6                            a minute or two
  scaling.py --min 1e5 --max 2e6 --threads 2
"""
ROW_BYTES = 32  # one neuron over a minibatch of up to 8 samples


def network_of(n_neurons: int, epsilon: float, batch: int) -> Model:
    """Return the model with about that many neurons, outputs included."""
    hidden = max(16, n_neurons // 2)
    return Model(f"n{n_neurons}", (1000, hidden, hidden, 10), batch, epsilon=epsilon)


def measure(model: dict[str, Any], threads: int, budget_s: float) -> dict[str, Any]:
    """Measure one size here and now; the caller gives it a fresh process."""
    shape = Model.from_dict(model)
    empty_mb = resident_mb()
    build = Timing()
    network = build.add(lambda: start(shape, threads))
    n_steps = max(1, min(200, 2_000_000 // shape.connections))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n_steps * shape.batch, shape.widths[0]), dtype=np.float32)
    targets = np.eye(10, dtype=np.float32)[rng.integers(10, size=x.shape[0])]
    training = training_of(network, shape, x, targets, shape.batch, threads)
    often = {"repeats": 2, "at_least_s": budget_s, "budget_s": 3 * budget_s}
    training.run_epoch()  # the system hands out pages when they are first touched
    step = repeat(training.run_epoch, **often)
    rewiring = repeat(lambda: rewire(network, threads), **{**often, "repeats": 1})
    connections = network.n_connections
    return {
        "neurons": shape.n_neurons,
        "connections": connections,
        "build_ns": 1e9 * build.best(threads) / connections,
        "step_ms": 1e3 * step.wall_s / n_steps,
        "step_cpu_ms": 1e3 * step.cpu_s / n_steps,
        "step_ns": 1e9 * step.best(threads) / n_steps / connections,
        "rewire_ns": 1e9 * rewiring.best(threads) / connections,
        "parameter_bytes": sum(layer.nbytes() for layer in network.layers) / connections,
        "peak_bytes": 1e6 * (peak_mb() - empty_mb) / connections,
        "peak_rss_mb": peak_mb(),
        "parameters": sum(layer.nbytes() for layer in network.layers),
        "layer_rows": shape.widths[1] * ROW_BYTES,
    }


def in_bytes(size: str) -> int:
    """Read a cache size as the system writes it.

    >>> in_bytes("512K"), in_bytes("32M")
    (524288, 33554432)
    """
    return int(size[:-1]) << {"K": 10, "M": 20, "G": 30}[size[-1]]


def home_of(n_bytes: float, caches: dict[str, str]) -> str:
    """Return the smallest cache that holds so many bytes, or memory."""
    for name, size in caches.items():
        if n_bytes <= in_bytes(size):
            return name
    return "memory"


def ends_of(sizes: list[dict[str, Any]]) -> list[str]:
    """Say at which doubling something left a cache, and what a connection cost before and after."""
    said = []
    for before, after in pairwise(sizes):
        for key, what in (("rows_in", "rows of a hidden layer"), ("parameters_in", "parameters")):
            if before[key] != after[key]:
                said.append(
                    f"{what} leave {before[key]} between {before['neurons']:,} and"
                    f" {after['neurons']:,} neurons: {before['step_ns']:.2f} ->"
                    f" {after['step_ns']:.2f} ns per connection and step"
                )
    return said


def main() -> None:
    """Measure size after size, print a table, write JSON."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument("--min", type=float, default=1e4, help="neurons to begin with")
    arguments.add_argument("--max", type=float, default=4.1e7, help="neurons to end with")
    arguments.add_argument("--epsilon", type=float, default=10.0)
    arguments.add_argument("--batch", type=int, default=5)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--budget", type=float, default=3.0, help="seconds per measurement")
    given = arguments.parse_args()
    sizes = []
    with MachineState() as machine:
        caches = machine.facts()["caches"]
        n_neurons = given.min
        while n_neurons <= given.max * 1.0001:
            model = network_of(int(n_neurons), given.epsilon, given.batch)
            found = run_fresh(
                "scaling:measure",
                n_threads=given.threads,
                model=model.to_dict(),
                threads=given.threads,
                budget_s=given.budget,
            )
            if "failed" in found:
                raise SystemExit(f"{n_neurons:.0f} neurons: {found['failed']}")
            found["rows_in"] = home_of(found["layer_rows"], caches)
            found["parameters_in"] = home_of(found["parameters"], caches)
            sizes.append(found)
            n_neurons *= 2
    print(markdown([row_of(found) for found in sizes]))
    for line in ends_of(sizes):
        print("* " + line)
    print("\n" + describe(machine.facts()))
    content = {"machine": machine.facts(), "threads": given.threads, "batch": given.batch}
    write_json(given.json, {**content, "sizes": sizes, "caches_end": ends_of(sizes)})


def row_of(found: dict[str, Any]) -> dict[str, Any]:
    """Return a size's line of the table; times are per connection."""
    return {
        "neurons": found["neurons"],
        "connections": found["connections"],
        "step ms": found["step_ms"],
        "step ns": found["step_ns"],
        "rewire ns": found["rewire_ns"],
        "build ns": found["build_ns"],
        "parameter bytes": found["parameter_bytes"],
        "peak bytes": found["peak_bytes"],
        "layer's rows in": found["rows_in"],
        "parameters in": found["parameters_in"],
    }


if __name__ == "__main__":
    main()

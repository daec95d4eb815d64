"""Time of computing and sending of a step with several MPI ranks, and the resulting choice.

Run under ``mpiexec``.  Every rank holds the network and takes its share of each minibatch;
``sending`` is an all-reduce of one array of the size of all weights, ``chosen`` what training does
by default (see `ratoon.distributed.DataParallel`).  Peak memory without the samples is
printed for the first line only: name one model to see its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common.machine import MachineState
from common.memory import forget_peak, peak_mb, resident_mb
from common.tables import markdown, parser, write_json

from ratoon.distributed import DataParallel, MPICommunicator
from ratoon.evolution import SET
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD
from ratoon.training import Training, TrainingData, TrainingPlan

EXAMPLES = """\
  mpiexec -n 2 python benchmarks/ranks.py --json ranks.json
  mpiexec -n 2 python benchmarks/ranks.py --models b --batches 8,512
"""
MODELS = {
    "b": (11_340, 9_000, 9_000, 5),
    "f": (54_675, 27_500, 27_500, 18),
    "million": (10_000, 500_000, 500_000, 2),
}
SAMPLES = 1024


def measure(communicator: Any, name: str, batch: int) -> dict[str, Any]:
    """Train a model for two steps with a rewiring between; return what they cost on rank 0."""
    widths = MODELS[name]
    forget_peak()
    before = resident_mb()
    network = SparseMLP.start(widths, epsilon=10.0, seed=0)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((min(SAMPLES, batch), widths[0]), dtype=np.float32)
    y = np.eye(widths[-1], dtype=np.float32)[rng.integers(0, widths[-1], x.shape[0])]
    plan = TrainingPlan(
        optimizer=SGD(0.9), learning_rate=1e-3, batch_size=batch, n_epochs=2, evolution=SET(0.3)
    )
    together = DataParallel(communicator)
    Training(network, TrainingData.of(x, y, np.float32), plan, callbacks=[together]).run()
    cost = together.cost
    assert cost is not None, "one rank sends nothing: run under mpiexec -n 2"
    n_values = network.n_connections + sum(widths[1:])
    every = cost.average_every
    return {
        "model": name,
        "connections": network.n_connections,
        "batch of all": x.shape[0],
        "megabytes": 4e-6 * n_values,
        "computing ms": 1e3 * cost.computing,
        "sending ms": 1e3 * cost.sending,
        "bytes per connection": 1e6 * (peak_mb() - before) / network.n_connections,
        "chosen": "gradients" if every is None else f"averages every {every}",
    }


def main() -> None:
    """Measure, and let rank 0 speak."""
    options = parser(__doc__ or "", EXAMPLES)
    options.add_argument("--models", default="b,f,million", help=f"of {','.join(MODELS)}")
    options.add_argument("--batches", default="2,32,256", help="samples of a minibatch, all ranks")
    given = options.parse_args()
    communicator = MPICommunicator()
    with MachineState() as machine:
        rows = [
            measure(communicator, name, int(batch))
            for name in given.models.split(",")
            for batch in given.batches.split(",")
        ]
    for row in rows[1:]:
        row["bytes per connection"] = None  # of a process that has freed memory before
    if communicator.rank == 0:
        print(f"{communicator.size} ranks\n\n{markdown(rows)}")
        write_json(
            given.json, {"ranks": communicator.size, "steps": rows, "machine": machine.facts()}
        )


if __name__ == "__main__":
    main()

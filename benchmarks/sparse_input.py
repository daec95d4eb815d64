"""Training on sparse samples against the same samples as a dense array, and a million features.

The texts are read from ``../shared/data`` when they are there.  Both forms train the same network;
``largest difference`` is that of the predictions afterwards.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from common.isolate import run_fresh
from common.machine import MachineState, describe
from common.tables import markdown, numbers, parser, write_json

from ratoon.datasets import read
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD
from ratoon.training import Training, TrainingData, TrainingPlan

EXAMPLES = """\
  sparse_input.py --json sparse_input.json
  sparse_input.py --features 100000
"""
TEXTS = Path(__file__).resolve().parents[2] / "shared" / "data"


def trained(
    x: Any, y: Any, hidden: tuple[int, ...], batch: int, n_epochs: int
) -> tuple[SparseMLP, float]:
    """Train a network; return it with the seconds of its quickest epoch."""
    n_classes = int(y.max()) + 1
    network = SparseMLP.start((x.shape[1], *hidden, n_classes), epsilon=10, seed=0)
    plan = TrainingPlan(
        optimizer=SGD(0.9, weight_decay=1e-4),
        learning_rate=0.001,
        batch_size=batch,
        n_epochs=n_epochs,
    )
    one_hot = np.eye(n_classes, dtype=np.float32)[y]
    training = Training(network, TrainingData.of(x, one_hot, np.float32), plan)
    training.run()
    return network, min(training.history.column("train_seconds"))


def compare(name: str, batch: int, n_epochs: int) -> dict[str, Any]:
    """Train on one of the texts twice: as CSR and as a dense array."""
    data = read(TEXTS / f"{name}.mat", sparse=True)
    x = scipy.sparse.csr_array(data.X)
    sparse, sparse_s = trained(x, data.y, (1000, 1000), batch, n_epochs)
    dense, dense_s = trained(x.toarray(), data.y, (1000, 1000), batch, n_epochs)
    difference = np.abs(sparse.outputs(x) - dense.outputs(x.toarray())).max()
    same = np.mean(sparse.outputs(x).argmax(1) == dense.outputs(x.toarray()).argmax(1))
    return {
        "samples": f"{name} {x.shape[0]} x {x.shape[1]}",
        "batch": batch,
        "non-zero": x.nnz / float(np.prod(x.shape)),
        "sparse_s": sparse_s,
        "dense_s": dense_s,
        "dense / sparse": dense_s / sparse_s,
        "largest difference": float(difference),
        "same class": float(same),
    }


def wide(n_features: int, batch: int, n_epochs: int) -> dict[str, Any]:
    """Train on generated samples with very many features, of which one in 10,000 is not zero."""
    rng = np.random.default_rng(0)
    x = scipy.sparse.random_array(
        (2000, n_features), density=1e-4, format="csr", rng=rng, dtype=np.float32
    )
    network, seconds = trained(x, rng.integers(0, 2, 2000), (1000, 1000), batch, n_epochs)
    return {
        "samples": f"generated 2000 x {n_features}",
        "batch": batch,
        "non-zero": x.nnz / float(np.prod(x.shape)),
        "sparse_s": seconds,
        "connections": network.n_connections,
        "dense_samples_mb": 4e-6 * float(np.prod(x.shape)),
    }


def main() -> None:
    """Run from the command line."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument("--features", type=int, default=1_000_000)
    arguments.add_argument("--epochs", type=int, default=5)
    arguments.add_argument("--batch", type=numbers, default=[1, 8, 32, 128], help="such as 8,32")
    options = arguments.parse_args()
    with MachineState() as machine:
        texts = [
            run_fresh("sparse_input:compare", name=name, batch=batch, n_epochs=options.epochs)
            for name in ("PCMAC", "BASEHOCK")
            for batch in options.batch
            if (TEXTS / f"{name}.mat").exists()
        ]
        rows = [
            run_fresh(
                "sparse_input:wide",
                n_features=options.features,
                batch=batch,
                n_epochs=options.epochs,
            )
            for batch in options.batch
        ]
    print(markdown(texts) if texts else f"texts skipped: {TEXTS.name} is not there")
    print(markdown(rows))
    print("\n" + describe(machine.facts()))
    write_json(options.json, {"machine": machine.facts(), "texts": texts, "wide": rows})


if __name__ == "__main__":
    main()

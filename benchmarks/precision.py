"""The accuracy lost by saving memory: weights in bfloat16, and training without momentum.

The same networks on the same splits, trained with SET and settled at the end (the last rewiring
after three quarters of training), in four ways.  Without momentum the learning rate is ten times
as high, which is what a momentum of 0.9 makes of it in the long run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from common.isolate import run_fresh
from common.machine import MachineState, describe
from common.tables import markdown, parser, write_json
from tox import accuracy, standardised_by

from ratoon.datasets import read
from ratoon.evolution import SET
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD
from ratoon.training import Training, TrainingData, TrainingPlan

EXAMPLES = """\
  precision.py --splits 10 --json precision.json    the table goes to the .md file next to it
  precision.py --sets digits --splits 3
"""
DATA = Path(__file__).parents[2] / "shared" / "data"
WAYS: dict[str, tuple[str, float]] = {
    "float32, momentum": ("float32", 0.9),
    "bfloat16, momentum": ("bfloat16", 0.9),
    "float32, no momentum": ("float32", 0.0),
    "bfloat16, no momentum": ("bfloat16", 0.0),
}
BYTES = {
    "float32, momentum": 12,
    "bfloat16, momentum": 10,
    "float32, no momentum": 8,
    "bfloat16, no momentum": 6,
}
"""Per connection: its index, its weight, its momentum."""


def samples_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's digits, or a set of the data folder."""
    if name == "digits":
        from sklearn.datasets import load_digits

        found = load_digits()
        return found.data.astype(np.float32), found.target
    found = read(str(DATA / f"{name}.mat"))
    return np.asarray(found.X, dtype=np.float32), np.asarray(found.y)


def measure(name: str, split: int, dtype: str, momentum: float, epochs: int) -> dict[str, Any]:
    """Train once here and now."""
    from sklearn.model_selection import train_test_split

    x, y = samples_of(name)
    targets = np.eye(int(y.max()) + 1, dtype=np.float32)[y]
    x_train, x_test, y_train, y_test = train_test_split(
        x, targets, test_size=1 / 3, stratify=y, random_state=split
    )
    hidden = 1000 if x.shape[1] > 1000 else 400
    network = SparseMLP.start(
        (x.shape[1], hidden, hidden, targets.shape[1]),
        epsilon=10,
        scaling=standardised_by(x_train),
        seed=split,
        dtype=dtype,
    )
    plan = TrainingPlan(
        optimizer=SGD(momentum=momentum, weight_decay=0.0002),
        learning_rate=0.002 if momentum > 0 else 0.02,
        batch_size=8,
        n_epochs=epochs,
        evolution=SET(zeta=0.3, until=0.75, anneal="cosine"),
        seed=split,
    )
    training = Training(
        network,
        TrainingData.of(x_train, y_train, np.float32),
        plan,
        validation=TrainingData.of(x_test, y_test, np.float32),
        scorer=accuracy,
    )
    training.run()
    return {
        "accuracy": float(training.history[-1].validation_score or 0.0),
        "bytes": sum(layer.nbytes() for layer in network.layers) / network.n_connections,
        "epoch_s": float(np.min(training.history.column("train_seconds"))),
    }


def main() -> None:
    """Train on every split in every way, print a table, write JSON."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument("--sets", default="TOX-171,digits")
    arguments.add_argument("--splits", type=int, default=10)
    arguments.add_argument("--epochs", type=int, default=60)
    given = arguments.parse_args()
    runs: list[dict[str, Any]] = []
    rows = []
    with MachineState() as machine:
        for name in given.sets.split(","):
            if name != "digits" and not (DATA / f"{name}.mat").exists():
                print(f"{name}.mat is not there; left out")
                continue
            first: np.ndarray | None = None
            for way, (dtype, momentum) in WAYS.items():
                found = [
                    run_fresh("precision:measure", name=name, split=split, dtype=dtype,
                              momentum=momentum, epochs=given.epochs)
                    for split in range(given.splits)
                ]  # fmt: skip
                reached = np.array([run["accuracy"] for run in found])
                first = reached if first is None else first
                difference = reached - first
                error = difference.std(ddof=1) / np.sqrt(reached.size) if reached.size > 1 else 0.0
                runs.append({"set": name, "way": way, "accuracy": reached.tolist()})
                rows.append(
                    {
                        "set": name,
                        "weights and optimizer": way,
                        "bytes per connection": BYTES[way],
                        "accuracy %": float(reached.mean()),
                        "difference": float(difference.mean()),
                        "+-": float(error),
                        "ms per epoch": 1e3 * min(run["epoch_s"] for run in found),
                    }
                )
    text = (
        f"Test accuracy at the last of {given.epochs} epochs, mean of {given.splits} splits; the"
        f" difference is paired, with its standard error.\n\n{markdown(rows)}\n\n"
        f"{describe(machine.facts())}"
    )
    print(text)
    write_json(given.json, {"machine": machine.facts(), "rows": rows, "runs": runs})
    if given.json:
        Path(given.json).with_suffix(".md").write_text(f"# Saving memory\n\n{text}\n")


if __name__ == "__main__":
    main()

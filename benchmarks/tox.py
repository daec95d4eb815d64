"""TOX-171 with the paper's hyperparameters: SET and FixProb, epoch by epoch.

Two hidden layers of 4,600, epsilon 10, zeta 0.3, learning rate 0.01, momentum 0.9, decay 0.0002,
batch 5, 100 epochs, stratified splits of 2/3 and 1/3, ReLU and softmax.  What other losses, starts
and activations do is in benchmarks/results/tox.md.

The test set is looked at after every epoch and nothing is chosen by it: the best epoch is what the
paper reports, and optimistic; the last one, and the mean of the last ten, are what a user would
get.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common.isolate import run_fresh
from common.machine import MachineState, describe
from common.tables import markdown, parser, write_json
from references.released import accuracies

from ratoon.datasets import read
from ratoon.evolution import SET, Static, Strategy
from ratoon.kernels import Scaling
from ratoon.losses import LOSSES
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD
from ratoon.training import Training, TrainingData, TrainingPlan

EXAMPLES = """\
  tox.py --seeds 4 --json tox.json            the table goes to tox.md next to it
  tox.py --loss sigmoid_cross_entropy         outputs judged one by one, as released
  tox.py --loss sigmoid_cross_entropy --activation leaky_relu
  tox.py --by released --splits 3 --seeds 8   what the released code does, run anew; slow
  tox.py --data TOX-171.mat --epochs 10 --splits 1
"""
DATA = Path(__file__).parents[2] / "shared" / "data" / "TOX-171.mat"
STRATEGIES: dict[str, Strategy] = {"SET": SET(zeta=0.3), "FixProb": Static()}
RELEASED = {
    "SET": {"best": 90.6, "last": 78.4, "last_ten": 81.5},
    "FixProb": {"best": 88.3, "last": 87.1, "last_ten": 87.1},
}
"""The authors' released code, measured in the same way over three splits."""
WHO = {"ratoon": "ratoon", "released": "the released code's arithmetic"}


def parts_of(data: str, split: int) -> tuple[np.ndarray, ...]:
    """Return training and test samples, then their classes as one-hot rows."""
    from sklearn.model_selection import train_test_split

    found = read(data)
    classes = np.eye(found.n_classes, dtype=np.float32)[np.asarray(found.y)]
    return tuple(
        train_test_split(
            np.asarray(found.X), classes, test_size=1 / 3, stratify=found.y, random_state=split
        )
    )


def measure_released(
    data: str, split: int, seed: int, strategy: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Train as the released code does; return the accuracy on the test set after every epoch."""
    x_train, x_test, y_train, y_test = parts_of(data, split)
    curve = accuracies(
        x_train,
        y_train,
        x_test,
        y_test,
        hidden=tuple(options["hidden"]),
        epsilon=options["epsilon"],
        zeta=0.3 if strategy == "SET" else 0.0,
        learning_rate=options["learning_rate"],
        n_epochs=options["epochs"],
        seed=seed,
    )
    return {"accuracy": [round(score, 2) for score in curve]}


def measure(
    data: str, split: int, seed: int, strategy: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Train once here and now; return the accuracy on the test set after every epoch."""
    x_train, x_test, y_train, y_test = parts_of(data, split)
    network = SparseMLP.start(
        (x_train.shape[1], *options["hidden"], y_train.shape[1]),
        epsilon=options["epsilon"],
        start="paper",
        init=options["init"],
        output_init=options["output_init"],
        activation=options["activation"],
        slope=0.0 if options["activation"] == "relu" else options["slope"],
        dropout=options["dropout"],
        scaling=standardised_by(x_train),
        seed=seed,
    )
    plan = TrainingPlan(
        optimizer=SGD(momentum=0.9, weight_decay=0.0002, decay="released"),
        learning_rate=options["learning_rate"],
        batch_size=5,
        n_epochs=options["epochs"],
        evolution=STRATEGIES[strategy],
        loss=options["loss"],
        seed=seed,
    )
    # A share of what is said of a class is taken back: evenly over the classes, or between yes and
    # no where every output is judged by itself.
    even = 1 / y_train.shape[1] if options["loss"] == "softmax_cross_entropy" else 0.5
    targets = y_train + np.float32(options["label_smoothing"]) * (np.float32(even) - y_train)
    training = Training(
        network,
        TrainingData.of(x_train, targets, np.float32),
        plan,
        validation=TrainingData.of(x_test, y_test, np.float32),
        scorer=accuracy,
    )
    training.run()
    history = training.history
    return {
        "accuracy": [round(float(score), 2) for score in history.column("validation_score")],
        "train_loss": float(history[-1].loss),
        "connections": network.n_connections,
        "epoch_s": float(np.median(history.column("train_seconds"))),
        "rewired": sum(history.column("rewired")),
    }


def standardised_by(x: np.ndarray) -> Scaling:
    """Return z-scores by these samples; features constant in them become 0."""
    spread = x.std(axis=0, dtype=np.float64)
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-12)
    return Scaling(x.mean(axis=0, dtype=np.float64), scale)


def accuracy(outputs: np.ndarray, data: TrainingData) -> float:
    """Return the percentage of samples whose largest output is their class."""
    return 100.0 * float(np.mean(outputs.argmax(axis=1) == data.targets.argmax(axis=1)))


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return means over runs of the three figures; the error is that of the last one's mean."""
    curves = np.array([run["accuracy"] for run in runs])
    last = curves[:, -1]
    return {
        "best": float(curves.max(axis=1).mean()),
        "last": float(last.mean()),
        "last_ten": float(curves[:, -10:].mean()),
        "last_by_run": [float(value) for value in last],
        "last_error": float(last.std(ddof=1) / np.sqrt(last.size)) if last.size > 1 else None,
    }


def main() -> None:
    """Train on every split with both strategies, print a table, write JSON."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument("--data", default=str(DATA), help="TOX-171.mat, or another data file")
    arguments.add_argument("--splits", type=int, default=20, help="random_state 0, 1, ...")
    arguments.add_argument(
        "--seeds", type=int, default=1, help="networks per split; the first is seeded by the split"
    )
    arguments.add_argument("--strategies", default=",".join(STRATEGIES))
    arguments.add_argument("--epochs", type=int, default=100)
    arguments.add_argument("--hidden", type=int, nargs="+", default=[4600, 4600])
    arguments.add_argument("--epsilon", type=float, default=10.0)
    arguments.add_argument("--learning-rate", type=float, default=0.01)
    arguments.add_argument(
        "--init",
        default="set",
        choices=("set", "he"),
        help="the weights' spread: 0.1, or by fan-in",
    )
    arguments.add_argument(
        "--output-init", choices=("set", "he", "zero"), help="that of the output layer, if another"
    )
    arguments.add_argument(
        "--activation", default="relu", choices=("relu", "leaky_relu", "all_relu")
    )
    arguments.add_argument("--slope", type=float, default=0.25, help="of the other two, below 0")
    arguments.add_argument("--dropout", type=float, default=0.0, help="of hidden neurons")
    arguments.add_argument("--label-smoothing", type=float, default=0.0, help="of targets")
    arguments.add_argument(
        "--by",
        default="ratoon",
        choices=("ratoon", "released"),
        help="the arithmetic: ours, or that of the released code, which has no other losses",
    )
    arguments.add_argument("--first-split", type=int, default=0)
    arguments.add_argument("--loss", default="softmax_cross_entropy", choices=tuple(LOSSES))
    given = arguments.parse_args()
    if not Path(given.data).exists():
        raise SystemExit(f"{given.data} is not there; name the file with --data")
    options = {
        name: getattr(given, name)
        for name in (
            "epochs",
            "hidden",
            "epsilon",
            "learning_rate",
            "loss",
            "init",
            "output_init",
            "activation",
            "slope",
            "dropout",
            "label_smoothing",
        )
    }
    results: dict[str, Any] = {}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in given.strategies.split(",")}
    splits = range(given.first_split, given.first_split + given.splits)
    with MachineState() as machine:
        for split, more, name in product(splits, range(given.seeds), runs):
            found = run_fresh(
                "tox:measure" if given.by == "ratoon" else "tox:measure_released",
                data=given.data,
                split=split,
                seed=split + 1000 * more,
                strategy=name,
                options=options,
            )
            if "failed" in found:
                raise SystemExit(found["failed"])
            runs[name].append(found)
    rows = []
    for name in runs:
        results[name] = summary(runs[name])
        rows.append({"by": f"{WHO[given.by]}, {name}", **_figures(results[name])})
        rows.append({"by": f"released code, {name}", **_figures(RELEASED[name])})
    title = (
        f"Test accuracy, %, mean of splits {splits[0]} to {splits[-1]} with {given.seeds} networks"
        f" each{f', {_said(given)}' if given.by == 'ratoon' else ''};"
        f" the released code on three splits"
    )
    text = f"{title}:\n\n{markdown(rows)}\n\n{describe(machine.facts())}"
    print(text)
    content = {"machine": machine.facts(), "options": options, "splits": list(splits),
               "seeds": given.seeds}  # fmt: skip
    curves = {name: [run["accuracy"] for run in runs[name]] for name in runs}
    write_json(given.json, {**content, "results": results, "released": RELEASED, "curves": curves})

    if given.json:
        Path(given.json).with_suffix(".md").write_text(f"# TOX-171\n\n{text}\n")


def _said(given: argparse.Namespace) -> str:
    activation = given.activation.replace("_", " ")
    if given.activation != "relu":
        activation += f" of slope {given.slope:g}"
    more = f", dropout {given.dropout:g}" if given.dropout else ""
    if given.label_smoothing:
        more += f", targets smoothed by {given.label_smoothing:g}"
    return (
        f"{given.loss.replace('_', ' ')}, {given.init} start,"
        f" output layer {given.output_init or given.init}, {activation}{more}"
    )


def _figures(result: dict[str, Any]) -> dict[str, Any]:
    return {
        "best test epoch": result["best"],
        "last epoch": result["last"],
        "+-": result.get("last_error"),
        "mean of last ten": result["last_ten"],
    }


if __name__ == "__main__":
    main()

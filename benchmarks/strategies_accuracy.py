"""Every strategy on real data: same start, same samples in the same order, same budget.

Stratified splits of two thirds to one third, features standardised on the training part, a network
with two hidden layers at epsilon 10, momentum SGD.  Accuracy is that of the last epoch on the test
part; nothing is chosen on it.  Strategies differ in nothing but the rewiring, so their differences
are taken split by split, against the static network (``- static``, with its standard error).
Trainings that diverged are counted, and left out of the means.

``strategies.py --accuracy`` runs this.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from common.tables import markdown
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from ratoon.datasets import read
from ratoon.errors import DivergenceError
from ratoon.evolution import STRATEGIES
from ratoon.evolution.analysis import exploration
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD
from ratoon.training import Training, TrainingData, TrainingPlan
from ratoon.training.recorder import TopologyRecorder

Array = NDArray[Any]
SETTINGS: dict[str, dict[str, Any]] = {
    # Within half and one and a half times the budget, and back at it for the second half.
    "nest": {"peak": 1.5, "final": 1.0, "grow_until": 0.3, "prune_until": 0.5},
    "deep_r": {"every": 5, "alpha": 1e-3},
    "neuron_pruning": {"prune_every": 10},
}
"""Where a paper's own settings do not suit trainings of some dozens of epochs."""


def load(name: str, folder: str) -> tuple[Array, NDArray[np.int64]]:
    """Return samples and classes of ``digits`` or of a file in the folder."""
    if name == "digits":
        x, y = load_digits(return_X_y=True)
        return x.astype(np.float32), y.astype(np.int64)
    [path] = [path for path in Path(folder).iterdir() if path.stem == name]
    dataset = read(path)
    x = dataset.X.toarray() if hasattr(dataset.X, "toarray") else np.asarray(dataset.X)
    return x.astype(np.float32), np.unique(dataset.y, return_inverse=True)[1]


def standardised(train: Array, test: Array) -> tuple[Array, Array]:
    """Return both with the training part's mean and deviation; constant features become 0."""
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 1e-6)
    return (train - mean) * scale, np.clip((test - mean) * scale, -10, 10)


def run_one(
    name: str, split: tuple[Array, ...], seed: int, given: dict[str, Any]
) -> dict[str, float]:
    """Train one network and test it."""
    x, x_test, y, y_test = split
    n_classes = int(max(y.max(), y_test.max())) + 1
    widths = (x.shape[1], *given["hidden"], n_classes)
    network = SparseMLP.start(widths, epsilon=given["epsilon"], seed=seed)
    batch = 5 if len(y) < 300 else 32
    plan = TrainingPlan(
        optimizer=SGD(momentum=0.9, weight_decay=0.0002),
        learning_rate=given["learning_rate"],
        batch_size=batch,
        n_epochs=given["epochs"],
        evolution=STRATEGIES[name](**SETTINGS.get(name, {})),
        seed=seed,
    )
    recorder = TopologyRecorder()
    targets = np.eye(n_classes, dtype=np.float32)[y]
    training = Training(network, TrainingData.of(x, targets, np.float32), plan)
    if seed == 0:
        training.callbacks.append(recorder)
    started = time.perf_counter()
    try:
        training.run()
    except DivergenceError:
        return {"accuracy": float("nan"), "seconds": time.perf_counter() - started}
    seconds = time.perf_counter() - started
    predicted = network.outputs(x_test).argmax(axis=1)
    found = {
        "accuracy": 100.0 * float((predicted == y_test).mean()),
        "seconds": seconds,
        "connections": float(network.n_connections),
    }
    if seed == 0:
        layers = [[layers[i] for _, layers in recorder.replay()] for i in range(len(widths) - 1)]
        ever = [
            exploration(history, n_in * n_out)[-1] * n_in * n_out
            for history, (n_in, n_out) in zip(layers, recorder.shapes, strict=True)
        ]
        found["explored"] = sum(ever) / network.n_positions
    return found


def compare(names: list[str], data: str, folder: str, given: dict[str, Any]) -> dict[str, Any]:
    """Train every strategy on every split of one data set."""
    x, y = load(data, folder)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for seed in range(given["splits"]):
        parts = train_test_split(x, y, test_size=1 / 3, stratify=y, random_state=seed)
        split = (*standardised(parts[0], parts[1]), parts[2], parts[3])
        for name in names:
            runs[name].append(run_one(name, split, seed, given))
    return {"data": data, "samples": len(y), "features": x.shape[1], "runs": runs}


def table(found: dict[str, Any]) -> str:
    """Return the lines of one data set."""
    base = found["runs"].get("static")
    rows = []
    for name, runs in found["runs"].items():
        accuracy = np.array([run["accuracy"] for run in runs])
        gain = accuracy - np.array([run["accuracy"] for run in base or runs])
        ended = np.isfinite(gain)
        error = gain[ended].std(ddof=1) / np.sqrt(ended.sum()) if ended.sum() > 1 else np.nan
        last = [run["connections"] for run in runs if "connections" in run]
        rows.append(
            {
                "strategy": name,
                "accuracy": f"{accuracy[ended].mean():.1f} ± {accuracy[ended].std():.1f}",
                "- static": f"{gain[ended].mean():+.1f} ± {error:.1f}" if base else None,
                "diverged": int(np.count_nonzero(~ended)),
                "explored": runs[0].get("explored"),
                "connections": int(last[-1]) if last else None,
                "seconds": float(np.mean([run["seconds"] for run in runs])),
            }
        )
    title = f"{found['data']} ({found['samples']} x {found['features']})"
    return f"**{title}**\n\n{markdown(rows)}"

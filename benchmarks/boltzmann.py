"""SET-RBM compared with scikit-learn's BernoulliRBM of the same width, on digits.

Pixels are black or white (at half their range); all figures are of the third of the samples that is
held out.  ``pseudo-likelihood`` is the exact one for both, higher is better;
``reconstruction`` the mean squared error of going up and down once; ``accuracy`` that of a logistic
regression on the hidden neurons.  scikit-learn trains by persistent contrastive divergence and
ratoon by CD-1, so ratoon also trains a machine with every connection: it differs from the sparse
ones in the connections only.

``--wide`` trains one machine far too wide for a matrix instead.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from common.machine import MachineState, describe
from common.memory import peak_mb, resident_mb
from common.tables import markdown, parser, write_json
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM

from ratoon import SparseBernoulliRBM
from ratoon.boltzmann import BoltzmannMachine
from ratoon.layers import SparseLayer
from ratoon.topology import Topology

EXAMPLES = """\
  boltzmann.py --json boltzmann.json --markdown boltzmann.md
  boltzmann.py --splits 2 --epochs 5                                    seconds
  boltzmann.py --wide 100000                                            a minute
"""
Array = NDArray[Any]


def makers(hidden: int, epochs: int) -> dict[str, Any]:
    """Return makers of unfitted machines; each takes a seed."""

    def ours(**options: Any) -> Any:
        return lambda seed: SparseBernoulliRBM(hidden, n_iter=epochs, random_state=seed, **options)

    def theirs(rate: float) -> Any:
        return lambda seed: BernoulliRBM(
            hidden, learning_rate=rate, n_iter=epochs, random_state=seed
        )

    return {
        "SET, epsilon 11": ours(),
        "static, epsilon 11": ours(evolution="static"),
        "SET, epsilon 4": ours(epsilon=4.0),
        "static, epsilon 4": ours(epsilon=4.0, evolution="static"),
        "every connection, CD-1": ours(density=1.0),
        "scikit-learn, rate 0.1": theirs(0.1),
        "scikit-learn, rate 0.01": theirs(0.01),
    }


def as_machine(model: Any) -> BoltzmannMachine:
    """Return a fitted estimator of either kind as a machine, so that both are judged alike."""
    matrix = scipy.sparse.coo_array(model.components_.T.astype(np.float32))
    topology, weights = Topology.from_scipy(matrix)
    bias = np.array(model.intercept_hidden_, dtype=np.float32)
    layer = SparseLayer(topology, weights, bias, "logistic")
    return BoltzmannMachine(layer, np.array(model.intercept_visible_, dtype=np.float32))


def scores(make: Any, split: int) -> dict[str, float]:
    """Train on one split, and look at what was held out."""
    x, y = load_digits(return_X_y=True)
    parts = train_test_split(
        (x >= 8).astype(np.float32), y, test_size=1 / 3, stratify=y, random_state=split
    )
    train, test, y_train, y_test = parts
    started = time.process_time()
    model = make(split).fit(train)
    seconds = time.process_time() - started
    machine = as_machine(model)
    rows = np.ascontiguousarray(test.T)
    restored = machine.visible(machine.hidden(rows))
    classifier = LogisticRegression(max_iter=2000).fit(model.transform(train), y_train)
    return {
        "pseudo": float(machine.pseudo_likelihood(rows).mean()),
        "error": float(np.square(restored - rows).mean()),
        "accuracy": 100.0 * float(classifier.score(model.transform(test), y_test)),
        "seconds": seconds,
        "connections": float(machine.layer.n_connections),
    }


def row_of(name: str, runs: list[dict[str, float]]) -> dict[str, Any]:
    """Return a machine's line of the table."""

    def over(key: str, digits: int) -> str:
        values = np.array([run[key] for run in runs])
        return f"{values.mean():.{digits}f} ± {values.std():.{digits}f}"

    return {
        "machine": name,
        "connections": int(runs[0]["connections"]),
        "pseudo-likelihood": over("pseudo", 2),
        "reconstruction": over("error", 4),
        "accuracy": over("accuracy", 1),
        "CPU, s": min(run["seconds"] for run in runs),
    }


def compare(given: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Train all machines on all splits."""
    found: dict[str, list[dict[str, float]]] = {}
    for name, make in makers(given.hidden, given.epochs).items():
        found[name] = [scores(make, split) for split in range(given.splits)]
        print(markdown([row_of(name, found[name])]).splitlines()[-1], flush=True)
    title = f"64 pixels, {given.hidden} hidden, {given.epochs} epochs, {given.splits} splits"
    return f"{title}\n\n{markdown([row_of(*item) for item in found.items()])}", {"runs": found}


def widen(n: int) -> tuple[str, dict[str, Any]]:
    """Train one machine with as many neurons on both sides, on random sparse samples."""
    rng = np.random.default_rng(0)
    x = scipy.sparse.random_array((200, n), density=0.01, random_state=rng, dtype=np.float32)
    before = resident_mb()
    started = time.process_time()
    model = SparseBernoulliRBM(n, n_iter=2, n_jobs=1, random_state=0).fit(x.tocsr())
    seconds = time.process_time() - started
    row = {
        "neurons": f"{n:,} x {n:,}",
        "connections": model.components_.nnz,
        "CPU, s per epoch of 200 samples": seconds / 2,
        "memory without the samples, MB": peak_mb() - before,
        "a dense matrix would take, MB": n * n * 4 / 1e6,
    }
    return markdown([row]), {"wide": row}


def main() -> None:
    """Compare or widen, print a table, write JSON and Markdown."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument("--hidden", type=int, default=256)
    arguments.add_argument("--epochs", type=int, default=20)
    arguments.add_argument("--splits", type=int, default=5)
    arguments.add_argument("--wide", type=int, metavar="N", help="neurons on either side")
    arguments.add_argument("--markdown", metavar="OUT", help="write the table to this file as well")
    given = arguments.parse_args()
    with MachineState() as machine:
        text, figures = widen(given.wide) if given.wide else compare(given)
    text += f"\n\n{describe(machine.facts())}\n"
    print("\n" + text)
    if given.markdown:
        Path(given.markdown).write_text(text)
    write_json(given.json, {"machine": machine.facts(), **figures})


if __name__ == "__main__":
    main()

"""Where rewiring helps: the same network left static, rewired at random, and by gradient.

Everything but the strategy is the same: a start drawn uniformly, one hidden layer of 300 neurons
(1,000 above 1,000 features) with five inputs each on average, all of them connected to the output,
Adam, 5,000 steps but at most 500 epochs; seed by seed the same data and the same start.  The two
strategies that settle rewire at the same moments, up to 70 % of training and less and less; SET as
published rewires after every epoch, a constant share, and draws weights for what it grows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from quality.sets import MANY, load
from ratoon import SparseMLPClassifier
from ratoon.evolution import SET, RigL, Static, Strategy
from ratoon.topology import Topology

Array = NDArray[Any]

SAMPLES = (50, 150, 500, 1500, 5000)
SIGNALS = ("linear", "1/4 pairs", "1/2 pairs", "3/4 pairs", "pairs", "threes")
SHARE_OF_PAIRS = {"linear": 0.0, "1/4 pairs": 0.25, "1/2 pairs": 0.5, "3/4 pairs": 0.75}
N_FEATURES, N_TEST, N_STEPS, BATCH, INPUTS = 100, 2000, 5000, 32, 5
N_REWIRINGS, MOST_EPOCHS = 30, 500
STRATEGIES = ("static", "set", "rigl", "published")


class Task(NamedTuple):
    """What to learn from how many samples; ``kind`` is generated, digits, or the name of a set."""

    kind: str
    n_samples: int


class Parts(NamedTuple):
    """Training and test samples with their classes."""

    x: Array
    y: Array
    x_test: Array
    y_test: Array


def tasks(folder: Path | None) -> Iterator[Task]:
    """All tasks of the map; sets of the folder are cut to several sizes where they are large."""
    for n_samples in SAMPLES:
        yield from (Task(kind, n_samples) for kind in SIGNALS)
    for n_samples in (50, 150, 500, 1200):
        yield Task("digits", n_samples)
    if folder is not None and folder.is_dir():
        found = {path.stem for path in folder.iterdir()}
        for name in (name for name in MANY if name in found):
            for n_samples in (150, 500, 1200):
                yield Task(name, n_samples)


def generate(kind: str, n_samples: int, seed: int) -> Parts:
    """Two classes told by ten features out of 100: by their sum, by products, or by both.

    >>> generate("pairs", 50, 0).x.shape
    (50, 100)
    """
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_samples + N_TEST, N_FEATURES)).astype(np.float32)
    linear = x[:, :4].sum(axis=1) / 2
    pairs = (x[:, 4] * x[:, 5] + x[:, 6] * x[:, 7]) / math.sqrt(2)
    if kind == "threes":
        signal = np.sign(x[:, 4]) * np.sign(x[:, 5]) * np.sign(x[:, 6])
    else:
        share = SHARE_OF_PAIRS.get(kind, 1.0)
        signal = math.sqrt(1 - share) * linear + math.sqrt(share) * pairs
    y = (signal + 0.2 * rng.standard_normal(len(x)) > 0).astype(np.int64)
    return Parts(x[:n_samples], y[:n_samples], x[n_samples:], y[n_samples:])


def prepare(task: Task, seed: int, folder: Path | None) -> Parts:
    """Return the samples of a task; seeds differ in draws or splits."""
    if task.kind in SIGNALS:
        return generate(task.kind, task.n_samples, seed)
    if task.kind == "digits":
        x, y = load_digits(return_X_y=True)
        noise = np.random.default_rng(seed).permuted(np.hstack([x] * 6), axis=0)
        x = np.hstack((x, noise))
    else:
        assert folder is not None
        x, y = load(task.kind, folder)
    parts = train_test_split(
        x.astype(np.float32), y, train_size=task.n_samples, stratify=y, random_state=seed
    )
    return Parts(parts[0], parts[2], parts[1], parts[3])


def strategy(name: str, steps_per_epoch: int, n_epochs: int) -> Strategy:
    """Return a strategy; those that settle have the same moments."""
    every = max(1, round(0.7 * n_epochs / N_REWIRINGS))
    if name == "set":
        return SET(0.3, grown="zero", every=every, until=0.7, anneal="cosine")
    if name == "rigl":
        return RigL(0.3, every=every * steps_per_epoch, until=0.7)
    return SET(0.3) if name == "published" else Static()


def run_one(task: Task, name: str, seed: int, folder: Path | None) -> float:
    """Return the test accuracy in percent at the last epoch."""
    parts = prepare(task, seed, folder)
    steps_per_epoch = math.ceil(len(parts.y) / BATCH)
    n_epochs = min(max(10, round(N_STEPS / steps_per_epoch)), MOST_EPOCHS)
    shape = (parts.x.shape[1], 300 if parts.x.shape[1] <= 1000 else 1000)
    n_outputs = int(parts.y.max()) + 1
    model = SparseMLPClassifier(
        (shape[1],),
        topology=[
            Topology.random(shape, INPUTS * shape[1], seed=seed),
            Topology.full((shape[1], n_outputs)),
        ],
        evolution=strategy(name, steps_per_epoch, n_epochs),
        solver="adam",
        learning_rate_init=3e-3,
        learning_rate="cosine",
        batch_size=BATCH,
        max_iter=n_epochs,
        random_state=seed,
        n_jobs=1,
    )
    model.fit(parts.x, parts.y)
    return 100.0 * float(np.mean(model.predict(parts.x_test) == parts.y_test))

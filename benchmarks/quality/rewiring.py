"""Where rewiring helps: the same network left static, and rewired by one strategy or another.

Everything but the strategy is the same: a start drawn uniformly, one hidden layer of 300 neurons
(1,000 above 1,000 features) with five inputs each on average, all of them connected to the output,
Adam, 5,000 steps but at most 500 epochs (100 on the wide sets, whose rows are known by heart long
before); seed by seed the same data and the same start.

SET, RigL, GSE, SNFS and DSR rewire at the same 30 moments, up to 70 % of training.  All but DSR
replace three tenths at first and less and less; DSR's own constant share of 14 % is part of it.
Others keep the schedule that makes them what they are: GuidedSET ten times within the first 5 %,
DEEP R to the end, after every tenth step, for after each it would take ten times as long; SET as
published after every epoch to the end, a constant share, and weights drawn for what it grows.
"set_drawn" is SET that settles but for such weights, and "set_early" is GuidedSET without knowing
anything: early growth from any input.

Not all strategies are tried on all tasks, see `is_tried`: a run on text takes 4 s, and SNFS watches
gradients between rewirings, which makes a run six times as long.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from quality.sets import MANY, WIDE, load, split
from ratoon import SparseMLPClassifier
from ratoon.evolution import DSR, GSE, SET, SNFS, DeepR, GuidedSET, RigL, Static, Strategy
from ratoon.topology import Topology

Array = NDArray[Any]

SAMPLES = (50, 150, 500, 1500, 5000)
SIGNALS = ("linear", "1/4 pairs", "1/2 pairs", "3/4 pairs", "pairs", "threes")
SHARE_OF_PAIRS = {"linear": 0.0, "1/4 pairs": 0.25, "1/2 pairs": 0.5, "3/4 pairs": 0.75}
N_FEATURES, N_TEST, N_STEPS, BATCH, INPUTS = 100, 2000, 5000, 32, 5
N_REWIRINGS, MOST_EPOCHS, MOST_ON_WIDE = 30, 500, 100
STRATEGIES = (
    "static",
    "set",
    "rigl",
    "published",
    "guided",
    "gse",
    "dsr",
    "deep_r",
    "snfs",
    "set_drawn",
    "set_early",
)
ON_ALL, ON_FEW = STRATEGIES[:4], ("snfs",)
ROWS_OF_WIDE = dict(zip(WIDE, (114, 52, 133, 64, 41, 48, 33), strict=True))
"""Training rows of the wide sets, two thirds of what they have."""

load_once = lru_cache(maxsize=10)(load)


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
        yield from (Task(name, ROWS_OF_WIDE[name]) for name in WIDE if name in found)


def is_tried(name: str, task: Task) -> bool:
    """Whether a strategy is tried on a task.

    >>> is_tried("snfs", Task("1/2 pairs", 50)), is_tried("gse", Task("1/2 pairs", 50))
    (False, True)
    """
    if name in ON_ALL:
        return True
    if task.kind in WIDE:
        return True
    if name in ON_FEW:
        tried = {"linear": (50, 500), "pairs": (500, 5000), "digits": (50,)}
    else:
        whole = dict.fromkeys(("linear", "1/2 pairs", "pairs"), SAMPLES)
        tried = {**whole, "digits": (50, 500), "madelon": (1200,), "PCMAC": (150,)}
    return task.n_samples in tried.get(task.kind, ())


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
        x, y = load_once(task.kind, folder)
        if task.kind in WIDE:
            of_study = split(x, y, seed)
            return Parts(of_study.x, of_study.y, of_study.x_test, of_study.y_test)
    parts = train_test_split(
        x.astype(np.float32), y, train_size=task.n_samples, stratify=y, random_state=seed
    )
    return Parts(parts[0], parts[2], parts[1], parts[3])


def strategy(name: str, steps_per_epoch: int, n_epochs: int) -> Strategy:
    """Return a strategy; see above for whose moments are the same."""
    every = max(1, round(0.7 * n_epochs / N_REWIRINGS))
    steps = every * steps_per_epoch
    made: dict[str, Strategy] = {
        "static": Static(),
        "set": SET(0.3, grown="zero", every=every, until=0.7, anneal="cosine"),
        "set_drawn": SET(0.3, grown="init", every=every, until=0.7, anneal="cosine"),
        "rigl": RigL(0.3, every=steps, until=0.7),
        "gse": GSE(0.3, every=steps, until=0.7),
        "snfs": SNFS(0.3, every=every, until=0.7),
        "dsr": DSR(every=steps, until=0.7),
        "deep_r": DeepR(every=10),
        "guided": GuidedSET(),
        "set_early": GuidedSET(power=0.0),
        "published": SET(0.3),
    }
    return made[name]


def fitted(
    task: Task, name: str, seed: int, folder: Path | None
) -> tuple[SparseMLPClassifier, Parts]:
    """Return a network trained on a task, and the task's samples."""
    parts = prepare(task, seed, folder)
    steps_per_epoch = math.ceil(len(parts.y) / BATCH)
    most = MOST_ON_WIDE if task.kind in WIDE else MOST_EPOCHS
    n_epochs = min(max(10, round(N_STEPS / steps_per_epoch)), most)
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
    return model.fit(parts.x, parts.y), parts


def run_one(task: Task, name: str, seed: int, folder: Path | None) -> float:
    """Return the test accuracy in percent at the last epoch."""
    model, parts = fitted(task, name, seed, folder)
    return 100.0 * float(np.mean(model.predict(parts.x_test) == parts.y_test))


def signal_found(task: Task, name: str, seed: int) -> float:
    """Return how much of what tells the classes the first layer of a trained network sees.

    For a sum the percentage of its connections that end on the four features of 100 that tell; by
    chance 4.  For products the number of its 300 neurons that see both factors of one, without
    which none can be learnt; by chance one or two.
    """
    layer = fitted(task, name, seed, None)[0].network_.layers[0]
    inputs, neurons = layer.topology.pairs()
    if task.kind == "linear":
        return 100.0 * float(np.mean(inputs < 4))
    sees = [set(neurons[inputs == feature].tolist()) for feature in range(4, 8)]
    return float(len((sees[0] & sees[1]) | (sees[2] & sees[3])))

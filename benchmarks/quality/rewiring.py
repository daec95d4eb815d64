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
"set_drawn" is annealed SET with such weights, and "set_early" is GuidedSET without strengths: early
growth from any input.

NeST and neuron pruning change the size of a network.  "nest" has the start and the 30 moments of
the others, grows to three times the connections at 35 % of training and is back at their number at
70 %.  "nest_seed" begins with the first half of the neurons and the connections they have in that
start, so that there is a reserve to grow neurons from, has one and a half times the number of
connections at 35 % and ends with about as many as the others.  Neuron pruning removes a fifth of
the neurons at 40 % of training and again after every further 8 %, the paper's 40 of 500 epochs:
what is left is about a sixth of the neurons and a quarter of the connections.  "neurons" does
nothing else, "neurons_set" also rewires by annealed SET at all other epochs, "neurons_published"
SET as published.  In addition, "half" is what NeST's seed would be if it were left static, and
"small" a static network that has a sixth of the neurons, eight inputs each, from the start.

SNFS comes last: it watches gradients between rewirings, which takes six times as long.
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
from ratoon.evolution import (
    DSR,
    GSE,
    SET,
    SNFS,
    DeepR,
    GuidedSET,
    NeST,
    NeuronPruning,
    RigL,
    Static,
    Strategy,
)
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
    "set_drawn",
    "set_early",
    "nest",
    "nest_seed",
    "neurons",
    "neurons_set",
    "neurons_published",
    "half",
    "small",
    "snfs",
)
SMALL_SHARE, SMALL_INPUTS = 6, 8
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


def generate(kind: str, n_samples: int, seed: int) -> Parts:
    """Two classes determined by ten features out of 100: by their sum, by products, or by both.

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
    nest = {"grow_until": 0.35, "prune_until": 0.7, "every": every}
    pace = max(1, round(0.08 * n_epochs))
    settles = SET(0.3, grown="zero", until=0.7, anneal="cosine")
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
        "nest": NeST(peak=3.0, final=1.0, **nest),
        "nest_seed": NeST(peak=3.0, final=2.0, **nest),
        "neurons": NeuronPruning(prune_every=pace, base=Static()),
        "neurons_set": NeuronPruning(prune_every=pace, base=settles),
        "neurons_published": NeuronPruning(prune_every=pace),
        "half": Static(),
        "small": Static(),
    }
    return made[name]


def start(name: str, n_features: int, n_outputs: int, seed: int) -> list[Topology]:
    """Return the connections to begin with, the same for all but three that begin with fewer.

    >>> start("set", 100, 2, 0)[0].n_connections, start("nest_seed", 100, 2, 0)[1].n_connections
    (1500, 300)
    """
    width, inputs = 300 if n_features <= 1000 else 1000, INPUTS
    if name == "small":
        width, inputs = width // SMALL_SHARE, SMALL_INPUTS
    first = Topology.random((n_features, width), inputs * width, seed=seed)
    last = Topology.full((width, n_outputs))
    if name not in ("nest_seed", "half"):
        return [first, last]
    features, neurons = first.pairs()
    in_use = neurons < width // 2
    return [
        Topology.from_pairs(first.shape, features[in_use], neurons[in_use]),
        Topology.from_positions(last.shape, np.arange(width // 2 * n_outputs)),
    ]


def trained(
    parts: Parts, topology: list[Topology], name: str, seed: int, most: int = MOST_EPOCHS
) -> SparseMLPClassifier:
    """Return a network trained from given connections, for ``most`` epochs at the most."""
    steps_per_epoch = math.ceil(len(parts.y) / BATCH)
    n_epochs = min(max(10, round(N_STEPS / steps_per_epoch)), most)
    model = SparseMLPClassifier(
        (topology[0].shape[1],),
        topology=topology,
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
    return model


def fitted(
    task: Task, name: str, seed: int, folder: Path | None
) -> tuple[SparseMLPClassifier, Parts]:
    """Return a network trained on a task, and the task's samples."""
    parts = prepare(task, seed, folder)
    most = MOST_ON_WIDE if task.kind in WIDE else MOST_EPOCHS
    topology = start(name, parts.x.shape[1], int(parts.y.max()) + 1, seed)
    return trained(parts, topology, name, seed, most), parts


def run_one(task: Task, name: str, seed: int, folder: Path | None) -> float:
    """Return the test accuracy in percent at the last epoch."""
    model, parts = fitted(task, name, seed, folder)
    return 100.0 * float(np.mean(model.predict(parts.x_test) == parts.y_test))


def signal_found(task: Task, name: str, seed: int) -> float:
    """Return how much of the informative features the first layer of a trained network sees.

    For a sum the percentage of its connections that end on the four informative features of 100; by
    chance 4.  For products the number of its 300 neurons that see both factors of one, without
    which none can be learnt; at random one or two.
    """
    layer = fitted(task, name, seed, None)[0].network_.layers[0]
    inputs, neurons = layer.topology.pairs()
    if task.kind == "linear":
        return 100.0 * float(np.mean(inputs < 4))
    sees = [set(neurons[inputs == feature].tolist()) for feature in range(4, 8)]
    return float(len((sees[0] & sees[1]) | (sees[2] & sees[3])))


def size_left(task: Task, name: str, seed: int) -> float:
    """Return how many connections a trained network has, in percent of those others start with."""
    layers = fitted(task, name, seed, None)[0].network_.layers
    usual = start("static", layers[0].topology.shape[0], layers[-1].topology.shape[1], seed)
    counts = [
        sum(topology.n_connections for topology in topologies)
        for topologies in ([layer.topology for layer in layers], usual)
    ]
    return 100.0 * counts[0] / counts[1]

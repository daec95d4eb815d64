"""Every strategy on the same data: same start, same samples in the same order, same budget.

Stratified splits, features standardised on the training rows, momentum SGD.  In one split all
networks begin with the same connections and weights and see the same minibatches; they differ in
nothing but the rewiring, so differences are taken split by split.  Accuracy is that of the last
epoch on the test rows; nothing is chosen on it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from ratoon.arrays import Array
from ratoon.errors import DivergenceError, InvalidParameterError
from ratoon.evolution import STRATEGIES, DeepR, NeST, NeuronPruning, Strategy
from ratoon.evolution.analysis import exploration
from ratoon.experiments.strategy_lines import TEST_SHARE, StrategyComparison, StrategyRun
from ratoon.experiments.trial import split_rows
from ratoon.history import EpochRecord
from ratoon.kernels import Scaling
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD
from ratoon.samples.statistics import feature_statistics
from ratoon.training import Callback, Training, TrainingData, TrainingPlan
from ratoon.training.recorder import TopologyRecorder

SETTINGS: dict[str, Callable[[], Strategy]] = {
    # Within half and one and a half times the budget, and back at it for the second half.
    "nest": lambda: NeST(peak=1.5, final=1.0, grow_until=0.3, prune_until=0.5),
    "deep_r": lambda: DeepR(every=5, alpha=1e-3),
    "neuron_pruning": lambda: NeuronPruning(prune_every=10),
}
"""Settings for methods whose own do not suit some dozens of epochs."""

RENAMED = {"set_settling": "annealed_set"}
"""Old names of strategies, accepted for one more version."""

LEFT_OUT = ("guided_set",)
"""What is nothing without strengths of features, which estimators measure."""

_CLIP = 10.0


@dataclass(frozen=True)
class StrategySettings:
    """What all strategies have in common.

    A minibatch has 5 samples, as in the paper, where there are fewer than 300 to learn from, and
    32 otherwise, unless ``batch_size`` says it.
    """

    hidden: tuple[int, ...] = (500, 500)
    epsilon: float = 10.0
    learning_rate: float = 0.005
    n_epochs: int = 50
    batch_size: int | None = None

    def plan(self, strategy: Strategy, n_samples: int, seed: int, n_threads: int) -> TrainingPlan:
        """Return the plan of a training with these settings."""
        return TrainingPlan(
            optimizer=SGD(momentum=0.9, weight_decay=0.0002),
            learning_rate=self.learning_rate,
            batch_size=self.batch_size or (5 if n_samples < 300 else 32),
            n_epochs=self.n_epochs,
            evolution=strategy,
            seed=seed,
            n_threads=n_threads,
        )


def digits() -> tuple[Array, NDArray[np.int64]]:
    """Return scikit-learn's 8 x 8 images of digits, and which digit each shows.

    Examples
    --------
    >>> digits()[0].shape
    (1797, 64)
    """
    x, y = load_digits(return_X_y=True)
    return x.astype(np.float32), y.astype(np.int64)


def known_strategies(names: Sequence[str] | None = None) -> dict[str, Strategy]:
    """Return strategies by name, or all, set for short trainings; never one `LEFT_OUT`.

    Examples
    --------
    >>> known_strategies(["set", "static"])["set"].zeta
    0.3
    """
    makers = {**STRATEGIES, **SETTINGS}
    for name in LEFT_OUT:
        del makers[name]
    wanted = list(makers) if names is None else [_renamed(name.strip()) for name in names]
    if unknown := [name for name in wanted if name not in makers]:
        raise InvalidParameterError(f"no strategy {unknown[0]!r}; there are {', '.join(makers)}.")
    return {name: makers[name]() for name in wanted}


def _renamed(name: str) -> str:
    if name not in RENAMED:
        return name
    warnings.warn(
        f"the strategy {name!r} is now called {RENAMED[name]!r}.", DeprecationWarning, stacklevel=3
    )
    return RENAMED[name]


def run_strategy(
    name: str,
    strategy: Strategy,
    x: Array,
    y: Array,
    *,
    split: int,
    settings: StrategySettings,
    record: bool = False,
    n_threads: int = 1,
) -> StrategyRun:
    """Train by one strategy on the training rows of a split, and test it on the others.

    Parameters
    ----------
    name, strategy : str, Strategy
        What it is called, and what it is.
    x, y : ndarray
        All samples, and their classes as numbers from 0.
    split : int
        Number of the split; also the seed of the start and of the order of samples.
    settings : StrategySettings
        Network and budget.
    record : bool
        Whether to find out what share of positions was explored.  A recorder has every change
        told to it, which makes rewirings slower.
    n_threads : int
        Does not change results.
    """
    train, test = split_rows(y, TEST_SHARE, split)
    found = feature_statistics(x[train])
    n_classes = int(y.max()) + 1
    network = SparseMLP.start(
        (x.shape[1], *settings.hidden, n_classes),
        epsilon=settings.epsilon,
        scaling=Scaling(found.mean, found.factors(), _CLIP),
        seed=split,
        n_threads=n_threads,
    )
    targets = np.eye(n_classes, dtype=np.float32)[y]
    data = TrainingData.of(x, targets, network.dtype, rows=train)
    plan = settings.plan(strategy, train.size, split, n_threads)
    recorder, sizes = TopologyRecorder(), _Sizes()
    training = Training(network, data, plan, callbacks=[sizes, *([recorder] if record else [])])
    clock = plan.clock(0, train.size)
    n_rewirings = len(strategy.schedule.due_steps(clock, clock.total_steps))
    accuracy = float("nan")
    started = time.perf_counter()
    try:
        training.run()
    except DivergenceError:
        pass
    else:
        predicted = network.outputs(x[test], n_threads=n_threads).argmax(axis=1)
        accuracy = float(np.mean(predicted == y[test]))
    return StrategyRun(
        strategy=name,
        split=split,
        accuracy=accuracy,
        seconds=time.perf_counter() - started,
        n_rewirings=n_rewirings,
        seconds_per_rewiring=sum(training.history.column("rewire_seconds")) / max(n_rewirings, 1),
        n_connections=network.n_connections,
        array_bytes=sizes.largest,
        state_bytes=sum(a.nbytes for a in (training.evolution_state or {}).values()),
        explored=explored_share(recorder) if record else None,
    )


class _Sizes(Callback):
    """Notes how large the network's arrays become."""

    def __init__(self) -> None:
        self.largest = 0

    def on_fit_begin(self, training: Training) -> None:
        """Look at what training starts with."""
        self.largest = sum(layer.nbytes() for layer in training.network.layers)

    def on_epoch_end(self, training: Training, record: EpochRecord) -> None:
        """Look again."""
        del record
        now = sum(layer.nbytes() for layer in training.network.layers)
        self.largest = max(self.largest, now)


def explored_share(recorder: TopologyRecorder) -> float:
    """Return the share of all positions of a network that were ever connected."""
    sizes = [n_in * n_out for n_in, n_out in recorder.shapes]
    ever = sum(
        size * exploration((layers[index] for _, layers in recorder.replay()), size)[-1]
        for index, size in enumerate(sizes)
    )
    return ever / sum(sizes)


def compare_strategies(
    x: Array,
    y: Array,
    strategies: Mapping[str, Strategy],
    *,
    n_splits: int = 20,
    settings: StrategySettings | None = None,
    n_threads: int = 1,
    tell: Callable[[StrategyRun], None] = lambda run: None,
) -> StrategyComparison:
    """Train every strategy on every split; exploration is recorded on the first.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    >>> some = known_strategies(["static", "set"])
    >>> settings = StrategySettings(hidden=(20,), n_epochs=3)
    >>> found = compare_strategies(x, np.arange(30) % 2, some, n_splits=2, settings=settings)
    >>> [line.strategy for line in found.lines()]
    ['static', 'set']
    """
    runs = []
    for split in range(n_splits):
        for name, strategy in strategies.items():
            runs.append(
                run_strategy(
                    name,
                    strategy,
                    x,
                    y,
                    split=split,
                    settings=settings or StrategySettings(),
                    record=split == 0,
                    n_threads=n_threads,
                )
            )
            tell(runs[-1])
    return StrategyComparison(runs)

"""Compare strategies on the same data, with the same start, minibatches and budget.

Splits are stratified, features are standardised on the training rows, and training uses momentum
SGD.  In each split all networks start with the same connections and weights and get the same
minibatches; only the rewiring differs, so differences are computed per split.  The accuracy is that
of the last epoch on the test rows, which are not used for any choice.
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
from ratoon.errors import DivergenceError, InvalidParameterError, near
from ratoon.evolution import (
    STRATEGIES,
    DeepR,
    NeST,
    NeuronPruning,
    Strategy,
    is_known,
    strategy_from_text,
    strategy_names,
)
from ratoon.evolution.analysis import exploration
from ratoon.evolution.plugins import is_path, parse_strategy
from ratoon.experiments.split import split_rows
from ratoon.experiments.strategy_lines import TEST_SHARE, StrategyComparison, StrategyRun
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
"""Settings for methods whose defaults need longer trainings."""

RENAMED = {"set_settling": "annealed_set"}
"""Old names of strategies, accepted for one more version."""

LEFT_OUT = ("guided_set",)
"""Strategies that need feature strengths, which only estimators compute."""

SELECTING = ("wast", "neurofs")
"""Strategies that select features: compared only if they are named."""

_CLIP = 10.0


@dataclass(frozen=True)
class StrategySettings:
    """Settings that all strategies share.

    By default a minibatch has 5 samples, as in the paper, with fewer than 300 training samples, and
    32 otherwise.
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
    """Return scikit-learn's 8 x 8 images of digits, and the digit of each.

    Examples
    --------
    >>> digits()[0].shape
    (1797, 64)
    """
    x, y = load_digits(return_X_y=True)
    return x.astype(np.float32), y.astype(np.int64)


def known_strategies(names: Sequence[str] | None = None) -> dict[str, Strategy]:
    """Return strategies by name, or all in question, with settings for short trainings.

    Without names these are all but `LEFT_OUT` and `SELECTING`.

    Parameters
    ----------
    names : sequence of str, optional
        Names, also of strategies of other packages, or import paths such as
        ``package.module:Class``, both with parameters in parentheses or without.  Import paths run
        the code of their module.

    Examples
    --------
    >>> known_strategies(["set", "rigl(zeta=0.1)"])["rigl(zeta=0.1)"].zeta
    0.1
    """
    makers = {**STRATEGIES, **SETTINGS}
    for name in LEFT_OUT:
        del makers[name]
    if names is None:
        return {name: make() for name, make in makers.items() if name not in SELECTING}
    return {
        text: makers[text]() if text in makers else _other(text, tuple(makers))
        for text in (_renamed(name.strip()) for name in names)
    }


def _other(text: str, here: tuple[str, ...]) -> Strategy:
    name = parse_strategy(text)[0]
    if name in LEFT_OUT or not (is_path(name) or is_known(name)):
        known = [*here, *(other for other in strategy_names() if other not in (*here, *LEFT_OUT))]
        raise InvalidParameterError(
            f"there is no strategy {name!r}; there are {', '.join(known)}.{near(name, known)}\n"
            f"  For a class of your own write package.module:Class."
        )
    return strategy_from_text(text)


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
    """Train with one strategy on the training rows of a split and test on the others.

    Parameters
    ----------
    name, strategy : str, Strategy
        Its name, and the strategy.
    x, y : ndarray
        All samples, and their class numbers from 0.
    split : int
        Number of the split; also the seed of the start and of the order of the samples.
    settings : StrategySettings
        Network and budget.
    record : bool
        Whether to record the fraction of positions that were explored, which slows rewiring.
    n_threads : int
        Number of threads; results do not depend on it.
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
        explored=explored_fraction(recorder) if record else None,
    )


class _Sizes(Callback):
    """Records the largest size of the network's arrays."""

    def __init__(self) -> None:
        self.largest = 0

    def on_fit_begin(self, training: Training) -> None:
        """Record the size at the start."""
        self.largest = sum(layer.nbytes() for layer in training.network.layers)

    def on_epoch_end(self, training: Training, record: EpochRecord) -> None:
        """Update the largest size."""
        del record
        now = sum(layer.nbytes() for layer in training.network.layers)
        self.largest = max(self.largest, now)


def explored_fraction(recorder: TopologyRecorder) -> float:
    """Return the fraction of all positions of a network that were ever connected."""
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

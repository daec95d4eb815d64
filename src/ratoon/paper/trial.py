"""One trial as in the paper, and a store of its results.

A trial trains a network and reports three test accuracies:

* that of the *last* epoch, which is what a user gets;
* that of the epoch *chosen* on validation rows, which are taken from the training rows;
* that of the *best* epoch on the test rows, which the paper reports and which is optimistic.

Several tables of the paper need the same trials.  `TrialStore` identifies a trial by its data,
settings, method and seed, and returns its result if it is known, so that a long experiment can be
resumed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import DivergenceError
from ratoon.evolution import SET, Strategy
from ratoon.experiments.split import split_rows
from ratoon.history import EpochRecord, History
from ratoon.kernels import Scaling
from ratoon.nesting import parse_json
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD
from ratoon.samples.statistics import feature_statistics
from ratoon.training import Callback, Training, TrainingData, TrainingPlan, TrainingState


@dataclass(frozen=True)
class PaperSettings:
    """Hyperparameters of an experiment in the paper; the defaults are those of GLI-85."""

    hidden: tuple[int, ...] = (20_000,)
    epsilon: float = 10.0
    zeta: float = 0.3
    batch_size: int = 1
    learning_rate: float = 0.005
    momentum: float = 0.9
    weight_decay: float = 0.0002
    dropout: float = 0.0
    n_epochs: int = 500
    start: str = "exact"
    init: str = "set"

    def plan(self, strategy: Strategy, seed: int, n_threads: int) -> TrainingPlan:
        """Return the plan of a training with these settings."""
        return TrainingPlan(
            optimizer=SGD(self.momentum, weight_decay=self.weight_decay, decay="released"),
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            n_epochs=self.n_epochs,
            evolution=strategy,
            seed=seed,
            n_threads=n_threads,
        )

    def strategy(self) -> SET:
        """Return SET with these settings."""
        return SET(self.zeta)


@dataclass
class Trial:
    """The result of a trial, with its network and history."""

    name: str
    network: SparseMLP
    history: History
    test_accuracy: list[float] = field(default_factory=list)
    test_predictions: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    test_labels: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    diverged: int | None = None

    @property
    def last(self) -> float:
        """Test accuracy after the last epoch."""
        return self.test_accuracy[-1]

    @property
    def chosen_epoch(self) -> int | None:
        """The first epoch with the best validation score, counted from 0."""
        scores = self.history.column("validation_score")
        return None if scores[0] is None else int(np.argmax(scores))

    @property
    def chosen(self) -> float | None:
        """Test accuracy at the epoch with the best validation score."""
        return None if self.chosen_epoch is None else self.test_accuracy[self.chosen_epoch]

    @property
    def best(self) -> float:
        """Best test accuracy of all epochs, which the paper reports; it is optimistic."""
        return max(self.test_accuracy)

    def seconds_per_epoch(self) -> float:
        """Return the median time of an epoch, including rewiring."""
        times = np.add(self.history.column("train_seconds"), self.history.column("rewire_seconds"))
        return float(np.median(times))


class _TestAccuracy(Callback):
    """Record the accuracy on the test rows after every epoch; training does not use it."""

    def __init__(self, trial: Trial, x: Array, n_threads: int) -> None:
        self.trial = trial
        self.x = x
        self.n_threads = n_threads

    def on_epoch_end(self, training: Training, record: EpochRecord) -> None:
        """Predict the test rows."""
        del record
        outputs = training.network.outputs(self.x, n_threads=self.n_threads)
        self.trial.test_predictions = outputs.argmax(axis=1)
        correct = self.trial.test_predictions == self.trial.test_labels
        self.trial.test_accuracy.append(float(np.mean(correct)))


def run_trial(
    name: str,
    x: Array,
    y: Array,
    train_rows: Array,
    test_rows: Array,
    *,
    settings: PaperSettings,
    strategy: Strategy,
    seed: int,
    validation_fraction: float = 0.0,
    n_threads: int = 1,
    callbacks: Sequence[Callback] = (),
    allow_divergence: bool = False,
) -> Trial:
    """Train on the training rows and record the test accuracy after every epoch.

    ``y`` has class numbers from 0.  Features are standardised with the mean and standard deviation
    of the rows used for training.  With ``allow_divergence``, training that diverges after at least
    one complete epoch stops; the remaining epochs get the last test accuracy, and ``diverged`` is
    the epoch, counted from 1, that was not completed.
    """
    n_classes = int(y.max()) + 1
    validation_rows: Array = np.empty(0, dtype=np.int64)
    if validation_fraction > 0.0:
        kept, held = split_rows(y[train_rows], validation_fraction, seed)
        train_rows, validation_rows = train_rows[kept], train_rows[held]
    found = feature_statistics(x[train_rows])
    network = SparseMLP.start(
        (x.shape[1], *settings.hidden, n_classes),
        epsilon=settings.epsilon,
        start=settings.start,
        init=settings.init,
        dropout=settings.dropout,
        scaling=Scaling(found.mean, found.factors()),
        seed=seed,
        n_threads=n_threads,
    )
    trial = Trial(name, network, History(), test_labels=y[test_rows])
    one_hot = np.eye(n_classes, dtype=np.float32)[y]

    def data_of(rows: Array) -> TrainingData:
        return TrainingData.of(x[rows], one_hot[rows], network.dtype)

    training = Training(
        TrainingState(network, seed, history=trial.history),
        data_of(train_rows),
        settings.plan(strategy, seed, n_threads),
        validation=data_of(validation_rows) if validation_rows.size else None,
        scorer=_accuracy,
        callbacks=[_TestAccuracy(trial, x[test_rows], n_threads), *callbacks],
    )
    try:
        training.run()
    except DivergenceError:
        done = len(trial.test_accuracy)
        if not allow_divergence or done == 0:
            raise
        trial.diverged = done + 1
        trial.test_accuracy += trial.test_accuracy[-1:] * (settings.n_epochs - done)
    return trial


def _accuracy(outputs: Array, data: TrainingData) -> float:
    return float(np.mean(outputs.argmax(axis=1) == data.targets.argmax(axis=1)))


@dataclass(frozen=True)
class TrialResult:
    """The result of a trial without its network, as a `TrialStore` keeps it.

    Examples
    --------
    >>> result = TrialResult("SET", (4, 2), 6, 8, [0.5, 0.9, 0.7], [1], [1], [0.6, 0.5, 0.8])
    >>> result.best, result.last, result.chosen, result.density
    (0.9, 0.7, 0.7, 0.75)
    """

    method: str
    widths: tuple[int, ...]
    n_connections: int
    n_positions: int
    test_accuracy: list[float]
    test_predictions: list[int]
    test_labels: list[int]
    validation_scores: list[float] | None = None
    seconds: float = 0.0
    diverged: int | None = None
    cpu_seconds: float | None = None

    @property
    def best(self) -> float:
        """Best test accuracy of all epochs, which the paper reports; it is optimistic."""
        return max(self.test_accuracy)

    @property
    def last(self) -> float:
        """Test accuracy after the last epoch."""
        return self.test_accuracy[-1]

    @property
    def chosen(self) -> float | None:
        """Test accuracy at the epoch with the best validation score."""
        if self.validation_scores is None:
            return None
        return self.test_accuracy[int(np.argmax(self.validation_scores))]

    @property
    def density(self) -> float:
        """Connections divided by positions."""
        return self.n_connections / self.n_positions


def result_of(trial: Trial, seconds: float, cpu_seconds: float | None = None) -> TrialResult:
    """Return the `TrialResult` of a trial, its duration and its processor time."""
    scores = trial.history.column("validation_score")
    return TrialResult(
        trial.name,
        trial.network.widths,
        trial.network.n_connections,
        trial.network.n_positions,
        trial.test_accuracy,
        np.asarray(trial.test_predictions).tolist(),
        np.asarray(trial.test_labels).tolist(),
        None if None in scores else scores,
        seconds,
        trial.diverged,
        cpu_seconds,
    )


@dataclass
class TrialStore:
    """Results of trials by their description, in memory and optionally in a folder.

    Examples
    --------
    >>> store = TrialStore()
    >>> store.put({"seed": 0}, TrialResult("SET", (4, 2), 6, 8, [0.5], [1], [1]))
    >>> store.get({"seed": 0}).last, store.get({"seed": 1})
    (0.5, None)
    """

    folder: Path | None = None
    _known: dict[str, TrialResult] = field(default_factory=dict, repr=False)

    def get(self, what: dict[str, Any]) -> TrialResult | None:
        """Return the result of a trial, if it is known."""
        key = _key(what)
        if key not in self._known and self.folder is not None:
            found = _read(self.folder / f"{key}.json", what)
            if found is not None:
                self._known[key] = found
        return self._known.get(key)

    def put(self, what: dict[str, Any], result: TrialResult) -> None:
        """Keep the result of a trial."""
        key = _key(what)
        self._known[key] = result
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        # Written to a temporary file and renamed, so that a result file is always complete.
        unfinished = self.folder / f"{key}.{os.getpid()}.tmp"
        text = json.dumps({"what": what, "result": asdict(result)})
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(self.folder / f"{key}.json")


def _key(what: dict[str, Any]) -> str:
    text = json.dumps(what, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _read(path: Path, what: dict[str, Any]) -> TrialResult | None:
    try:
        found = parse_json(path.read_text(encoding="utf-8"))
        if found["what"] != json.loads(json.dumps(what)):
            return None
        fields = {**found["result"], "widths": tuple(found["result"]["widths"])}
        return TrialResult(**fields)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # damaged or from another version: the trial is run again

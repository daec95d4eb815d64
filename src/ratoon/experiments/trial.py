"""One trial as in the paper: train, look at the test rows, choose nothing on them.

Three figures come out of it, and the difference between them is the point:

* the *last* epoch, which is what a user gets;
* the epoch *chosen* on validation rows taken from the training rows;
* the *best* epoch on the test rows, which the paper reports and which is optimistic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from sklearn.model_selection import train_test_split

from ratoon.arrays import Array
from ratoon.errors import DivergenceError, InvalidInputError, InvalidParameterError
from ratoon.evolution import SET, Strategy
from ratoon.history import EpochRecord, History
from ratoon.kernels import Scaling
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD
from ratoon.samples.statistics import feature_statistics
from ratoon.training import Callback, Training, TrainingData, TrainingPlan, TrainingState


@dataclass(frozen=True)
class PaperSettings:
    """Hyperparameters of an experiment of the paper; the defaults are those of GLI-85."""

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
    """What a trial came to."""

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
        """Test accuracy at the epoch that the validation rows chose."""
        return None if self.chosen_epoch is None else self.test_accuracy[self.chosen_epoch]

    @property
    def best(self) -> float:
        """Best test accuracy of all epochs: the paper's figure, optimistic."""
        return max(self.test_accuracy)

    def seconds_per_epoch(self) -> float:
        """Median time of an epoch, training and rewiring."""
        times = np.add(self.history.column("train_seconds"), self.history.column("rewire_seconds"))
        return float(np.median(times))


class _WatchTest(Callback):
    """Note the accuracy on the test rows after every epoch; nothing else looks at it."""

    def __init__(self, trial: Trial, x: Array, n_threads: int) -> None:
        self.trial = trial
        self.x = x
        self.n_threads = n_threads

    def on_epoch_end(self, training: Training, record: EpochRecord) -> None:
        """Predict the test rows."""
        del record
        outputs = training.network.outputs(self.x, n_threads=self.n_threads)
        self.trial.test_predictions = outputs.argmax(axis=1)
        right = self.trial.test_predictions == self.trial.test_labels
        self.trial.test_accuracy.append(float(np.mean(right)))


def split_rows(
    y: Array, fraction: float, seed: int, *, stratify: bool = True
) -> tuple[Array, Array]:
    """Split rows into two parts, ``fraction`` of them, rounded up, in the second.

    Both parts get equal shares of the classes, unless ``stratify`` is false or there are too few
    samples for that.

    Examples
    --------
    >>> first, second = split_rows(np.array([0, 0, 0, 1, 1, 1]), 1 / 3, seed=0)
    >>> first.size, second.size
    (4, 2)
    """
    if not 0.0 < fraction < 1.0:
        raise InvalidParameterError(f"the fraction must be in (0, 1), got {fraction!r}.")
    rows = np.arange(len(y))
    if rows.size < 2:
        raise InvalidInputError(f"{rows.size} sample(s) cannot be split in two.")
    # Rounded up, as in the paper: a third of 85 is 29.  Less a little, for 0.3 * 10 is not 3.
    n_second = min(max(math.ceil(fraction * rows.size - 1e-9), 1), rows.size - 1)
    counts = np.unique(y, return_counts=True)[1] if stratify else np.empty(0, dtype=np.int64)
    # Each part needs room for every class, and every class a sample for each part.
    fits = counts.size <= min(n_second, rows.size - n_second) and counts.min(initial=2) >= 2
    first, second = train_test_split(
        rows, test_size=n_second, stratify=y if stratify and fits else None, random_state=seed
    )
    return np.sort(first), np.sort(second)


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
    bears_divergence: bool = False,
) -> Trial:
    """Train on the training rows and note test accuracy per epoch.

    ``y`` holds class numbers from 0.  Features are z-scored with the mean and deviation of the
    rows that are trained on.  With ``bears_divergence`` a training that diverges after some whole
    epochs stands still there, and ``diverged`` is the epoch, counted from 1, that it did not end.
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
        callbacks=[_WatchTest(trial, x[test_rows], n_threads), *callbacks],
    )
    try:
        training.run()
    except DivergenceError:
        done = len(trial.test_accuracy)
        if not bears_divergence or done == 0:
            raise
        trial.diverged = done + 1
        trial.test_accuracy += trial.test_accuracy[-1:] * (settings.n_epochs - done)
    return trial


def _accuracy(outputs: Array, data: TrainingData) -> float:
    return float(np.mean(outputs.argmax(axis=1) == data.targets.argmax(axis=1)))

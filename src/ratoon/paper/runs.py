"""Run the trials of the paper's tables: SET and FixProb, with and without validation rows."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ratoon.datasets import Dataset
from ratoon.errors import DivergenceError
from ratoon.evolution import Static
from ratoon.experiments.compare import TWO_PHASE
from ratoon.experiments.fan_out import fan_out
from ratoon.experiments.split import split_rows
from ratoon.paper.sets import PAPER_SETS, PaperSet, paper_data
from ratoon.paper.trial import PaperSettings, Trial, TrialResult, TrialStore, result_of, run_trial

VALIDATION = 0.2


@dataclass(frozen=True)
class Effort:
    """How much to compute, on which data.

    Parameters
    ----------
    trials, epochs : int
        Number of trials, and of epochs; None for the epochs of the paper.
    seed : int
        Seed of the first trial; later trials use the following seeds.
    n_threads, n_jobs : int
        Threads of each training, and trials at the same time.  Results do not depend on them.
    scale : float
        Factor on the widths of networks and of generated data.
    sets : tuple of str
        Data sets to use.
    paths : mapping of str to Path
        Files of the real data sets.
    tell : callable
        Called with a line of text after each trial.
    store : TrialStore
        Known results; trials in it are not run again.
    remarks : list of str
        Remarks on trials, added to the notes of the next table.
    """

    trials: int = 5
    epochs: int | None = None
    seed: int = 0
    n_threads: int = 1
    n_jobs: int | None = None
    scale: float = 1.0
    sets: tuple[str, ...] = tuple(PAPER_SETS)
    paths: Mapping[str, Path] = field(default_factory=dict)
    tell: Callable[[str], None] = lambda text: None
    store: TrialStore = field(default_factory=TrialStore)
    remarks: list[str] = field(default_factory=list)

    def settings(self, known: PaperSet) -> PaperSettings:
        """Return the paper's settings with the given epochs and scale."""
        hidden = tuple(max(10, round(self.scale * width)) for width in known.settings.hidden)
        n_epochs = known.settings.n_epochs if self.epochs is None else self.epochs
        return replace(known.settings, hidden=hidden, n_epochs=n_epochs)

    def data(self, known: PaperSet) -> tuple[Dataset, str]:
        """Return the data of a set, and their kind."""
        return paper_data(known, path=self.paths.get(known.name), scale=self.scale, seed=self.seed)


def run_trials(
    data: Dataset,
    settings: PaperSettings,
    effort: Effort,
    *,
    method: str = "SET",
    validation: float = 0.0,
) -> list[TrialResult]:
    """Run `effort.trials` trials, each on another split into two thirds and one third.

    Trials whose results are in the store are not run again.  A trial that diverges in its first
    epoch has no result: it is kept without any, and raises `DivergenceError`.
    """
    x = dense(data)
    assert data.y is not None
    of_data = _description(x, data.y)
    seeds = range(effort.seed, effort.seed + effort.trials)
    kinds = [
        {
            "data": of_data,
            "settings": asdict(settings),
            "method": method,
            "validation": validation,
            "seed": seed,
        }
        for seed in seeds
    ]
    known = [effort.store.get(what) for what in kinds]
    missing = [seed for seed, result in zip(seeds, known, strict=True) if result is None]
    tasks = ((data.y, settings, method, validation, effort.n_threads, seed) for seed in missing)
    fresh = fan_out(_result, x, tasks, n_jobs=effort.n_jobs)
    hidden = "-".join(map(str, settings.hidden)) or "no"
    name = f"{method}, {hidden} hidden{', with validation' if validation else ''}"
    name += f", dropout {settings.dropout:g}" if settings.dropout else ""
    results = []
    for number, (what, kept) in enumerate(zip(kinds, known, strict=True), start=1):
        result = next(fresh) if kept is None else kept
        if kept is None:
            effort.store.put(what, result)
        if not result.test_accuracy:
            raise DivergenceError(
                f"{name}: trial {number} diverged in its first epoch, at learning rate"
                f" {settings.learning_rate:g}."
            )
        how = f"{result.seconds:.0f} s" if kept is None else "from the store"
        if result.diverged is not None:
            effort.remarks.append(
                f"{name}: trial {number} diverged in epoch {result.diverged}; from there on it has"
                " the accuracy of the epoch before."
            )
        effort.tell(f"{name}: trial {number} of {effort.trials}, {100 * result.last:.1f} % ({how})")
        results.append(result)
    return results


def run_two_phase(data: Dataset, effort: Effort, method: str) -> list[TrialResult]:
    """Run `effort.trials` trials of mrPSVM or IWSS, on the splits of `run_trials`.

    These methods have no epochs: ``test_accuracy`` has one entry.
    """
    x = dense(data)
    assert data.y is not None
    seeds = range(effort.seed, effort.seed + effort.trials)
    of_data = _description(x, data.y)
    results = []
    for number, seed in enumerate(seeds, start=1):
        what = {"data": of_data, "method": method, "seed": seed}
        result = effort.store.get(what)
        how = "from the store"
        if result is None:
            result = _two_phase_result(x, data.y, method, effort.n_jobs, seed)
            how = f"{result.seconds:.0f} s"
            effort.store.put(what, result)
        effort.tell(
            f"{method}: trial {number} of {effort.trials}, {100 * result.last:.1f} % ({how})"
        )
        results.append(result)
    return results


def _two_phase_result(x: Any, y: Any, method: str, n_jobs: int | None, seed: int) -> TrialResult:
    train, test = split_rows(y, 1 / 3, seed)
    started, cpu_started = time.perf_counter(), time.process_time()
    model = TWO_PHASE[method](seed)
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=n_jobs)
    predicted = model.fit(x[train], y[train]).predict(x[test])
    return TrialResult(
        method,
        (x.shape[1], int(y.max()) + 1),
        0,
        x.shape[1] * (int(y.max()) + 1),
        [float(np.mean(predicted == y[test]))],
        predicted.tolist(),
        y[test].tolist(),
        seconds=time.perf_counter() - started,
        cpu_seconds=time.process_time() - cpu_started,
    )


def _description(x: Any, y: Any) -> str:
    """Return shape and checksum of the data, which identify a trial in the store."""
    crc = zlib.crc32(memoryview(x).cast("B"), zlib.crc32(np.ascontiguousarray(y).tobytes()))
    return f"{x.shape[0]} x {x.shape[1]}, CRC-32 {crc:08x}"


def _result(x: Any, y: Any, settings: PaperSettings, method: str, *how: Any) -> TrialResult:
    started, cpu_started = time.perf_counter(), time.process_time()
    try:
        trial = one_trial(x, y, settings, method, *how)
    except DivergenceError:  # in the first epoch
        widths = (x.shape[1], *settings.hidden, int(y.max()) + 1)
        return TrialResult(method, widths, 0, 0, [], [], [], diverged=1)
    return result_of(trial, time.perf_counter() - started, time.process_time() - cpu_started)


def one_trial(
    x: Any,
    y: Any,
    settings: PaperSettings,
    method: str,
    validation: float,
    n_threads: int,
    seed: int,
) -> Trial:
    """Run one trial on the split given by the seed."""
    strategy: Any = settings.strategy() if method == "SET" else Static()
    train_rows, test_rows = split_rows(y, 1 / 3, seed)
    return run_trial(
        method,
        x,
        y,
        train_rows,
        test_rows,
        settings=settings,
        strategy=strategy,
        seed=seed,
        validation_fraction=validation,
        n_threads=n_threads,
        allow_divergence=True,
    )


def dense(data: Dataset) -> Any:
    """Return the samples as one dense array."""
    return np.ascontiguousarray(data.X.toarray() if data.is_sparse else data.X)


def percent(values: list[float]) -> str:
    """Return mean and standard deviation in percent.

    Examples
    --------
    >>> percent([0.5, 0.7]), percent([0.5])
    ('60.0 ± 10.0', '50.0')
    """
    mean, spread = 100 * float(np.mean(values)), 100 * float(np.std(values))
    return f"{mean:.1f} ± {spread:.1f}" if len(values) > 1 else f"{mean:.1f}"

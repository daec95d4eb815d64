"""The paper's tables and figures on size and time: connections, seconds, extreme models."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ratoon.datasets import Dataset
from ratoon.errors import DivergenceError
from ratoon.evolution import SET, Clock
from ratoon.evolution.contrib.paper import rewire_one_by_one, rewire_vectorised
from ratoon.layers import make_layer
from ratoon.network import SparseMLP
from ratoon.paper.reproduction import Reproduction, add_notes, paper_sets
from ratoon.paper.runs import (
    Effort,
    dense,
    one_trial,
    percent,
    run_trials,
    run_two_phase,
)
from ratoon.paper.sets import (
    EXTREME,
    EXTREME_SETTINGS,
    GLI,
    GLI_REMARK,
    LEUKEMIA,
    MRPSVM_SECONDS,
    REWIRE_SECONDS,
)
from ratoon.paper.trial import PaperSettings, TrialResult


def connections(effort: Effort) -> Reproduction:
    """Count the connections and positions of the paper's networks."""
    columns = ["data set", "paper", "ours", "differs", "dense", "sparsity"]
    found = Reproduction("Connections and sparsity", columns)
    exactly = {}
    for known in paper_sets(effort):
        network, exact = (
            SparseMLP.start(known.widths, epsilon=10.0, start=start, seed=effort.seed)
            for start in ("paper", "exact")
        )
        n = network.n_connections
        found.rows.append(
            [
                known.name,
                f"{known.connections:,}",
                f"{n:,}",
                f"{100 * (n / known.connections - 1):+.3f} %",
                f"{network.n_positions:,}",
                f"{100 * (1 - n / network.n_positions):.2f} %",
            ]
        )
        exactly[known.name] = f"{known.name} {exact.n_connections:,}"
        found.counts[known.name] = (n, network.n_positions)
    found.notes.append(
        'ours is start="paper": positions are drawn with repetition, as by the authors, so nearly'
        " full output layers get fewer. The default start draws the exact number:"
        f" {'; '.join(exactly.values())}."
    )
    if GLI.name in effort.sets:
        found.notes.append(GLI_REMARK)
    return found


def time_per_epoch(effort: Effort) -> Reproduction:
    """Measure the time of an epoch."""
    found = Reproduction(
        "Seconds per epoch, one thread by default",
        ["data set", "data", "train, paper", "train, ours", "test, paper", "test, ours"],
    )
    # One trial at a time: a second training at the same time would distort the times.
    effort = replace(effort, trials=1, epochs=min(effort.epochs or 5, 5), n_jobs=1)
    for known in paper_sets(effort):
        data, kind = effort.data(known)
        found.kinds[known.name] = kind
        effort.tell(f"{known.name}: {effort.epochs} epochs")
        trial = one_trial(
            dense(data), data.y, effort.settings(known), "SET", 0.0, effort.n_threads, effort.seed
        )
        started = time.perf_counter()
        rows = np.arange(len(trial.test_labels))
        trial.network.outputs(data.take(rows).X, n_threads=effort.n_threads)
        test = time.perf_counter() - started
        found.rows.append(
            [
                known.name,
                kind,
                f"{known.train_seconds:.2f}",
                f"{trial.seconds_per_epoch():.3g}",
                f"{known.test_seconds:.2f}",
                f"{test:.2g}",
            ]
        )
        found.seconds[known.name] = {
            "paper": known.train_seconds,
            "ours": trial.seconds_per_epoch(),
        }
    found.notes.append("the paper's times are of an Intel Core i7-4700MQ, one thread.")
    return add_notes(found, effort)


def extreme(effort: Effort) -> Reproduction:
    """Train the smallest and the largest network of the paper."""
    columns = ["model", "data", "hidden", "learning rate", "connections, paper", "connections"]
    columns += ["density in %", "seconds, paper", "seconds"]
    found = Reproduction(
        "Extreme models on Leukemia, dropout 0.4",
        [*columns, "accuracy, paper", "best test epoch", "last epoch"],
    )
    effort = replace(effort, n_jobs=1)  # a second training at the same time would distort the times
    data, kind = effort.data(LEUKEMIA)
    found.kinds[LEUKEMIA.name] = kind
    epochs = min(effort.epochs or EXTREME_SETTINGS.n_epochs, EXTREME_SETTINGS.n_epochs)
    for name, (hidden, connections, accuracy, seconds) in EXTREME.items():
        widths = tuple(max(10, round(effort.scale * width)) for width in hidden)
        settings = replace(EXTREME_SETTINGS, hidden=widths, n_epochs=epochs)
        trials, rate = _trials_without_divergence(data, settings, effort)
        if rate != settings.learning_rate:
            found.notes.append(
                f"{name}: on these data training diverges at the paper's learning rate,"
                f" {settings.learning_rate:g}; the row uses {rate:g}."
            )
        spent = _mean_seconds(trials, effort.n_threads)
        built = trials[0]
        found.rows.append(
            [
                name,
                kind,
                f"{len(widths)} x {widths[0]:,}",
                f"{rate:g}",
                f"{connections:,}",
                f"{built.n_connections:,}",
                f"{100 * built.density:.3g}",
                f"{seconds:.0f}",
                f"{spent:.1f}",
                f"{accuracy:.2f}",
                percent([trial.best for trial in trials]),
                percent([trial.last for trial in trials]),
            ]
        )
        found.curves.setdefault(LEUKEMIA.name, {})[name] = [t.test_accuracy for t in trials]
        found.seconds[name] = {"paper": seconds, "ours": spent}
    trials = run_two_phase(data, effort, "mrPSVM")
    last = percent([trial.last for trial in trials])
    spent = _mean_seconds(trials, effort.n_threads)
    empty = [""] * 5
    one, many = (f"{seconds:.0f}" for seconds in MRPSVM_SECONDS.values())
    found.rows.append(["mrPSVM", kind, *empty, one, f"{spent:.1f}", "81.1", "", last])
    found.rows.append(["mrPSVM, Hadoop", "", *empty, many, "", "81.1", "", ""])
    found.seconds["mrPSVM"] = {"paper": MRPSVM_SECONDS["mrPSVM"], "ours": spent}
    found.notes.append(
        "seconds: training and testing, mean of the trials; with one thread, processor time."
    )
    return add_notes(found, replace(effort, epochs=epochs), paper_epochs=5)


def _mean_seconds(trials: list[TrialResult], n_threads: int) -> float:
    """Return the mean time; of one thread processor time, which a busy machine does not change."""
    spent = [t.seconds if t.cpu_seconds is None or n_threads > 1 else t.cpu_seconds for t in trials]
    return float(np.mean(spent))


def _trials_without_divergence(
    data: Dataset, settings: PaperSettings, effort: Effort
) -> tuple[list[TrialResult], float]:
    """Run trials with the learning rate of the settings, or a tenth of it if they diverge."""
    for rate in (settings.learning_rate, settings.learning_rate / 10):
        try:
            return run_trials(data, replace(settings, learning_rate=rate), effort), rate
        except DivergenceError as error:
            effort.tell(str(error).splitlines()[0])
            reason = error
    raise reason


def rewiring(effort: Effort) -> Reproduction:
    """Measure the time of one rewiring with the paper's implementations and with ratoon."""
    found = Reproduction(
        "Seconds of one rewiring of a square layer, epsilon 10",
        ["size", "connections", "I, paper", "I, here", "II, paper", "II, here", "ratoon"],
    )
    sizes = [size for size in REWIRE_SECONDS if effort.epochs is None or size <= 2000]
    rng = np.random.default_rng(effort.seed)
    for size in sizes:
        layer = make_layer((size, size), epsilon=10.0, init="set", seed=effort.seed)
        layer.clear_state(1)
        matrix, strategy = layer.to_csr(), SET(0.3)
        one, two = REWIRE_SECONDS[size]
        times = [
            _best_of(3, partial(rewire_one_by_one, matrix, 0.3, rng)),
            _best_of(3, partial(rewire_vectorised, matrix, 0.3, rng)),
            _best_of(5, partial(strategy.rewire_in_place, layer, Clock(1, 1, 10), 1, 1)),
        ]
        texts = [f"{seconds:.3g}" for seconds in times]
        found.rows.append(
            [f"{size:,}", f"{layer.n_connections:,}", f"{one}", texts[0], f"{two}", *texts[1:]]
        )
        names = ("I, here", "II, here", "ratoon")
        found.seconds[f"{size:,}"] = {
            "I, paper": one,
            "II, paper": two,
            **dict(zip(names, times, strict=True)),
        }
    found.notes.append(
        "processor time, best of several runs; the paper does not give the density of its layers."
    )
    return found


def _best_of(times: int, run: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(times):
        started = time.process_time()
        run()
        seconds.append(time.process_time() - started)
    return min(seconds)

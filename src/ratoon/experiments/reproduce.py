"""Every table and figure of the paper, computed again, with the paper's figure beside ours."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.errors import InvalidParameterError
from ratoon.evolution import SET, Clock
from ratoon.evolution.paper import rewire_one_by_one, rewire_vectorised
from ratoon.experiments.paper_data import STAND_IN
from ratoon.experiments.paper_figures import (
    BEST_RUN,
    EXTREME,
    EXTREME_SETTINGS,
    GLI,
    GLI_REMARK,
    LEUKEMIA,
    PAPER_SETS,
    PEAK_BY_LAYERS,
    REWIRE_SECONDS,
    PaperSet,
)
from ratoon.experiments.reproduce_runs import VALIDATION, Effort, percent, run_trials
from ratoon.layers import make_layer
from ratoon.network import SparseMLP

OPTIMISTIC = (
    '"best test epoch" is the paper\'s protocol; it chooses the epoch on the test rows and is'
    " optimistic. The last epoch is what a user gets; the validation-chosen epoch is found on a"
    f" fifth ({VALIDATION:.0%}) of the training rows, in a training of its own."
)


@dataclass
class Reproduction:
    """A table of the paper, computed again."""

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    curves: dict[str, dict[str, list[list[float]]]] = field(default_factory=dict)
    confusion: dict[str, tuple[NDArray[Any], NDArray[Any], tuple[str, ...]]] = field(
        default_factory=dict
    )
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)

    def to_markdown(self) -> str:
        """Return the table with its notes, as Markdown."""
        lines = [f"## {self.title}", "", f"| {' | '.join(self.columns)} |"]
        lines.append("|" + "---|" * len(self.columns))
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines).rstrip() + "\n"


def reproduce(table: str, effort: Effort) -> Reproduction:
    """Compute a table or figure of the paper.

    Parameters
    ----------
    table : str
        One of `TABLES`.
    effort : Effort
        Trials, epochs, data sets, seed.

    Examples
    --------
    >>> found = reproduce("connections", Effort(sets=("CLL-SUB-111",)))
    >>> found.rows[0][:2]
    ['CLL-SUB-111', '409,033']
    """
    if table not in TABLES:
        raise InvalidParameterError(f"no table {table!r}; there are {', '.join(TABLES)}.")
    if unknown := set(effort.sets) - set(PAPER_SETS):
        raise InvalidParameterError(
            f"no data set {sorted(unknown)[0]!r}; the paper has {', '.join(PAPER_SETS)}."
        )
    return TABLES[table](effort)


def _sets(effort: Effort) -> list[PaperSet]:
    return [PAPER_SETS[name] for name in effort.sets]


def _what(found: Reproduction, effort: Effort, kinds: set[str]) -> Reproduction:
    """Add what the figures were computed on."""
    if STAND_IN in kinds:
        found.notes.insert(
            0,
            f'"{STAND_IN}" is data made by `ratoon data make` in the shape of the real set:'
            " its accuracies cannot be compared with the paper's. Put the real file into the"
            " folder that `ratoon data fetch` names, or give it with --data.",
        )
    epochs = "500" if effort.epochs is None else str(effort.epochs)
    found.notes.append(f"{effort.trials} trial(s) of {epochs} epochs; the paper: 5 of 500.")
    if effort.scale != 1.0:
        found.notes.append(f"widths and features scaled by {effort.scale:g}; the paper: 1.")
    return found


def _accuracy(effort: Effort) -> Reproduction:
    columns = ["data set", "data", "method", "paper", "best test epoch", "last epoch"]
    found = Reproduction("Test accuracy in %, SET-MLP and FixProb", [*columns, "validation-chosen"])
    kinds = set()
    for known in _sets(effort):
        data, kind = effort.data(known)
        kinds.add(kind)
        for method, paper in (("SET", known.accuracy_set), ("FixProb", known.accuracy_fixprob)):
            settings = effort.settings(known)
            trials = run_trials(data, settings, effort, method=method)
            chosen = run_trials(data, settings, effort, method=method, validation=VALIDATION)
            picks = [trial.chosen for trial in chosen if trial.chosen is not None]
            found.rows.append(
                [
                    known.name,
                    kind,
                    method,
                    f"{paper:.2f}",
                    percent([trial.best for trial in trials]),
                    percent([trial.last for trial in trials]),
                    percent(picks),
                ]
            )
            found.curves.setdefault(known.name, {})[method] = [t.test_accuracy for t in trials]
    found.notes.append(OPTIMISTIC)
    return _what(found, effort, kinds)


def _curves(effort: Effort) -> Reproduction:
    found = Reproduction(
        "Learning curves: test accuracy in % after every epoch",
        ["data set", "data", "method", "first", "middle", "last", "mean change between epochs"],
    )
    kinds = set()
    for known in _sets(effort):
        data, kind = effort.data(known)
        kinds.add(kind)
        for method in ("SET", "FixProb"):
            trials = run_trials(data, effort.settings(known), effort, method=method)
            _add_curve(found, known.name, kind, method, [t.test_accuracy for t in trials])
    found.notes.append("the paper shows this as a picture: SET above FixProb, and less steady.")
    return _what(found, effort, kinds)


def _add_curve(
    found: Reproduction, name: str, kind: str, method: str, runs: list[list[float]]
) -> None:
    curve = np.mean(runs, axis=0)
    change = float(np.abs(np.diff(curve)).mean()) if curve.size > 1 else 0.0
    cells = [f"{100 * value:.1f}" for value in (curve[0], curve[curve.size // 2], curve[-1])]
    found.rows.append([name, kind, method, *cells, f"{100 * change:.1f}"])
    found.curves.setdefault(name, {})[method] = runs


def _confusion(effort: Effort) -> Reproduction:
    found = Reproduction(
        "Confusion matrices of SET-MLP (last epoch)",
        ["data set", "data", "best run, paper", "best run", "mean of runs"],
    )
    kinds = set()
    for known in _sets(effort):
        data, kind = effort.data(known)
        kinds.add(kind)
        trials = run_trials(data, effort.settings(known), effort)
        best = max(trials, key=lambda trial: trial.last)
        assert data.class_names is not None
        found.confusion[known.name] = (best.test_labels, best.test_predictions, data.class_names)
        paper = f"{BEST_RUN[known.name]:.2f}" if known.name in BEST_RUN else "picture only"
        found.rows.append(
            [known.name, kind, paper, percent([best.last]), percent([t.last for t in trials])]
        )
    found.notes.append("the best of several runs, chosen on the test rows, is optimistic.")
    return _what(found, effort, kinds)


def _connections(effort: Effort) -> Reproduction:
    columns = ["data set", "paper", "ours", "differs", "dense", "sparsity"]
    found = Reproduction("Connections and sparsity", columns)
    exactly = {}
    for known in _sets(effort):
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
        'ours is start="paper": positions drawn with repetition as the authors do, so nearly full'
        " output layers get fewer. ratoon's own start draws as many as asked for:"
        f" {'; '.join(exactly.values())}."
    )
    if GLI.name in effort.sets:
        found.notes.append(GLI_REMARK)
    return found


def _time(effort: Effort) -> Reproduction:
    found = Reproduction(
        "Seconds per epoch, one thread unless asked otherwise",
        ["data set", "data", "train, paper", "train, ours", "test, paper", "test, ours"],
    )
    kinds = set()
    effort = replace(effort, trials=1, epochs=min(effort.epochs or 5, 5))
    for known in _sets(effort):
        data, kind = effort.data(known)
        kinds.add(kind)
        [trial] = run_trials(data, effort.settings(known), effort)
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
    found.notes.append("the paper's machine: Intel Core i7-4700MQ, one thread; times of another.")
    return _what(found, effort, kinds)


def _extreme(effort: Effort) -> Reproduction:
    columns = ["model", "data", "connections, paper", "ours", "density in %", "seconds, paper"]
    found = Reproduction(
        "Extreme models on Leukemia, dropout 0.4, learning rate 0.05",
        [*columns, "ours", "accuracy, paper", "best test epoch", "last epoch"],
    )
    data, kind = effort.data(LEUKEMIA)
    epochs = min(effort.epochs or EXTREME_SETTINGS.n_epochs, EXTREME_SETTINGS.n_epochs)
    for name, (hidden, connections, accuracy, seconds) in EXTREME.items():
        widths = tuple(max(10, round(effort.scale * width)) for width in hidden)
        settings = replace(EXTREME_SETTINGS, hidden=widths, n_epochs=epochs)
        started = time.perf_counter()
        trials = run_trials(data, settings, effort)
        spent = (time.perf_counter() - started) / len(trials)
        network = trials[0].network
        found.rows.append(
            [
                f"{name} {network.widths}",
                kind,
                f"{connections:,}",
                f"{network.n_connections:,}",
                f"{100 * network.density:.3g}",
                f"{seconds:.0f}",
                f"{spent:.1f}",
                f"{accuracy:.2f}",
                percent([trial.best for trial in trials]),
                percent([trial.last for trial in trials]),
            ]
        )
    return _what(found, replace(effort, epochs=epochs), {kind})


def _variants(
    effort: Effort, known: PaperSet, variants: dict[str, dict[str, Any]], found: Reproduction
) -> str:
    """Run variants of a set's settings; the paper's remark is the entry "paper"."""
    data, kind = effort.data(known)
    for name, change in variants.items():
        paper, method = change.pop("paper", ""), change.pop("method", "SET")
        settings = replace(effort.settings(known), **change)
        trials = run_trials(data, settings, effort, method=method)
        runs = [trial.test_accuracy for trial in trials]
        found.curves.setdefault(known.name, {})[name] = runs
        best, last = ([t.best for t in trials], [t.last for t in trials])
        found.rows.append([known.name, kind, name, paper, percent(best), percent(last)])
    return kind


_VARIANT_COLUMNS = ["data set", "data", "network", "paper", "best test epoch", "last epoch"]


def _layers(effort: Effort) -> Reproduction:
    found = Reproduction("One, two and three hidden layers, accuracy in %", _VARIANT_COLUMNS)
    kinds = set()
    for known in _sets(effort):
        width = effort.settings(known).hidden[0]
        variants = {
            f"{n} hidden": {"hidden": (width,) * n, "paper": PEAK_BY_LAYERS[known.name][n]}
            for n in (1, 2, 3)
        }
        kinds.add(_variants(effort, known, variants, found))
    return _what(found, effort, kinds)


def _dropout(effort: Effort) -> Reproduction:
    found = Reproduction("Dropout 0.5 on GLI-85, two hidden layers", _VARIANT_COLUMNS)
    width = effort.settings(GLI).hidden[0]
    variants: dict[str, dict[str, Any]] = {
        "without dropout": {"hidden": (width,) * 2, "paper": "falls to near 80 after 200 epochs"},
        "dropout 0.5": {"hidden": (width,) * 2, "dropout": 0.5, "paper": "does not fall"},
        "FixProb, dropout 0.5": {
            "hidden": (width,) * 2,
            "dropout": 0.5,
            "method": "FixProb",
            "paper": "picture only",
        },
    }
    return _what(found, effort, {_variants(effort, GLI, variants, found)})


def _no_hidden(effort: Effort) -> Reproduction:
    found = Reproduction("No hidden layer on GLI-85", _VARIANT_COLUMNS)
    variants: dict[str, dict[str, Any]] = {
        "no hidden layer": {"hidden": (), "paper": "does not reach 100"},
        "one hidden layer": {"paper": "94.48"},
    }
    return _what(found, effort, {_variants(effort, GLI, variants, found)})


def _rewiring(effort: Effort) -> Reproduction:
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
    found.notes.append("best of several; the paper does not say how dense its layers were.")
    return found


def _best_of(times: int, run: Callable[[], Any]) -> float:
    spent = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        spent.append(time.perf_counter() - started)
    return min(spent)


TABLES: dict[str, Callable[[Effort], Reproduction]] = {
    "accuracy": _accuracy,
    "curves": _curves,
    "confusion": _confusion,
    "connections": _connections,
    "time": _time,
    "extreme": _extreme,
    "layers": _layers,
    "dropout": _dropout,
    "no-hidden": _no_hidden,
    "rewiring": _rewiring,
}
"""What can be computed again, by name."""

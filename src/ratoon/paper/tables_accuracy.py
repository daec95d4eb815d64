"""The paper's tables and figures on accuracy: SET and FixProb, depth, dropout."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ratoon.experiments.compare import TWO_PHASE
from ratoon.paper.reproduction import OPTIMISTIC, Reproduction, add_notes, paper_sets
from ratoon.paper.runs import VALIDATION, Effort, percent, run_trials, run_two_phase
from ratoon.paper.sets import BEST_RUN, GLI, PEAK_BY_LAYERS, QUOTED, PaperSet


def accuracy(effort: Effort) -> Reproduction:
    """Compare SET, FixProb and two-phase methods by the paper's and by unbiased protocols."""
    columns = ["data set", "data", "method", "paper", "best test epoch", "last epoch"]
    found = Reproduction("Test accuracy in %", [*columns, "validation-chosen"])
    for known in paper_sets(effort):
        data, kind = effort.data(known)
        found.kinds[known.name] = kind
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
        for method in TWO_PHASE:
            trials = run_two_phase(data, effort, method)
            quoted = QUOTED.get(known.name, {}).get(method)
            paper_text = "" if quoted is None else f"{quoted:.2f}"
            last = percent([trial.last for trial in trials])
            found.rows.append([known.name, kind, method, paper_text, "", last, ""])
    found.notes.append(OPTIMISTIC)
    found.notes.append(
        "mrPSVM (ANOVA, proximal SVM) and IWSS (incremental wrapper, naive Bayes) have no epochs;"
        " they choose their features on the training rows. The paper quotes their values from"
        " other papers."
    )
    return add_notes(found, effort)


def curves(effort: Effort) -> Reproduction:
    """Compute the test accuracy of SET and FixProb after every epoch."""
    found = Reproduction(
        "Learning curves: test accuracy in % after every epoch",
        ["data set", "data", "method", "first", "middle", "last", "change"],
    )
    for known in paper_sets(effort):
        data, kind = effort.data(known)
        found.kinds[known.name] = kind
        for method in ("SET", "FixProb"):
            trials = run_trials(data, effort.settings(known), effort, method=method)
            _add_curve(found, known.name, kind, method, [t.test_accuracy for t in trials])
    found.notes.append("change: mean change of the mean accuracy from epoch to epoch.")
    found.notes.append("the paper has a figure: SET is above FixProb and varies more.")
    return add_notes(found, effort)


def _add_curve(
    found: Reproduction, name: str, kind: str, method: str, runs: list[list[float]]
) -> None:
    curve = np.mean(runs, axis=0)
    change = float(np.abs(np.diff(curve)).mean()) if curve.size > 1 else 0.0
    cells = [f"{100 * value:.1f}" for value in (curve[0], curve[curve.size // 2], curve[-1])]
    found.rows.append([name, kind, method, *cells, f"{100 * change:.1f}"])
    found.curves.setdefault(name, {})[method] = runs


def confusion(effort: Effort) -> Reproduction:
    """Count predicted and true classes in the best run of SET."""
    found = Reproduction(
        "Confusion matrices of SET-MLP (last epoch)",
        ["data set", "data", "best run, paper", "best run", "mean of runs"],
    )
    for known in paper_sets(effort):
        data, kind = effort.data(known)
        found.kinds[known.name] = kind
        trials = run_trials(data, effort.settings(known), effort)
        best = max(trials, key=lambda trial: trial.last)
        assert data.class_names is not None
        found.confusion[known.name] = (
            np.array(best.test_labels),
            np.array(best.test_predictions),
            data.class_names,
        )
        paper = f"{BEST_RUN[known.name]:.2f}" if known.name in BEST_RUN else "figure only"
        found.rows.append(
            [known.name, kind, paper, percent([best.last]), percent([t.last for t in trials])]
        )
    found.notes.append("the best of several runs, chosen on the test rows, is optimistic.")
    return add_notes(found, effort)


def _variants(
    effort: Effort, known: PaperSet, variants: dict[str, dict[str, Any]], found: Reproduction
) -> None:
    """Run variants of the settings of a set; the entry "paper" is the paper's result."""
    data, kind = effort.data(known)
    found.kinds[known.name] = kind
    for name, change in variants.items():
        paper, method = change.pop("paper", ""), change.pop("method", "SET")
        settings = replace(effort.settings(known), **change)
        trials = run_trials(data, settings, effort, method=method)
        runs = [trial.test_accuracy for trial in trials]
        found.curves.setdefault(known.name, {})[name] = runs
        best, last = ([t.best for t in trials], [t.last for t in trials])
        found.rows.append([known.name, kind, name, paper, percent(best), percent(last)])


_VARIANT_COLUMNS = ["data set", "data", "network", "paper", "best test epoch", "last epoch"]


def layers(effort: Effort) -> Reproduction:
    """Vary the number of hidden layers."""
    found = Reproduction("One, two and three hidden layers, accuracy in %", _VARIANT_COLUMNS)
    for known in paper_sets(effort):
        width = effort.settings(known).hidden[0]
        variants = {
            f"{n} hidden": {"hidden": (width,) * n, "paper": PEAK_BY_LAYERS[known.name][n]}
            for n in (1, 2, 3)
        }
        _variants(effort, known, variants, found)
    return add_notes(found, effort)


def dropout(effort: Effort) -> Reproduction:
    """Train two hidden layers on GLI-85 with and without dropout."""
    found = Reproduction("Dropout 0.5 on GLI-85, two hidden layers", _VARIANT_COLUMNS)
    width = effort.settings(GLI).hidden[0]
    variants: dict[str, dict[str, Any]] = {
        "without dropout": {"hidden": (width,) * 2, "paper": "near 80 after 200 epochs"},
        "dropout 0.5": {"hidden": (width,) * 2, "dropout": 0.5, "paper": "does not fall"},
        "FixProb, dropout 0.5": {
            "hidden": (width,) * 2,
            "dropout": 0.5,
            "method": "FixProb",
            "paper": "figure only",
        },
    }
    _variants(effort, GLI, variants, found)
    return add_notes(found, effort)


def no_hidden(effort: Effort) -> Reproduction:
    """Train a network without hidden layers on GLI-85."""
    found = Reproduction("No hidden layer on GLI-85", _VARIANT_COLUMNS)
    variants: dict[str, dict[str, Any]] = {
        "no hidden layer": {"hidden": (), "paper": "does not reach 100"},
        "one hidden layer": {"paper": "94.48"},
    }
    _variants(effort, GLI, variants, found)
    return add_notes(found, effort)

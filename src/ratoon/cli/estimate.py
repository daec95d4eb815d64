"""Scores on the terminal, and the estimate of a training by cross-validation."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer

from ratoon.cli.options import input_errors, shell_words
from ratoon.cli.terminal import count, print_note, print_table, print_text
from ratoon.datasets import Dataset
from ratoon.errors import InvalidParameterError
from ratoon.metrics import ClassScores, NumberScores, Score, Scores, SurvivalScores

AUTO, NONE, OWN = "auto", "none", "own"
DEFAULT_CV, SHORT_CV = "5x3", "5x1"

CvOption = Annotated[
    str,
    typer.Option(
        "--cv",
        help="Estimate the score on new samples by cross-validation: 5x3 for 5 folds, drawn 3"
        " times; own for the closed form's own folds, which are slightly too good; none; or auto:"
        " 5x3 for small data without a test set.",
    ),
]


@dataclass(frozen=True)
class Plan:
    """Which cross-validation to do, and why none."""

    cv: str
    reason: str = ""


def checked_cv(cv: str) -> str:
    """Return the option in lower case, or raise."""
    from ratoon.experiments.estimate import folds_of

    text = cv.strip().lower()
    if text not in (AUTO, NONE, OWN):
        try:
            folds_of(text)
        except InvalidParameterError:
            raise InvalidParameterError(
                f"--cv must be the number of folds and of repeats, such as 5x3, or auto, own or"
                f" none; got {cv[:40]!r}."
            ) from None
    return text


def planned_cv(cv: str, estimator: Any, samples: Dataset, *, has_test: bool) -> Plan:
    """Return the cross-validation to do.

    ``auto`` depends on the size of the data and of the training only, not on the machine.
    """
    if cv != AUTO:
        return Plan(cv)
    if has_test:
        return Plan(NONE)
    from ratoon.estimators.planning import work_of_fit

    small, some = work_of_fit(estimator, samples)
    if small <= 1.0:
        return Plan(_for_groups(DEFAULT_CV, samples))
    if some <= 1.0:
        return Plan(_for_groups(SHORT_CV, samples))
    return Plan(
        NONE,
        "no estimate of the score on new samples: cross-validation would repeat this training 5"
        " times.\n  Use --cv 5x1, or hold out samples with --test 0.2.",
    )


def _for_groups(cv: str, samples: Dataset) -> str:
    """Return folds and repeats with at most as many folds as there are groups of samples."""
    if samples.groups is None:
        return cv
    n_folds, _, n_repeats = cv.partition("x")
    return f"{min(int(n_folds), len(set(samples.groups)))}x{n_repeats or 1}"


def estimated(cv: str, estimator: Any, samples: Dataset, *, seed: int, quiet: bool) -> Any:
    """Return the estimate of a fitted estimator's training; None with ``none``."""
    from ratoon.experiments.estimate import cross_validate, folds_of, own_estimate

    if cv == NONE:
        return None
    with shell_words():
        if cv == OWN:
            return own_estimate(estimator, samples.labels)
    from tqdm import tqdm

    shown = not quiet and sys.stderr.isatty()
    if not quiet and not shown:
        n_folds, n_repeats = folds_of(cv)
        print_note(
            f"Cross-validating: {count(n_folds, 'fold')}, drawn {count(n_repeats, 'time')} ..."
        )
    with input_errors(), tqdm(desc="cross-validation", disable=not shown, leave=False) as bar:

        def notify(done: int, planned: int) -> None:
            bar.total = planned
            bar.update(done - bar.n)

        return cross_validate(estimator, samples, cv=cv, seed=seed, notify=notify)


# ------------------------------------------------------------------------------------- printing


def show_scores(scores: Scores, title: str) -> None:
    """Print scores with their intervals, and those of the classes."""
    print_text("")
    print_table(title, ["score", "value", "95 % interval"], _lines(scores))
    if isinstance(scores, ClassScores) and len(scores.classes) <= 50:
        print_table(
            "",
            ["class", "samples", "precision", "recall", "ROC AUC"],
            [
                [
                    row.name,
                    row.n_samples,
                    _percent(row.precision.value),
                    _percent(row.recall.value),
                    _number(row.roc_auc.value),
                ]
                for row in scores.classes
            ],
        )


def _lines(scores: Scores) -> list[list[Any]]:
    if isinstance(scores, NumberScores):
        return [
            ["R squared", _number(scores.r2.value), _interval(scores.r2)],
            ["RMSE", _number(scores.rmse.value), _interval(scores.rmse)],
            ["mean absolute error", _number(scores.mae.value), _interval(scores.mae)],
            ["RMSE of predicting the mean", _number(scores.baseline), ""],
        ]
    if isinstance(scores, SurvivalScores):
        return [
            ["concordance (Harrell's C)", _number(scores.main.value), _interval(scores.main)],
            ["events", f"{scores.n_events} of {scores.n_samples} samples", ""],
        ]
    areas = "ROC AUC" if len(scores.classes) == 2 else "ROC AUC, mean over the classes"
    return [
        ["accuracy", _percent(scores.accuracy.value), _interval(scores.accuracy, percent=True)],
        [
            "balanced accuracy",
            _percent(scores.balanced_accuracy.value),
            _interval(scores.balanced_accuracy, percent=True),
        ],
        [areas, _number(scores.roc_auc.value), _interval(scores.roc_auc)],
        ["log-loss", _number(scores.log_loss.value), _interval(scores.log_loss)],
        ["Brier score", _number(scores.brier.value), _interval(scores.brier)],
        [f"always predicting {scores.largest}", _percent(scores.baseline), ""],
    ]


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _interval(score: Score, *, percent: bool = False) -> str:
    if score.low is None or score.high is None:
        return ""
    if percent:
        return f"{100 * score.low:.1f} to {100 * score.high:.1f}"
    return f"{score.low:.4g} to {score.high:.4g}"


def show_estimate(estimate: Any, *, quiet: bool) -> None:
    """Print the estimate of a training, and what it describes."""
    scores = estimate.scores
    show_scores(scores, f"estimate for new samples, by {estimate.how}")
    if scores.n_repeats > 1 and not quiet:
        print_note(
            f"The {scores.n_repeats} predictions of a sample are correlated; the intervals count"
            f" every sample once."
        )


def show_held_out(scores: Scores, n_equal: int) -> None:
    """Print the scores on held-out samples."""
    show_scores(scores, f"scores on {count(scores.n_samples, 'held-out sample')}")
    if n_equal:
        print_note(
            f"Warning: {count(n_equal, 'held-out sample')} also occur"
            f"{'s' if n_equal == 1 else ''} among the training samples, with the same values."
        )


def n_equal_rows(estimator: Any, held_out: Dataset) -> int:
    """Return how many held-out samples have the same values as a training sample."""
    seen = estimator.was_trained_on(held_out)
    return 0 if seen is None else int(np.count_nonzero(seen))

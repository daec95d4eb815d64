"""The top of the page: the result, its interval, and which samples it describes."""

from __future__ import annotations

from typing import Any

from ratoon.metrics import ClassScores, NumberScores, Score, SurvivalScores
from ratoon.report.context import (
    CROSS_VALIDATED,
    HELD_OUT,
    NEW,
    TRAINING,
    UNKNOWN,
    ReportContext,
)


def headline(context: ReportContext) -> dict[str, Any]:
    """Return the figures, sentences and cautions at the top of the page."""
    scores = context.scores
    found: dict[str, Any] = {
        "scores": [],
        "sentence": "",
        "basis": basis_text(context),
        "is_honest": context.basis in (HELD_OUT, CROSS_VALIDATED, NEW),
        "subtitle": _subtitle(context),
    }
    if isinstance(scores, ClassScores):
        found.update(scores=_of_classes(scores), sentence=_class_sentence(scores, context))
    elif isinstance(scores, NumberScores):
        found.update(scores=_of_numbers(scores), sentence=_number_sentence(scores))
    elif isinstance(scores, SurvivalScores):
        found.update(scores=_of_survival(scores), sentence=_survival_sentence(scores))
    if scores is None:
        found["basis"] = []
    return found


def _of_classes(scores: ClassScores) -> list[dict[str, Any]]:
    several = "one class against the rest" if len(scores.classes) > 2 else ""
    return [
        _card("accuracy", scores.accuracy, percent=True, baseline=scores.baseline),
        _card("balanced accuracy", scores.balanced_accuracy, percent=True, note="mean recall"),
        _card("ROC AUC", scores.roc_auc, baseline=0.5, note=several),
        _card("log-loss", scores.log_loss, note="smaller is better"),
        _card("Brier score", scores.brier, note="smaller is better"),
    ]


def _of_numbers(scores: NumberScores) -> list[dict[str, Any]]:
    return [
        _card("R squared", scores.r2, baseline=0.0),
        _card("RMSE", scores.rmse, note=f"{scores.baseline:.4g} for the mean"),
        _card("mean absolute error", scores.mae, note="smaller is better"),
    ]


def _of_survival(scores: SurvivalScores) -> list[dict[str, Any]]:
    events = _card("events", Score(None), note=f"of {scores.n_samples:,} samples")
    note = "Harrell's C; 0.5 is random"
    return [
        _card("concordance", scores.concordance, baseline=0.5, note=note),
        {**events, "value": f"{scores.n_events:,}"},
    ]


def _card(
    name: str,
    score: Score,
    *,
    percent: bool = False,
    baseline: float | None = None,
    note: str = "",
) -> dict[str, Any]:
    def text(value: float | None) -> str:
        if value is None:
            return "-"
        return (
            f"{100 * value:.1f}" if percent else f"{value:.3g}" if value >= 10 else f"{value:.3f}"
        )

    card: dict[str, Any] = {
        "name": name,
        "value": text(score.value) + (" %" if percent and score.value is not None else ""),
        "interval": "",
        "note": note,
        "meter": None,
    }
    if score.low is not None and score.high is not None:
        card["interval"] = f"{text(score.low)} to {text(score.high)}"
    inside = score.value is not None and score.low is not None and baseline is not None
    if inside and min(score.value or 0.0, score.low or 0.0) >= 0.0:
        places = (score.low, score.high, score.value, baseline)
        card["meter"] = dict(
            zip(
                ("low", "high", "value", "baseline"),
                (f"{200 * (place or 0.0):.1f}" for place in places),
                strict=True,
            )
        )
        card["meter"]["width"] = f"{200 * ((score.high or 0.0) - (score.low or 0.0)):.1f}"
    return card


def _class_sentence(scores: ClassScores, context: ReportContext) -> str:
    accuracy = scores.accuracy
    if accuracy.value is None or accuracy.low is None or accuracy.high is None:
        return ""
    right = round(accuracy.value * scores.n_samples, 1)
    number = f"{right:,.0f}" if right.is_integer() else f"{right:,.1f}"
    mean = " on average" if scores.n_repeats > 1 else ""
    samples = "sample" if scores.n_samples == 1 else "samples"
    return (
        f"{number} of {scores.n_samples:,} {samples}{mean} are classified correctly; 95 % interval"
        f" of the accuracy: {100 * accuracy.low:.1f} to {100 * accuracy.high:.1f} %. Always"
        f" predicting the largest class, {scores.largest}, is right for"
        f" {100 * scores.baseline:.1f} %."
    )


def _number_sentence(scores: NumberScores) -> str:
    return (
        f"The typical error is {scores.rmse.value:.4g} (root mean square over {scores.n_samples:,}"
        f" samples). Always predicting the mean has an error of {scores.baseline:.4g}."
    )


def _survival_sentence(scores: SurvivalScores) -> str:
    found = scores.concordance
    if found.value is None or found.low is None or found.high is None:
        return "No two samples can be compared: no event is before the time of another sample."
    return (
        f"Of two samples, the one with the higher predicted risk has the event first in"
        f" {100 * found.value:.0f} % of the pairs; 95 % interval: {100 * found.low:.0f} to"
        f" {100 * found.high:.0f} %. Random risks: 50 %."
    )


def basis_text(context: ReportContext) -> list[str]:
    """Return sentences on which samples the scores describe."""
    scores, data = context.scores, context.data
    n = 0 if data is None else data.n_samples
    if context.basis == HELD_OUT:
        text = [f"The {n:,} scored samples were held out: they were not used for training."]
        if context.estimate is not None:
            text.append(f"For comparison, on the training samples: {context.estimate}.")
    elif context.basis == CROSS_VALIDATED:
        on_all = context.trained_on is not None and context.trained_on.all()
        text = [
            f"Estimated by {context.estimate.how}: every sample was predicted by models that were"
            f" trained without it."
            + (f" The model itself was trained on all {n:,} samples." if on_all else "")
        ]
        if scores is not None and scores.n_repeats > 1:
            agreement = getattr(scores, "agreement", None)
            known = "" if agreement is None else f" (correlation of the errors: {agreement:.2f})"
            text.append(
                f"The predictions of a sample in the {scores.n_repeats} repeats are"
                f" correlated{known}, so the intervals count every sample once."
            )
    elif context.basis == NEW:
        text = _new_text(context, n)
    elif context.basis == TRAINING:
        text = [
            "These samples were used for training, so the scores do not describe new samples."
            " Hold out samples with `ratoon train --test 0.3`, or cross-validate with `--cv 5x3`."
        ]
    else:
        assert context.basis == UNKNOWN, context.basis
        text = [
            "The scores describe new samples only if none of these was used for training, which is"
            " not known: the model has no fingerprints of its training samples."
        ]
    return text


def _new_text(context: ReportContext, n: int) -> list[str]:
    seen = 0 if context.trained_on is None else int(context.trained_on.sum())
    if not seen:
        return [f"None of these {n:,} samples was used for training."]
    on_training = context.scores_on_training
    text = f"{seen:,} of {n:,} samples were used for training. The scores are those of the others."
    if on_training is not None:
        name = on_training.main_name
        is_share = isinstance(on_training, ClassScores)
        found = on_training.main.percent() if is_share else str(on_training.main)
        text += (
            f" {name[:1].upper()}{name[1:]} on the training samples is {found}; it does not"
            f" describe new samples."
        )
    return [text]


def _subtitle(context: ReportContext) -> str:
    network = context.estimator.network_
    n = getattr(getattr(context.estimator, "_shape", None), "n_samples", None)
    trained = "" if n is None else f"Trained on {n:,} samples of {network.widths[0]:,} features. "
    return (
        f"{trained}{network.n_connections:,} connections,"
        f" {100 * network.n_connections / network.n_positions:.3g} % of a dense network."
    )

"""A model card: what a fitted estimator knows about itself, as Markdown."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import Any

import numpy as np

from ratoon.datasets import Dataset
from ratoon.errors import InvalidParameterError
from ratoon.report.context import ReportContext
from ratoon.report.facts import preparation_facts
from ratoon.report.sections import genes, repeat, timing
from ratoon.report.sections.network import layer_rows

_MOST_CLASSES = 20
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_MARKUP = re.compile(r"([\\`*_\[\]|~$])")


def markdown_text(value: Any) -> str:
    r"""Return text that Markdown shows as it is, on one line.

    Examples
    --------
    >>> markdown_text("a|b\n<i>*c*")
    'a\\|b\\\\n&lt;i&gt;\\*c\\*'
    """
    text = _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], str(value))
    text = _MARKUP.sub(r"\\\1", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def model_card(
    estimator: Any, *, title: str | None = None, notes: str | None = None, test: Any = None
) -> str:
    """Return a Markdown page about a fitted estimator; see its method `card`.

    The page begins with metadata that model hubs read.
    """
    for name, text in (("title", title), ("notes", notes)):
        if text is not None and not isinstance(text, str):
            raise InvalidParameterError(f"card: `{name}` must be text, got {type(text).__name__}.")
    kind = type(estimator).__name__
    is_classifier = hasattr(estimator, "classes_")
    task = "tabular-classification" if is_classifier else "tabular-regression"
    task = "survival-analysis" if _is_survival(estimator) else task
    parts = [
        "\n".join(
            (
                "---",
                "library_name: ratoon",
                "tags:",
                "  - sparse-neural-network",
                f"  - {task}",
                f"ratoon_version: {version('ratoon')}",
                "---",
            )
        ),
        f"# {markdown_text(title or kind)}",
        *([notes.strip()] if notes else []),
        _section("Training data", _data_rows(estimator)),
        _section("Network", _network_rows(estimator)),
        _layers(estimator),
        _section("Settings", _settings_rows(estimator)),
        _section("Scores", _score_rows(estimator, test)),
        _features(estimator),
        _limits(estimator, has_test=test is not None),
        _use(is_classifier=is_classifier),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _is_survival(estimator: Any) -> bool:
    return hasattr(estimator, "event_times_")


def _section(heading: str, rows: list[tuple[str, Any]]) -> str:
    lines = [f"| {markdown_text(name)} | {markdown_text(value)} |" for name, value in rows]
    return "\n".join([f"## {heading}", "", "| | |", "|---|---|", *lines])


def _table(names: list[str], rows: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(map(markdown_text, row)) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(names) + " |", "|---" * len(names) + "|", *lines])


def _data_rows(estimator: Any) -> list[tuple[str, Any]]:
    shape = estimator._shape
    rows: list[tuple[str, Any]] = [
        ("samples", f"{shape.n_samples:,}"),
        ("features", f"{shape.n_features:,}"),
        ("feature names", "known" if hasattr(estimator, "feature_names_in_") else "not known"),
    ]
    rows += preparation_facts(estimator)
    if _is_survival(estimator):
        return [*rows, ("target", "times until an event or censoring")]
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return [*rows, ("targets", shape.n_outputs)]
    shown = ", ".join(str(name) for name in classes[:_MOST_CLASSES])
    more = len(classes) - _MOST_CLASSES
    return [*rows, ("classes", f"{shown}, and {more:,} more" if more > 0 else shown)]


def _network_rows(estimator: Any) -> list[tuple[str, Any]]:
    network, report = estimator.network_, estimator.report_
    return [
        ("fit", report.how.replace("`", "")),
        ("layer widths", " → ".join(f"{width:,}" for width in network.widths)),
        (
            "connections",
            f"{report.n_connections:,}, {report.n_connections / report.n_positions:.3%} of a dense"
            f" network",
        ),
        ("number type", network.dtype),
        *timing.build(ReportContext(estimator))["facts"],
    ]


def _layers(estimator: Any) -> str:
    rows = [
        [row["layer"], row["shape"], row["connections"], row["requested"], row["achieved"]]
        for row in layer_rows(estimator)
    ]
    return _table(["layer", "shape", "connections", "requested density", "density"], rows)


def _settings_rows(estimator: Any) -> list[tuple[str, Any]]:
    facts = repeat.build(ReportContext(estimator))["facts"]
    return [("estimator", repeat.constructor(estimator)), *facts]


def _score_rows(estimator: Any, test: Any) -> list[tuple[str, Any]]:
    name = "accuracy" if hasattr(estimator, "classes_") else "R squared"
    name = "concordance" if _is_survival(estimator) else name
    rows: list[tuple[str, Any]] = []
    if estimator.loss_ is not None:
        rows.append(("training loss of the last epoch", f"{estimator.loss_:.4g}"))
    scores = [score for score in estimator.validation_scores_ or [] if score is not None]
    if scores:
        best = estimator.best_iteration_
        rows.append((f"{name} on validation data, last epoch", f"{scores[-1]:.4f}"))
        if best is not None:
            rows.append(
                (
                    f"{name} on validation data, epoch {best + 1}, which was chosen by it",
                    f"{max(scores):.4f}",
                )
            )
    if test is not None:
        if not isinstance(test, Dataset) and not (isinstance(test, tuple) and len(test) == 2):
            raise InvalidParameterError(
                f"card: `test` must be a tuple (X, y) or a Dataset, got {type(test).__name__}."
            )
        X, y = (test, test.labels) if isinstance(test, Dataset) else test
        found = f"{estimator.score(X, y):.4f} ({np.asarray(y).shape[0]:,} samples)"
        rows.append((f"{name} on test data", found))
    else:
        rows.append((f"{name} on test data", "not stored in the model"))
    return rows


def _features(estimator: Any) -> str:
    found = genes.build(ReportContext(estimator, top=10))
    if found is None:
        return ""
    rows = [[row["rank"], row["name"], row["share"]] for row in found["rows"]]
    note = "Fraction of the importance of all features; not a causal effect."
    return f"## Strongest features\n\n{_table(['rank', 'feature', 'share'], rows)}\n\n{note}"


def _limits(estimator: Any, *, has_test: bool) -> str:
    shape = estimator._shape
    lines = [
        f"- Trained on {shape.n_samples:,} {'sample' if shape.n_samples == 1 else 'samples'}."
        " Predictions for samples of another population or measured with another method are not"
        " covered by these scores.",
    ]
    if not has_test:
        lines.append("- The page has no score on independent test data.")
    if estimator.validation_scores_:
        lines.append("- A validation score that chose the epoch is too optimistic.")
    if hasattr(estimator, "classes_"):
        lines.append("- Probabilities are not calibrated unless that was done separately.")
    scale = estimator.network_.scaling.scale
    n_constant = 0 if scale is None else int((np.asarray(scale) == 0).sum())
    if n_constant:
        noun = "feature was" if n_constant == 1 else "features were"
        end = "is" if n_constant == 1 else "are"
        lines.append(f"- {n_constant:,} {noun} constant in training and {end} ignored.")
    return "\n".join(["## Limits", "", *lines])


def _use(*, is_classifier: bool) -> str:
    method = "predict_proba" if is_classifier else "predict"
    return "\n".join(
        (
            "## Use",
            "",
            "```python",
            "import ratoon",
            "",
            'model = ratoon.load("model.ratoon")',
            f"model.{method}(X)",
            "```",
        )
    )

"""The report: one self-contained HTML page without scripts."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ratoon.datasets import Dataset
from ratoon.datasets.optional import require
from ratoon.report.curves import LearningCurveDisplay
from ratoon.report.facts import (
    data_facts,
    evaluate,
    layer_rows,
    matrix_rows,
    ranked_features,
    repeat_facts,
    stability_facts,
    timing_facts,
)
from ratoon.report.layers import ConnectionCountDisplay, DegreeDisplay
from ratoon.report.style import inline_svg
from ratoon.report.survival import survival_section
from ratoon.storage.atomic import write_file

_TEMPLATES = Path(__file__).parent / "templates"


def write_report(
    estimator: Any,
    path: str | os.PathLike[str],
    data: Dataset | None = None,
    *,
    title: str | None = None,
    command: str | None = None,
    held_out: bool | None = None,
    top: int = 25,
    selector: Any = None,
) -> Path:
    """Write a report about a fitted estimator as one self-contained HTML file.

    Parameters
    ----------
    estimator : SparseMLPClassifier or SparseMLPRegressor
        Fitted.
    path : path
        The file to write, replaced as a whole or not at all; its folder must exist.
    data : Dataset, optional
        Samples to describe and, if they have labels, to score on.  Features must be in the order
        of training.
    title : str, optional
        Heading of the page.
    command : str, optional
        The command that trained the network, shown on the page.
    held_out : bool, optional
        Whether the samples were held out from training; None if that is not known.  The page
        states which.
    top : int
        Number of features in the ranking.
    selector : SparseFeatureSelector or SparseAutoencoderSelector, optional
        Fitted on the same features; the page then shows its ranking and stability.

    Returns
    -------
    Path
        Path of the page.
    """
    text = render_report(
        estimator,
        data,
        title=title,
        command=command,
        held_out=held_out,
        top=top,
        selector=selector,
    )
    target = Path(path)
    write_file(target, text.encode("utf-8", "backslashreplace"))
    return target


def render_report(
    estimator: Any,
    data: Dataset | None = None,
    *,
    title: str | None = None,
    command: str | None = None,
    held_out: bool | None = None,
    top: int = 25,
    selector: Any = None,
) -> str:
    """Return the page as text; parameters as for `write_report`.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> model = SparseMLPClassifier((8,), epsilon=2, max_iter=3, random_state=0)
    >>> page = render_report(model.fit([[0.0, 1.0], [1.0, 0.0]], ["ill", "well"]))
    >>> page.startswith("<!doctype html>"), "<script" in page
    (True, False)
    """
    jinja2 = require("jinja2", "to write reports")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    found = evaluate(estimator, data)
    confusion = found.get("confusion")
    pictures = {name: jinja2.utils.markupsafe.Markup(svg) for name, svg in _draw(estimator).items()}
    text: str = environment.get_template("page.html").render(
        title=title or f"{type(estimator).__name__}: report",
        when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        headline=_headline(estimator, data, found),
        caution=_caution(held_out) if found else None,
        data=data_facts(data) if data is not None else [],
        layers=layer_rows(estimator),
        totals=_totals(estimator),
        pictures=pictures,
        solved=estimator.solver_ == "closed form",
        how=estimator.report_.how,
        survival=_survival(estimator, data, jinja2.utils.markupsafe.Markup),
        matrix=matrix_rows(confusion) if confusion is not None else None,
        features=ranked_features(estimator, data, top, selector),
        stability=stability_facts(selector),
        timings=timing_facts(estimator, found.get("seconds")),
        repeat=repeat_facts(estimator, command),
    )
    return text


def _survival(estimator: Any, data: Dataset | None, mark: Any) -> dict[str, Any] | None:
    found = survival_section(estimator, data)
    return None if found is None else {**found, "picture": mark(found["picture"])}


def _draw(estimator: Any) -> dict[str, str]:
    """Draw every picture of the page."""
    history = estimator.history_
    pictures = {}
    if len(history) > 1:
        loss = history.column("loss")
        pictures["loss"] = inline_svg(
            LearningCurveDisplay({"training": [loss]}, ylabel="loss"),
            f"Training loss over {len(loss)} epochs, from {loss[0]:.3g} to {loss[-1]:.3g}.",
            salt="loss",
            size=(5.2, 3.1),
        )
        scores = history.column("validation_score")
        if None not in scores:
            pictures["score"] = inline_svg(
                LearningCurveDisplay({"validation": [scores]}, ylabel="score"),
                f"Validation score over the epochs, best {max(scores):.3g}.",
                salt="score",
                size=(5.2, 3.1),
            )
    n_layers = len(estimator.network_.layers)
    for layer in range(n_layers):
        degrees = DegreeDisplay.from_estimator(estimator, layer=layer)
        if degrees.is_uniform:  # for example a full layer
            continue
        pictures[f"degree {layer + 1}"] = inline_svg(
            degrees,
            f"Fraction of neurons of layer {layer + 1} by their number of connections.",
            salt=f"degree{layer}",
            size=(5.2, 3.3),
        )
    counts = ConnectionCountDisplay.from_estimator(estimator)
    description = "; ".join(f"{name} {a:,} of {b:,}" for name, (a, b) in counts.counts.items())
    size = (5.2, 1.0 + 0.62 * len(counts.counts))
    pictures["sizes"] = inline_svg(counts, f"Connections: {description}.", salt="sizes", size=size)
    return pictures


def _totals(estimator: Any) -> dict[str, str]:
    report = estimator.report_
    return {
        "connections": f"{report.n_connections:,}",
        "positions": f"{report.n_positions:,}",
        "density": f"{100 * report.n_connections / report.n_positions:.3g} %",
        "dtype": report.dtype,
    }


def _headline(estimator: Any, data: Dataset | None, found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the figures at the top of the page: label and number."""
    network = estimator.network_
    figures = []
    if found:
        classifies = "confusion" in found
        score = f"{100 * found['score']:.1f} %" if classifies else f"{found['score']:.3f}"
        numeric = "concordance" if hasattr(estimator, "event_times_") else "R squared"
        figures.append(("accuracy" if classifies else numeric, score))
    if data is not None:
        figures.append(("samples", f"{data.n_samples:,}"))
    figures += [
        ("neurons", f"{sum(network.widths):,}"),
        ("connections", f"{network.n_connections:,}"),
        ("of a dense network", f"{100 * network.n_connections / network.n_positions:.3g} %"),
    ]
    return figures


def _caution(held_out: bool | None) -> str:
    if held_out:
        return "These samples were held out: they were not used for training."
    if held_out is None:
        return (
            "The score is on the samples described below. It estimates the score on new samples"
            " only if none of them was used for training, which is not known here."
        )
    return (
        "The network was trained on these samples, so the score does not estimate that on new"
        " samples. Hold out samples with `ratoon train --test 0.3`."
    )

"""The report: one self-contained HTML page that starts with the result."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.datasets import Dataset
from ratoon.datasets.optional import require
from ratoon.errors import InvalidInputError
from ratoon.report.context import (
    CROSS_VALIDATED,
    HELD_OUT,
    NEW,
    TRAINING,
    UNKNOWN,
    ReportContext,
    with_predictions,
)
from ratoon.report.headline import headline
from ratoon.report.sections import built
from ratoon.report.svg import Html, visible
from ratoon.storage.atomic import write_file

_TEMPLATES = Path(__file__).parent / "templates"


def write_report(
    estimator: Any,
    path: str | os.PathLike[str],
    data: Dataset | None = None,
    *,
    title: str | None = None,
    command: str | None = None,
    repeat: str | None = None,
    held_out: bool | None = None,
    training: Dataset | None = None,
    estimate: Any = None,
    top: int = 25,
    selector: Any = None,
    extras: Mapping[str, Any] | None = None,
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
    repeat : str, optional
        Python code that repeats the training, shown on the page.
    held_out : bool, optional
        Whether the samples were held out from training.  None finds out by the fingerprints of the
        training samples, if the estimator has them.  The page states which.
    training : Dataset, optional
        The training samples, if they are not ``data``.
    estimate : Estimate, optional
        Cross-validation of the samples of ``data`` by `ratoon.experiments.cross_validate`, whose
        scores the page then shows; with ``held_out`` one of the training samples, of which it
        shows the main score.
    top : int
        Number of features in the ranking.
    selector : SparseFeatureSelector or SparseAutoencoderSelector, optional
        Fitted on the same features; the page then shows its ranking and stability.
    extras : mapping of str to object, optional
        Data of optional sections, by their names.

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
        repeat=repeat,
        held_out=held_out,
        training=training,
        estimate=estimate,
        top=top,
        selector=selector,
        extras=extras,
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
    repeat: str | None = None,
    held_out: bool | None = None,
    training: Dataset | None = None,
    estimate: Any = None,
    top: int = 25,
    selector: Any = None,
    extras: Mapping[str, Any] | None = None,
) -> str:
    """Return the page as text; parameters as for `write_report`.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> model = SparseMLPClassifier((8,), epsilon=2, max_iter=3, random_state=0)
    >>> page = render_report(model.fit([[0.0, 1.0], [1.0, 0.0]], ["ill", "well"]))
    >>> page.startswith("<!doctype html>"), "src=" in page
    (True, False)
    """
    basis, trained_on = _basis(estimator, data, held_out, estimate)
    context = with_predictions(
        ReportContext(
            estimator,
            data,
            predictions=None if estimate is None or held_out else estimate.predictions,
            basis=basis,
            trained_on=trained_on,
            training=training,
            estimate=estimate,
            title=title or f"{type(estimator).__name__}: report",
            command=command,
            repeat=repeat,
            top=top,
            selector=selector,
            extras=extras or {},
        )
    )
    return page_text(
        "report.html",
        title=context.title,
        head=headline(context),
        sections=built(context),
    )


def page_text(template: str, *, title: str, **values: Any) -> str:
    """Return a page made from a template that extends ``page.html``.

    The page has one inline script, which its content policy names by its hash; nothing else can
    run, and nothing can be fetched.
    """
    jinja2 = require("jinja2", "to write reports", extra="report")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalized,
    )
    environment.filters["block"] = json_block
    environment.filters["coded"] = coded
    script = (_TEMPLATES / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text: str = environment.get_template(template).render(
        title=title,
        when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        script=Html(script),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; img-src data:;"
        f" script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        **values,
    )
    return text


def coded(text: str) -> Html:
    """Return text as markup in which the parts between backticks are code.

    Examples
    --------
    >>> coded("Use `a <b>`.")
    'Use <code>a &lt;b&gt;</code>.'
    """
    return Html(re.sub("`([^`]+)`", r"<code>\1</code>", escape(visible(text))))


def json_block(value: Any) -> Html:
    r"""Return a value as JSON that cannot end the script element it is in.

    Examples
    --------
    >>> json_block(["</script>", "\u2028"])
    '["\\u003c/script\\u003e","\\u2028"]'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(text)


def _finalized(value: Any) -> Any:
    """Replace characters that HTML does not have in text; markup remains as it is."""
    return visible(value) if type(value) is str else value


def _basis(
    estimator: Any, data: Dataset | None, held_out: bool | None, estimate: Any
) -> tuple[str, NDArray[np.bool_] | None]:
    """Return on what the scores are computed, and which samples the model was trained on."""
    if data is None:
        return UNKNOWN, None
    everything = np.ones(data.n_samples, dtype=bool)
    if held_out:
        return HELD_OUT, ~everything
    seen = everything if held_out is False else estimator.was_trained_on(data)
    if estimate is not None:
        if estimate.predictions.n_samples != data.n_samples:
            raise InvalidInputError(
                f"the estimate is of {estimate.predictions.n_samples} samples, and the data has"
                f" {data.n_samples}."
            )
        return CROSS_VALIDATED, seen
    if held_out is False:
        return TRAINING, seen
    if seen is None:
        return UNKNOWN, None
    return (TRAINING, seen) if seen.all() else (NEW, seen)

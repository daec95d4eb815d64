"""`ratoon report`: what a model is and does, as one page."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ratoon.cli.options import (
    CoverageOption,
    DataFile,
    IdMapOption,
    LabelOption,
    MissingOption,
    QuietOption,
    ReadingOption,
)
from ratoon.cli.samples import features_for, labels_of, read_samples
from ratoon.cli.terminal import blaming_the_data, say
from ratoon.datasets import Dataset
from ratoon.datasets.align import MIN_COVERAGE


def report(
    model: Annotated[Path, typer.Argument(help="Model file written by train.")],
    data: DataFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    label: LabelOption = None,
    missing: MissingOption = "error",
    reading: ReadingOption = None,
    min_coverage: CoverageOption = MIN_COVERAGE,
    id_map: IdMapOption = None,
    held_out: Annotated[
        bool,
        typer.Option("--held-out", help="State that these samples were not trained on."),
    ] = False,
    top: Annotated[int, typer.Option(min=1, help="Features in the ranking.")] = 25,
    stability: Annotated[
        int | None,
        typer.Option(
            min=2, help="Rank features by so many networks, trained on parts of the samples."
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    quiet: QuietOption = False,
) -> None:
    """Write a report on a model as one HTML file.

    It holds everything it needs: open it in any browser, mail it, print it.
    Samples with labels are scored; samples without are only described.

    For example:

      ratoon report lung.ratoon test.csv --label outcome --held-out -o lung.html

      ratoon report lung.ratoon train.csv --label outcome --stability 5
    """
    import ratoon
    from ratoon.report import write_report

    estimator = ratoon.load(model)
    task = "classify" if hasattr(estimator, "classes_") else "regress"
    samples = read_samples(data, label, missing, quiet=quiet, task=task, reading=reading)
    x = features_for(
        estimator, samples, data, min_coverage=min_coverage, id_map=id_map, quiet=quiet
    )
    names = getattr(estimator, "feature_names_in_", None)
    known = samples.feature_names if names is None else tuple(str(name) for name in names)
    samples = replace(samples, X=x, feature_names=known)
    with blaming_the_data():
        selector = None if stability is None else _selector(samples, stability, top, data)
        path = write_report(
            estimator,
            output,
            samples,
            title=title or f"{model.name} on {data.name}",
            command=command_line(),
            held_out=held_out or None,
            top=top,
            selector=selector,
        )
    if not quiet:
        say(f"The report is in {path}.")


def _selector(samples: Dataset, n_networks: int, top: int, path: Path) -> Any:
    from ratoon import SparseFeatureSelector

    samples = labels_of(samples, path)
    k = min(top, samples.n_features)
    return SparseFeatureSelector(k, n_repeats=n_networks, random_state=0).fit(samples.X, samples.y)


def report_training(
    estimator: Any, samples: Dataset, test_rows: Any, path: Path, *, quiet: bool
) -> None:
    """Write the report of a training: on the samples held back, or else on those trained on."""
    from ratoon.report import write_report

    held_out = len(test_rows) > 0
    write_report(
        estimator,
        path,
        samples.take(test_rows) if held_out else samples,
        title=f"Training on {Path(samples.source).name}",
        command=command_line(),
        held_out=held_out,
    )
    if not quiet:
        say(f"The report is in {path}.")


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["ratoon", *sys.argv[1:]])

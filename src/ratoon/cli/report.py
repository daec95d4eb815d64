"""`ratoon report`: an HTML page about a model."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ratoon.cli.options import (
    CoverageOption,
    DataFile,
    IdMapOption,
    LabelOption,
    MissingOption,
    ModelFile,
    QuietOption,
    ReadingOption,
    input_errors,
)
from ratoon.cli.output import check_report
from ratoon.cli.samples import load_model, matched, read_samples, task_of, with_labels
from ratoon.cli.terminal import print_note
from ratoon.datasets import MIN_COVERAGE, Dataset


def report(
    model: ModelFile,
    data: DataFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")] = Path(
        "report.html"
    ),
    label: LabelOption = None,
    missing: MissingOption = "error",
    reading: ReadingOption = None,
    min_coverage: CoverageOption = MIN_COVERAGE,
    id_map: IdMapOption = None,
    held_out: Annotated[
        bool,
        typer.Option("--held-out", help="State that the model was not trained on these samples."),
    ] = False,
    top: Annotated[int, typer.Option(min=1, help="Number of features in the ranking.")] = 25,
    stability: Annotated[
        int | None,
        typer.Option(
            min=2, help="Rank features by this many networks, trained on parts of the samples."
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    quiet: QuietOption = False,
) -> None:
    """Write a report on a model as one HTML file.

    The file is self-contained: it opens in any browser without a network
    connection.  The score is shown if the samples have labels.

    For example:

      ratoon report lung.ratoon test.csv --label outcome --held-out -o lung.html

      ratoon report lung.ratoon train.csv --label outcome --stability 5
    """
    from ratoon.report import write_report

    check_report(output)
    estimator = load_model(model)
    task = task_of(estimator)
    samples = read_samples(
        data,
        label,
        missing,
        quiet=quiet,
        task=task,
        reading=reading,
        model=estimator,
        needs_labels=True,
    )
    samples = matched(
        estimator, samples, data, min_coverage=min_coverage, id_map=id_map, quiet=quiet
    )
    with input_errors():
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
        print_note(f"The report is in {path}.")


def _selector(samples: Dataset, n_networks: int, top: int, path: Path) -> Any:
    from ratoon import SparseFeatureSelector

    samples = with_labels(samples, path)
    k = min(top, samples.n_features)
    return SparseFeatureSelector(k, n_repeats=n_networks, random_state=0).fit(samples, samples.y)


def report_training(
    estimator: Any, training: Dataset, held_out: Dataset | None, path: Path, *, quiet: bool
) -> None:
    """Write the report of a training, on the held-out samples if there are any."""
    from ratoon.report import write_report

    write_report(
        estimator,
        path,
        training if held_out is None else held_out,
        title=f"Training on {Path(training.source).name}",
        command=command_line(),
        held_out=held_out is not None,
    )
    if not quiet:
        print_note(f"The report is in {path}.")


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["ratoon", *sys.argv[1:]])

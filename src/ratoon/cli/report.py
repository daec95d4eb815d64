"""`ratoon report`: an HTML page about a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ratoon.cli.estimate import AUTO, NONE, OWN, CvOption, checked_cv, estimated, planned_cv
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
from ratoon.cli.repeat import command_line
from ratoon.cli.samples import load_model, matched, read_samples, task_of, with_labels
from ratoon.cli.terminal import print_note
from ratoon.datasets import MIN_COVERAGE, Dataset
from ratoon.errors import InvalidParameterError


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
    cv: CvOption = AUTO,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the folds.")] = 0,
    top: Annotated[int, typer.Option(min=1, help="Number of features in the ranking.")] = 25,
    stability: Annotated[
        int | None,
        typer.Option(
            min=2, help="Rank features by this many models, fitted to halves of the samples."
        ),
    ] = None,
    gene_sets: Annotated[
        Path | None,
        typer.Option(help="Gene sets (.gmt or an edge list) to test the ranking against."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    quiet: QuietOption = False,
) -> None:
    """Write a report on a model as one HTML file.

    The file is self-contained: it opens in any browser without a network
    connection.  Scores are shown if the samples have labels.  They describe
    the samples that the model was not trained on; if it was trained on all,
    they are estimated by cross-validation with the model's parameters.

    For example:

      ratoon report lung.ratoon test.csv --label outcome --held-out -o lung.html

      ratoon report lung.ratoon train.csv --label outcome --stability 20

      ratoon report lung.ratoon train.csv --label outcome --gene-sets hallmark.gmt
    """
    from ratoon.report import write_report

    cv = checked_cv(cv)
    if held_out and cv not in (AUTO, NONE):
        raise InvalidParameterError(
            "--held-out states that the samples are new, and --cv trains on them; use one of them."
        )
    if cv == OWN:
        raise InvalidParameterError(
            "--cv own works in `ratoon train` only; use folds, such as 5x3."
        )
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
        selector = (
            None if stability is None else _selector(estimator, samples, stability, top, data)
        )
        estimate = _estimate(estimator, samples, cv, seed, held_out=held_out, quiet=quiet)
        ranking = estimator.ranking_ if selector is None else selector.ranked_
        extras = _extras(ranking, gene_sets, quiet=quiet)
        path = write_report(
            estimator,
            output,
            samples,
            title=title or f"{model.name} on {data.name}",
            command=command_line(),
            held_out=held_out or None,
            estimate=estimate,
            top=top,
            selector=selector,
            extras=extras,
        )
    if not quiet:
        print_note(f"The report is in {path}.")


def _extras(ranking: Any, gene_sets: Path | None, *, quiet: bool) -> dict[str, Any]:
    """Return the enrichment of gene sets for the page, if there are any."""
    from ratoon.cli.enrich import enrichment_of

    if gene_sets is None:
        return {}
    found, note = enrichment_of(ranking, gene_sets)
    if not quiet:
        print_note(note)
    return {"pathways": found}


def _selector(estimator: Any, samples: Dataset, n_networks: int, top: int, path: Path) -> Any:
    from ratoon import SparseFeatureSelector

    samples = with_labels(samples, path)
    if estimator.preparation_ is not None:
        samples = replace(samples, X=estimator._read_prepared(samples).values())
    k = min(top, samples.n_features)
    return SparseFeatureSelector(k, n_repeats=n_networks, random_state=0).fit(samples, samples.y)


def _estimate(
    estimator: Any, samples: Dataset, cv: str, seed: int, *, held_out: bool, quiet: bool
) -> Any:
    """Cross-validate the model's parameters if it was trained on all of the samples, or if asked.

    With ``auto`` only for small data.
    """
    if cv == NONE or held_out or samples.y is None:
        return None
    if cv == AUTO:
        seen = estimator.was_trained_on(samples)
        if seen is None or not seen.all():
            return None
    planned = planned_cv(cv, estimator, samples, has_test=False)
    if planned.reason and not quiet:
        print_note(planned.reason)
    return estimated(planned.cv, estimator, samples, seed=seed, quiet=quiet)


def report_training(
    estimator: Any,
    training: Dataset,
    held_out: Dataset | None,
    path: Path,
    estimate: Any,
    code: str,
    *,
    quiet: bool,
) -> None:
    """Write the report of a training: on held-out samples, or on its cross-validation."""
    from ratoon.report import write_report

    shown = training if held_out is None else held_out
    if held_out is None and estimate is not None and estimate.rows is not None:
        shown = training.take(estimate.rows)
    write_report(
        estimator,
        path,
        shown,
        title=f"Training on {Path(training.source).name}",
        command=command_line(),
        repeat=code,
        held_out=held_out is not None,
        training=None if held_out is None else training,
        estimate=estimate,
    )
    if not quiet:
        print_note(f"The report is in {path}.")

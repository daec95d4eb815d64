"""`ratoon explain`: why a model predicts what it predicts for single samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ratoon.cli.options import (
    CoverageOption,
    DataFile,
    FormulaOption,
    IdMapOption,
    JsonOption,
    LabelOption,
    MissingOption,
    ModelFile,
    QuietOption,
    ReadingOption,
    input_errors,
)
from ratoon.cli.output import check_file, check_picture, save_picture, write_csv
from ratoon.cli.samples import load_model, matched, read_samples
from ratoon.cli.terminal import count, print_json, print_note, print_table
from ratoon.datasets import MIN_COVERAGE, Dataset
from ratoon.errors import InvalidParameterError

COLUMNS = ("sample", "explained", "output", "base", "rank", "feature", "contribution", "value")
SHOWN = 3
MOST_DIGITS = 18


def explain(
    model: ModelFile,
    data: DataFile,
    sample: Annotated[
        list[str] | None,
        typer.Option("--sample", "-s", help="Name of a sample, or its number from 1. Repeatable."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of features per sample.")] = 10,
    target: Annotated[
        str | None,
        typer.Option(help="Class to explain instead of the predicted one; or number of an output."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file to write.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the contributions to the first sample to this file.")
    ] = None,
    label: LabelOption = None,
    missing: MissingOption = "error",
    reading: ReadingOption = None,
    min_coverage: CoverageOption = MIN_COVERAGE,
    id_map: IdMapOption = None,
    escape_formulas: FormulaOption = True,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show which features led to the prediction of a sample.

    For classes, the margin of the predicted class over the mean of the others
    is divided among the features; for numbers, the prediction.  The
    contributions of all features and the output for the mean of the training
    samples (base) sum up to the output.  The first samples are shown, unless
    some are named.

    For example:

      ratoon explain lung.ratoon new.csv --sample GSM123

      ratoon explain lung.ratoon new.csv --top 20 -o why.csv
    """
    if output is not None:
        check_file(output)
    if picture is not None:
        check_picture(picture)
    estimator = load_model(model)
    samples = read_samples(
        data, label, missing, quiet=quiet or as_json, reading=reading, model=estimator
    )
    samples = matched(
        estimator,
        samples,
        data,
        min_coverage=min_coverage,
        id_map=id_map,
        quiet=quiet or as_json,
    )
    n_all = samples.n_samples
    rows = list(range(n_all))
    if sample:
        rows = [_row_of(name, samples, data) for name in sample]
    elif output is None and not as_json:
        rows = rows[:SHOWN]
    if samples.sample_names is None:
        names = tuple(sample) if sample else tuple(str(row + 1) for row in rows)
    else:
        names = tuple(samples.sample_names[row] for row in rows)
    with input_errors():
        found = estimator.explain(samples, target=target, rows=rows)
        tops = [found.top(top, row) for row in range(found.n_samples)]
    if picture is not None:
        from ratoon.report import ContributionDisplay

        display = ContributionDisplay.from_explanation(found, 0, top=top)
        save_picture(display.plot().figure_, picture, dpi=130)
    if as_json:
        print_json([_facts(found, row, names[row], tops[row]) for row in range(found.n_samples)])
        return
    if output is not None:
        write_csv(
            output,
            list(COLUMNS),
            [
                (
                    names[row],
                    str(found.targets[row]),
                    float(found.outputs[row]),
                    float(found.base_values[row]),
                    rank,
                    *line,
                )
                for row in range(found.n_samples)
                for rank, line in enumerate(tops[row], start=1)
            ],
            delimiter="\t" if output.suffix.lower() in (".tsv", ".txt") else ",",
            escape_formulas=escape_formulas,
        )
        if not quiet:
            print_note(f"{count(found.n_samples, 'sample')} explained in {output}.")
        return
    for row in range(found.n_samples):
        _show(found, row, names[row], tops[row], is_classifier=hasattr(estimator, "classes_"))
    if not quiet and not sample and n_all > found.n_samples:
        print_note(
            f"{found.n_samples} of {n_all:,} samples are shown. Name one with --sample, or write"
            f" all to a file with -o FILE."
        )


def _show(
    found: Any, row: int, name: str, tops: list[tuple[str, float, float]], *, is_classifier: bool
) -> None:
    what = f"predicted {found.outputs[row]:.4g}"
    if is_classifier:
        what = f"margin of {found.targets[row]}: {found.outputs[row]:.3f}"
    rest = float(found.outputs[row] - found.base_values[row] - sum(line[1] for line in tops))
    print_table(
        f"{name}: {what}",
        ["feature", "contribution", "value"],
        [
            ["(base)", f"{found.base_values[row]:+.4g}", ""],
            *([feature, f"{part:+.4g}", f"{value:.4g}"] for feature, part, value in tops),
            ["(all other features)", f"{rest:+.4g}", ""],
        ],
    )


def _facts(found: Any, row: int, name: str, tops: list[tuple[str, float, float]]) -> dict[str, Any]:
    return {
        "sample": name,
        "explained": str(found.targets[row]),
        "unit": found.unit,
        "output": float(found.outputs[row]),
        "base": float(found.base_values[row]),
        "features": [
            {"feature": feature, "contribution": part, "value": value}
            for feature, part, value in tops
        ],
    }


def _row_of(name: str, samples: Dataset, path: Path) -> int:
    """Return the row of a sample given by name or by number from 1."""
    known = samples.sample_names or ()
    if name in known:
        return known.index(name)
    digits = name if name.isdecimal() and len(name) <= MOST_DIGITS else "0"
    if 1 <= int(digits) <= samples.n_samples:
        return int(digits) - 1
    shown = f" such as {', '.join(known[:3])}" if known else ""
    raise InvalidParameterError(
        f"{path.name} has no sample {name!r}.\n"
        f"  --sample takes a name{shown}, or a number from 1 to {samples.n_samples:,}."
    )

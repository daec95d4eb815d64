"""`ratoon select`: a ranked table of the strongest features."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ratoon.cli.options import (
    DataFile,
    FormulaOption,
    JsonOption,
    LabelOption,
    MissingOption,
    QuietOption,
    ReadingOption,
    TaskOption,
    input_errors,
)
from ratoon.cli.output import check_file, check_picture, save_picture, write_csv
from ratoon.cli.samples import read_samples, with_labels
from ratoon.cli.terminal import print_json, print_note, print_table

COLUMNS = ("rank", "feature", "strength", "spread", "stability", "direction")
SHOWN = 20


def select(
    data: DataFile,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of features to select.")] = 50,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the table: .csv or .tsv."),
    ] = None,
    label: LabelOption = None,
    missing: MissingOption = "error",
    reading: ReadingOption = None,
    task: TaskOption = "auto",
    unsupervised: Annotated[
        bool,
        typer.Option("--unsupervised", help="Use no labels: train sparse denoising autoencoders."),
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Number of networks to average.")] = 5,
    picture: Annotated[Path | None, typer.Option(help="Draw the ranking to this file.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed. The same seed gives the same table.")
    ] = 0,
    jobs: Annotated[int, typer.Option(help="Number of networks trained in parallel.")] = 1,
    escape_formulas: FormulaOption = True,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Rank the features of a data file by the weights of sparse networks.

    Several networks are trained on different parts of the samples.  The table
    has one line per selected feature: its strength (fraction of the strength
    of all features) and the standard deviation of it over the networks, its
    stability (fraction of the networks in which it is among the first k), and
    its direction.  Selection uses the labels: a model tested on the same
    samples afterwards looks better than it is.

    For example:

      ratoon select genes.csv --label outcome -k 50 -o panel.csv

      ratoon select genes.csv --unsupervised -k 200
    """
    from ratoon import SparseAutoencoderSelector, SparseFeatureSelector

    quiet = quiet or as_json
    if output is not None:
        check_file(output)
    if picture is not None:
        check_picture(picture)
    samples = read_samples(data, label, missing, quiet=quiet, task=task, reading=reading)
    selector: Any
    if unsupervised:
        selector = SparseAutoencoderSelector(k, n_repeats=repeats, random_state=seed)
    else:
        samples = with_labels(samples, data)
        selector = SparseFeatureSelector(k, n_repeats=repeats, random_state=seed, n_jobs=jobs)
    with input_errors():
        selector.fit(samples, samples.y)
    rows = ranked_rows(selector, samples)
    if output is not None:
        try:
            write_csv(
                output,
                list(COLUMNS),
                [tuple(row.values()) for row in rows],
                delimiter="\t" if output.suffix.lower() in (".tsv", ".txt") else ",",
                escape_formulas=escape_formulas,
            )
        except OSError:
            if not as_json:
                _show(rows, selector, None, quiet=quiet)  # the result of a long computation
            raise
    if picture is not None:
        _draw(selector, samples, picture)
    if as_json:
        stability = None if math.isnan(selector.stability_) else selector.stability_
        print_json({"stability_index": stability, "networks": repeats, "features": rows})
        return
    _show(rows, selector, output, quiet=quiet)


def ranked_rows(selector: Any, samples: Any) -> list[dict[str, Any]]:
    """Return one row per selected feature, strongest first."""
    from ratoon.estimators.selectors import directions

    kept = np.argsort(selector.ranking_)[: selector.n_features_]
    direction = [""] * kept.size
    if samples.y is not None and samples.y.ndim == 1:
        direction = directions(samples.X[:, kept], samples.y, samples.class_names)
    return [
        dict(
            zip(
                COLUMNS,
                (
                    place + 1,
                    samples.feature_label(int(j)),
                    float(selector.strength_[j]),
                    float(selector.strength_spread_[j]),
                    float(selector.selection_frequency_[j]),
                    direction[place],
                ),
                strict=True,
            )
        )
        for place, j in enumerate(kept)
    ]


def _show(rows: list[dict[str, Any]], selector: Any, output: Path | None, *, quiet: bool) -> None:
    shown = rows if output is None else rows[:SHOWN]
    print_table(
        "strongest features",
        list(COLUMNS),
        [
            [
                row["rank"],
                row["feature"],
                f"{row['strength']:.3%}",
                f"{row['spread']:.2%}",
                f"{row['stability']:.0%}",
                row["direction"],
            ]
            for row in shown
        ],
    )
    if quiet:
        return
    if not math.isnan(selector.stability_):
        print_note(
            f"Stability index: {selector.stability_:.2f} (1: all networks select the same features;"
            f" 0: as random selection)."
        )
    if output is not None:
        print_note(f"All {len(rows)} features are in {output}.")


def _draw(selector: Any, samples: Any, path: Path) -> None:
    from ratoon.report import FeatureRankingDisplay

    display = FeatureRankingDisplay.from_strength(
        selector.strength_,
        names=samples.feature_names,
        spread=selector.strength_spread_,
        top=min(selector.n_features_, 40),
    )
    save_picture(display.plot().figure_, path, dpi=130)

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
    GroupOption,
    JsonOption,
    LabelOption,
    MissingOption,
    QuietOption,
    ReadingOption,
    TaskOption,
    input_errors,
    with_columns,
)
from ratoon.cli.output import check_file, check_picture, save_picture, write_csv
from ratoon.cli.samples import read_samples, with_labels
from ratoon.cli.terminal import print_json, print_note, print_table

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
    group: GroupOption = None,
    repeats: Annotated[
        int, typer.Option(min=1, help="Number of models, fitted to halves of the samples.")
    ] = 10,
    threshold: Annotated[
        float,
        typer.Option(help="Fraction of the halves for which a feature counts as stable."),
    ] = 0.9,
    picture: Annotated[Path | None, typer.Option(help="Draw the ranking to this file.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed. The same seed gives the same table.")
    ] = 0,
    jobs: Annotated[int, typer.Option(help="Number of networks trained in parallel.")] = 1,
    escape_formulas: FormulaOption = True,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Rank the features of a data file, and measure how stable the ranking is.

    The table has one line per selected feature: its importance (fraction of
    that of all features) in a model of all samples; its standard deviation over
    models fitted to random halves of the samples; its stability (fraction of
    the halves in which it is among the first k); and statistics of
    all samples: direction, difference of the means, t or F, p value, and FDR
    (Benjamini-Hochberg).  Below it is a bound on the number of stable features
    that are false.  With --group, halves keep the samples of a patient or a
    batch together.  Selection uses the labels: a model tested on the same
    samples afterwards looks better than it is.

    For example:

      ratoon select genes.csv --label outcome -k 50 -o panel.csv

      ratoon select genes.csv --label outcome --group patient

      ratoon select genes.csv --unsupervised -k 200
    """
    from ratoon import SparseAutoencoderSelector, SparseFeatureSelector

    quiet = quiet or as_json
    if output is not None:
        check_file(output)
    if picture is not None:
        check_picture(picture)
    reading = with_columns(reading, group=group)
    samples = read_samples(data, label, missing, quiet=quiet, task=task, reading=reading)
    selector: Any
    if unsupervised:
        selector = SparseAutoencoderSelector(k, n_repeats=repeats, random_state=seed)
    else:
        samples = with_labels(samples, data)
        selector = SparseFeatureSelector(k, n_repeats=repeats, random_state=seed, n_jobs=jobs)
    with input_errors():
        selector.fit(samples, samples.y)
        stable = None if unsupervised or repeats < 2 else selector.stable_features(threshold)
    ranking = _ranking(selector, samples)
    rows = ranked_rows(selector, ranking)
    if output is not None:
        try:
            write_csv(
                output,
                list(rows[0]),
                [tuple(row.values()) for row in rows],
                delimiter="\t" if output.suffix.lower() in (".tsv", ".txt") else ",",
                escape_formulas=escape_formulas,
            )
        except OSError:
            if not as_json:
                _show(
                    rows, selector, ranking, stable, None, quiet=quiet
                )  # the result of a long computation
            raise
    if picture is not None:
        _draw(selector, samples, picture)
    if as_json:
        stability = None if math.isnan(selector.stability_) else selector.stability_
        print_json(
            {
                "stability_index": stability,
                "networks": repeats,
                "statistics": ranking.rows,
                "difference": ranking.difference_name,
                "stable": _stable_facts(stable, ranking),
                "features": rows,
            }
        )
        return
    _show(rows, selector, ranking, stable, output, quiet=quiet)


def _ranking(selector: Any, samples: Any) -> Any:
    from ratoon.estimators.selectors import labelled_ranking

    y = samples.y if samples.y is not None and samples.y.ndim == 1 else None
    return labelled_ranking(selector, samples.X, y, samples.class_names)


def ranked_rows(selector: Any, ranking: Any) -> list[dict[str, Any]]:
    """Return one row per selected feature, strongest first."""
    kept = np.argsort(selector.ranking_)[: selector.n_features_]
    rows = []
    for row, j in zip(ranking.select(kept), kept, strict=True):
        head = {name: row.pop(name) for name in ("rank", "feature", "importance")}
        more = {
            "spread": float(selector.strength_spread_[j]),
            "stability": float(selector.selection_frequency_[j]),
        }
        rows.append(head | more | row)
    return rows


def _stable_facts(stable: Any, ranking: Any) -> dict[str, Any] | None:
    if stable is None:
        return None
    return {
        "threshold": stable.threshold,
        "features": [ranking.name(int(j)) for j in stable.features],
        "expected_false": stable.expected_false,
        "expected_false_if_unimodal": stable.expected_false_unimodal,
    }


def _show(
    rows: list[dict[str, Any]],
    selector: Any,
    ranking: Any,
    stable: Any,
    output: Path | None,
    *,
    quiet: bool,
) -> None:
    shown = rows if output is None else rows[:SHOWN]
    columns = ["rank", "feature", "importance", "stability"]
    has_statistics = "fdr" in rows[0]
    if has_statistics:
        columns += ["direction", "difference", ranking.statistic_name, "FDR"]
    print_table(
        "strongest features",
        columns,
        [
            [
                row["rank"],
                row["feature"],
                f"{row['importance']:.3%}",
                f"{row['stability']:.0%}",
                *statistics_cells(row),
            ]
            for row in shown
        ],
    )
    if quiet:
        return
    if has_statistics:
        print_note(
            f"difference: {ranking.difference_name}; statistics {ranking.rows}, where selection"
            f" makes them too good for the features selected."
        )
    if not math.isnan(selector.stability_):
        print_note(
            f"Stability index: {selector.stability_:.2f} (1: all models select the same features;"
            f" 0: as random selection)."
        )
    if stable is not None:
        print_note(f"{stable}.")
    if output is not None:
        print_note(f"All {len(rows)} features are in {output}.")


def statistics_cells(row: dict[str, Any]) -> list[str]:
    """Return the cells of a ranking's row about direction, difference, statistic and FDR."""
    if "fdr" not in row:
        return []
    return [
        row["direction"],
        f"{row['difference']:.3g}",
        f"{row['statistic']:.3g}",
        f"{row['fdr']:.2g}",
    ]


def _draw(selector: Any, samples: Any, path: Path) -> None:
    from ratoon.report import FeatureRankingDisplay

    display = FeatureRankingDisplay.from_strength(
        selector.strength_,
        names=samples.feature_names,
        spread=selector.strength_spread_,
        top=min(selector.n_features_, 40),
    )
    save_picture(display.plot().figure_, path, dpi=130)

"""`ratoon compare`: whether a sparse network is worth it on some data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer

from ratoon.cli.output import print_json, print_table, say
from ratoon.cli.samples import (
    DataFile,
    JobsOption,
    JsonOption,
    LabelOption,
    MissingOption,
    QuietOption,
    ReadingOption,
    labels_of,
    read_samples,
)
from ratoon.errors import InvalidInputError


def compare(
    data: DataFile,
    label: LabelOption = None,
    missing: MissingOption = "error",
    reading: ReadingOption = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    repeats: Annotated[int, typer.Option(min=1, help="How often folds are drawn anew.")] = 2,
    nested: Annotated[
        bool,
        typer.Option("--nested", help="Let every method choose its settings by inner folds."),
    ] = False,
    inner: Annotated[int, typer.Option(min=2, help="Inner folds of --nested.")] = 3,
    permutations: Annotated[
        int, typer.Option(min=0, help="Rounds with labels in random order.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of folds, permutations, methods.")] = 0,
    jobs: JobsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare ratoon with a network that never rewires and with classical pipelines.

    Repeated stratified cross-validation, the same splits for all; everything
    is fitted inside the training rows.  Differences to ratoon come with a
    paired test that is corrected for overlapping training sets, and a run on
    permuted labels shows what chance looks like.  With --nested every method
    that has settings chooses them by folds inside the training rows.

    For example:

      ratoon compare genes.csv --label outcome

      ratoon compare lung.mat --repeats 4 --json > lung.json

      ratoon compare lung.mat --nested --folds 5 --repeats 1
    """
    from ratoon.experiments.compare import Makers, classical
    from ratoon.experiments.compare import compare as run
    from ratoon.experiments.nested import classical_grids
    from ratoon.experiments.nested import nested as choosing

    quiet = quiet or as_json
    samples = labels_of(
        read_samples(data, label, missing, quiet=quiet, task="classify", reading=reading), data
    )
    if samples.class_names is None or samples.n_classes < 2:
        raise InvalidInputError(f"{data}: comparing needs two classes or more.")
    x = np.asarray(samples.X.toarray() if samples.is_sparse else samples.X)
    methods: Makers = {**networks(), **classical(samples.n_features)}
    if nested:
        grids = {**network_grids(), **classical_grids(samples.n_features)}
        methods = choosing(methods, grids, n_inner=inner)
    assert samples.y is not None
    found = run(
        x,
        samples.y,
        methods,
        n_splits=folds,
        n_repeats=repeats,
        n_permutations=permutations,
        seed=seed,
        n_jobs=jobs,
        tell=(lambda text: None) if quiet else say,
    )
    first = next(iter(methods))
    rows = []
    for name in methods:
        difference, p = found.against(first, name)
        permuted = found.permuted.get(name)
        rows.append(
            {
                "method": name,
                "accuracy": float(found.accuracy[name].mean()),
                "deviation": float(found.accuracy[name].std()),
                "balanced": float(found.balanced[name].mean()),
                "ratoon_minus_it": None if name == first else difference,
                "p": None if name == first or np.isnan(p) else p,
                "on_permuted_labels": None if permuted is None else float(permuted.mean()),
            }
        )
    if as_json:
        how = {"splits": folds * repeats, "inner_folds": inner if nested else None}
        print_json({**how, "methods": rows})
        return
    title = f"accuracy in %, {folds * repeats} splits"
    _show(rows, f"{title}, settings chosen by {inner} inner folds" if nested else title)


def networks() -> dict[str, Callable[[int], Any]]:
    """Return makers of ratoon's networks: the default, SET, and the same without rewiring."""
    from ratoon import SparseMLPClassifier

    wide: dict[str, Any] = {"hidden_layer_sizes": (1000,), "epsilon": 10.0}
    return {
        "ratoon": lambda seed: SparseMLPClassifier(random_state=seed),
        "SET": lambda seed: SparseMLPClassifier(**wide, random_state=seed),
        "FixProb": lambda seed: SparseMLPClassifier(**wide, evolution="static", random_state=seed),
    }


def network_grids() -> dict[str, dict[str, Any]]:
    """Return what `--nested` may choose for the networks; the default chooses for itself."""
    from ratoon.evolution import SET

    return {
        "SET": {"epsilon": (5.0, 20.0), "evolution": (SET(0.1), SET(0.3))},
        "FixProb": {"epsilon": (5.0, 20.0)},
    }


def _show(rows: list[dict[str, Any]], title: str) -> None:
    def points(value: float | None) -> str:
        return "" if value is None else f"{100 * value:+.1f}"

    def percent(value: float | None) -> str:
        return "" if value is None else f"{100 * value:.1f}"

    print_table(
        title,
        ["method", "accuracy", "balanced", "ratoon minus it", "p", "permuted"],
        [
            [
                row["method"],
                f"{percent(row['accuracy'])} ± {percent(row['deviation'])}",
                percent(row["balanced"]),
                points(row["ratoon_minus_it"]),
                "" if row["p"] is None else f"{row['p']:.3f}",
                percent(row["on_permuted_labels"]),
            ]
            for row in rows
        ],
    )
    say("p: paired t test corrected for overlapping training sets; not for several comparisons.")

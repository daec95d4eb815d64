"""`ratoon compare`: ratoon and its rivals on the same data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ratoon.cli.options import (
    DataFile,
    GroupOption,
    JobsOption,
    JsonOption,
    LabelOption,
    MissingOption,
    NormalizeOption,
    PrepareLog2Option,
    QuietOption,
    ReadingOption,
    prepare_from,
    with_columns,
)
from ratoon.cli.output import check_report
from ratoon.cli.repeat import command_line
from ratoon.cli.samples import read_samples, with_classes, with_labels
from ratoon.cli.terminal import (
    count,
    p_text,
    print_json,
    print_note,
    print_table,
    signed_points,
)
from ratoon.errors import InvalidParameterError

if TYPE_CHECKING:
    pass

CORRECTION = (
    "p: corrected resampled t test (Nadeau and Bengio, 2003): paired by split, corrected for"
    " overlapping training sets but not for multiple comparisons."
)


def compare(
    data: DataFile,
    label: LabelOption = None,
    missing: MissingOption = "error",
    reading: ReadingOption = None,
    folds: Annotated[int, typer.Option(min=2, help="Number of cross-validation folds.")] = 5,
    repeats: Annotated[int, typer.Option(min=1, help="Number of times the folds are drawn.")] = 2,
    rivals: Annotated[
        str | None,
        typer.Option(
            "--rivals",
            help="Methods to compare with, separated by commas: ridge, l1, svm, forest, largest,"
            " mrPSVM, IWSS, or all. Default: the first five.",
        ),
    ] = None,
    nested: Annotated[
        bool,
        typer.Option("--nested", help="Tune each method by inner folds."),
    ] = False,
    inner: Annotated[int, typer.Option(min=2, help="Number of inner folds of --nested.")] = 3,
    group: GroupOption = None,
    log2: PrepareLog2Option = "no",
    normalize: NormalizeOption = "none",
    permutations: Annotated[
        int, typer.Option(min=0, help="Number of runs on permuted labels.")
    ] = 3,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed of folds, permutations and methods.")
    ] = 0,
    jobs: JobsOption = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a page with charts to this HTML file.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare ratoon with classical methods by cross-validation.

    All methods use the same splits of repeated stratified cross-validation,
    and everything is fitted on the training rows only.  The difference of each
    method to ratoon is tested with a paired test that is corrected for
    overlapping training sets.  Accuracy on permuted labels shows the level of
    random guessing, with its deviation over the permutations.  With --group,
    samples of a patient or a batch are in the same fold.  With --nested,
    methods with hyperparameters choose them by folds within the training rows.

    For example:

      ratoon compare genes.csv --label outcome

      ratoon compare lung.mat --repeats 4 --json > lung.json

      ratoon compare lung.mat --nested --folds 5 --repeats 1

      ratoon compare genes.csv --label outcome --group patient --log2 auto

      ratoon compare lung.mat --rivals ridge,mrPSVM,IWSS
    """
    from ratoon import SamplePreparer
    from ratoon.experiments.compare import Makers, after
    from ratoon.experiments.compare import compare as run
    from ratoon.experiments.compare import rivals as chosen_rivals
    from ratoon.experiments.nested import classical_grids
    from ratoon.experiments.nested import nested as choosing

    quiet = quiet or as_json
    if report is not None:
        check_report(report)
    prepare = prepare_from(log2, normalize, center=False, group=group)
    samples = read_samples(
        data,
        label,
        missing,
        quiet=quiet,
        task="classify",
        reading=with_columns(reading, group=group),
    )
    samples = with_classes(with_labels(samples, data), data)
    x = np.asarray(samples.X.toarray() if samples.is_sparse else samples.X)
    chosen = chosen_rivals(None if rivals is None else rivals.split(","), samples.n_features)
    methods: Makers = {**networks(), **chosen}
    if nested and prepare is not None:
        raise InvalidParameterError("--log2 and --normalize do not work with --nested.")
    if prepare is not None:
        methods = after(lambda: SamplePreparer(prepare), methods)
    if nested:
        grids = {**network_grids(), **classical_grids(samples.n_features)}
        methods = choosing(methods, grids, n_inner=inner)
    assert samples.y is not None
    progress = Progress(quiet=quiet)
    found = run(
        x,
        samples.y,
        methods,
        n_splits=folds,
        n_repeats=repeats,
        n_permutations=permutations,
        seed=seed,
        n_jobs=jobs,
        tell=progress.tell,
        groups=samples.groups,
        begin=progress.begin,
    )
    progress.close()
    first = next(iter(methods))
    rows = []
    for name in methods:
        difference, p = found.against(first, name)
        permuted = found.on_permuted(name)
        rows.append(
            {
                "method": name,
                "accuracy": float(found.accuracy[name].mean()),
                "deviation": float(found.accuracy[name].std()),
                "balanced": float(found.balanced[name].mean()),
                "ratoon_minus_it": None if name == first else difference,
                "p": None if name == first or np.isnan(p) else p,
                "on_permuted_labels": None if permuted is None else permuted[0],
                "deviation_on_permuted_labels": None if permuted is None else permuted[1],
            }
        )
    if report is not None:
        how_many = f"{count(folds, 'fold')}, drawn {count(repeats, 'time')}"
        _write_page(found, first, report, samples, how_many, quiet=quiet)
    if as_json:
        how = {"splits": folds * repeats, "inner_folds": inner if nested else None}
        print_json({**how, "methods": rows})
        return
    title = f"accuracy in %, {count(folds * repeats, 'split')}"
    _show(
        rows,
        f"{title}, hyperparameters chosen by {count(inner, 'inner fold')}" if nested else title,
        folds * repeats,
    )


def _write_page(
    found: Any, first: str, path: Path, samples: Any, how_many: str, *, quiet: bool
) -> None:
    """Write the page of a comparison of methods."""
    from ratoon.report.comparison import Compared, write_comparison
    from ratoon.report.facts import data_facts

    methods = []
    for name, accuracy in found.accuracy.items():
        mean, low, high = found.interval(name, first)
        permuted = found.on_permuted(name)
        methods.append(
            Compared(
                name,
                accuracy,
                None if name == first else (mean, low, high),
                None if name == first else found.against(name, first)[1],
                (
                    f"{100 * found.balanced[name].mean():.1f}",
                    "" if permuted is None else _with_spread(*permuted),
                ),
                () if name == first else accuracy - found.accuracy[first],
            )
        )
    write_comparison(
        path,
        methods,
        title=f"Methods on {Path(samples.source).name}",
        reference=f"difference to {first}",
        columns=("balanced accuracy, %", "on permuted labels, %"),
        facts=[*data_facts(samples), ("cross-validation", how_many)],
        notes=(
            "All methods used the same splits; everything was fitted on training rows only.",
            "Accuracy: mean and standard deviation over the splits. On permuted labels: the level"
            " of random guessing, mean and standard deviation over the permutations.",
            CORRECTION,
        ),
        command=command_line(),
    )
    if not quiet:
        print_note(f"The report is in {path}.")


def networks() -> dict[str, Callable[[int], Any]]:
    """Return a function of a seed for each network: the default, SET, and SET without rewiring."""
    from ratoon import SparseMLPClassifier

    wide: dict[str, Any] = {"hidden_layer_sizes": (1000,), "epsilon": 10.0}
    return {
        "ratoon": lambda seed: SparseMLPClassifier(random_state=seed),
        "SET": lambda seed: SparseMLPClassifier(**wide, random_state=seed),
        "FixProb": lambda seed: SparseMLPClassifier(**wide, evolution="static", random_state=seed),
    }


def network_grids() -> dict[str, dict[str, Any]]:
    """Return the hyperparameters `--nested` tunes; the default tunes itself."""
    from ratoon.evolution import SET

    return {
        "SET": {"epsilon": (5.0, 20.0), "evolution": (SET(0.1), SET(0.3))},
        "FixProb": {"epsilon": (5.0, 20.0)},
    }


def note_on_p(values: list[float | None], n_splits: int) -> None:
    """Print which test was used, and why p values are missing."""
    from ratoon.experiments.compare import LEAST_SPLITS

    print_note(CORRECTION)
    if n_splits < LEAST_SPLITS:
        print_note(
            f"p is -: {count(n_splits, 'split')} {'is' if n_splits == 1 else 'are'} too few; at"
            f" least {LEAST_SPLITS} are needed."
        )
    elif any(p is None or p != p for p in values):
        print_note(
            "p is - where fewer than"
            f" {LEAST_SPLITS} splits can be compared or all of them have the same difference."
        )


def _show(rows: list[dict[str, Any]], title: str, n_splits: int) -> None:
    def points(value: float | None) -> str:
        return "" if value is None else signed_points(value)

    def percent(value: float | None) -> str:
        return "" if value is None else f"{100 * value:.1f}"

    print_table(
        title,
        ["method", "accuracy", "balanced", "difference", "p", "permuted"],
        [
            [
                row["method"],
                f"{percent(row['accuracy'])} ± {percent(row['deviation'])}",
                percent(row["balanced"]),
                points(row["ratoon_minus_it"]),
                "" if row["ratoon_minus_it"] is None else p_text(row["p"]),
                ""
                if row["on_permuted_labels"] is None
                else _with_spread(row["on_permuted_labels"], row[PERMUTED]),
            ]
            for row in rows
        ],
    )
    print_note("difference: accuracy of ratoon minus accuracy of the method.")
    note_on_p([row["p"] for row in rows if row["ratoon_minus_it"] is not None], n_splits)


def _with_spread(mean: float, spread: float | None) -> str:
    """Return a fraction and its deviation in per cent."""
    return f"{100 * mean:.1f}" + ("" if spread is None else f" ± {100 * spread:.1f}")


PERMUTED = "deviation_on_permuted_labels"


class Progress:
    """One progress bar over all fits of a comparison."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Any = None

    def begin(self, n_fits: int) -> None:
        """Show the bar, unless output is quiet."""
        from tqdm import tqdm

        # None: no bar where stderr is not a terminal.
        hidden = True if self._quiet else None
        self._bar = tqdm(total=n_fits, desc="comparing", unit="fit", disable=hidden)

    def tell(self, text: str) -> None:
        """Count a fit and show what it was."""
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update()

    def close(self) -> None:
        """End the bar."""
        self._bar.close()

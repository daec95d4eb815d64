"""`ratoon compare`: whether a sparse network is worth it on some data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from ratoon.cli.options import (
    DataFile,
    JobsOption,
    JsonOption,
    LabelOption,
    MissingOption,
    QuietOption,
    ReadingOption,
    widths_from,
)
from ratoon.cli.samples import labels_of, read_samples
from ratoon.cli.terminal import megabytes, print_json, print_table, say
from ratoon.errors import InvalidInputError, InvalidParameterError

if TYPE_CHECKING:
    from ratoon.experiments.strategy_lines import StrategyComparison, StrategyLine


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


DIGITS = "digits"

PICTURES = (".png", ".svg", ".pdf")


def compare_strategies(
    data: Annotated[
        Path, typer.Argument(help=f"A data file, or {DIGITS}: scikit-learn's 8 x 8 images.")
    ],
    label: LabelOption = None,
    missing: MissingOption = "error",
    strategies: Annotated[
        str | None, typer.Option(help="Only these, with commas between; all without.")
    ] = None,
    splits: Annotated[int, typer.Option(min=1, help="Splits into training and test rows.")] = 20,
    epochs: Annotated[int, typer.Option(min=1, help="Of every training.")] = 50,
    hidden: Annotated[str, typer.Option(help="Widths of hidden layers.")] = "500,500",
    epsilon: Annotated[float, typer.Option(min=0.0, help="Connections per neuron.")] = 10.0,
    learning_rate: Annotated[float, typer.Option(min=0.0, help="Of momentum SGD.")] = 0.005,
    threads: Annotated[int, typer.Option(min=1, help="Threads.")] = 1,
    plot: Annotated[
        Path | None, typer.Option(help="Draw a picture to this file (.png, .svg, .pdf).")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare all ways of rewiring: same start, same samples, same budget.

    In every split all networks begin with the same connections and weights
    and see the same minibatches; they differ in the rewiring alone.  Accuracy
    is that of the last epoch on a third of the samples held out.  Differences
    to the network that never rewires are taken split by split.  Then there
    are seconds per rewiring, memory, and what share of all possible
    connections was tried at some time (explored).

    For example:

      ratoon compare-strategies digits --splits 3 --plot digits.png

      ratoon compare-strategies genes.csv --label outcome

      ratoon compare-strategies lung.mat --strategies static,set,rigl --json
    """
    from ratoon.experiments.strategies import (
        StrategySettings,
        compare_strategies,
        known_strategies,
    )

    quiet = quiet or as_json
    x, y = _strategy_samples(data, label, missing, quiet=quiet)
    if epsilon <= 0 or learning_rate <= 0:
        raise InvalidParameterError("--epsilon and --learning-rate must be positive.")
    if plot is not None and plot.suffix not in PICTURES:
        raise InvalidParameterError(f"--plot {plot}: the name must end in {', '.join(PICTURES)}.")
    chosen = known_strategies(strategies.split(",") if strategies else None)
    settings = StrategySettings(
        hidden=widths_from(hidden) or (),
        epsilon=epsilon,
        learning_rate=learning_rate,
        n_epochs=epochs,
    )
    found = compare_strategies(
        x,
        y,
        chosen,
        n_splits=splits,
        settings=settings,
        n_threads=threads,
        tell=(lambda run: None)
        if quiet
        else lambda run: say(
            f"split {run.split + 1} of {splits}: {run.strategy} {run.accuracy:.3f}"
        ),
    )
    lines = found.lines()
    if as_json:
        print_json(_as_dict(data, x, y, settings, lines))
    else:
        widths = "-".join(map(str, (x.shape[1], *settings.hidden, int(y.max()) + 1)))
        _show_strategies(lines, f"{data.name}: {widths}, {epochs} epochs, {splits} splits")
    if plot is not None:
        _draw_strategies(found, data.name, plot)
        if not quiet:
            say(f"The picture is in {plot}.")


def _strategy_samples(
    data: Path, label: str | None, missing: str, *, quiet: bool
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    if str(data) == DIGITS and not data.exists():
        from ratoon.experiments.strategies import digits

        return digits()
    samples = labels_of(read_samples(data, label, missing, quiet=quiet, task="classify"), data)
    if samples.class_names is None or samples.n_classes < 2:
        raise InvalidInputError(f"{data}: comparing needs two classes or more.")
    assert samples.y is not None
    return np.asarray(samples.X.toarray() if samples.is_sparse else samples.X), samples.y


def _as_dict(
    data: Path, x: NDArray[Any], y: NDArray[np.int64], settings: Any, lines: list[StrategyLine]
) -> dict[str, Any]:
    # JSON knows no NaN, which the accuracy is where every training diverged.
    plain = [
        {key: None if value != value else value for key, value in asdict(line).items()}
        for line in lines
    ]
    return {
        "data": data.name,
        "samples": x.shape[0],
        "features": x.shape[1],
        "classes": int(y.max()) + 1,
        "settings": asdict(settings),
        "strategies": plain,
    }


def _show_strategies(lines: list[StrategyLine], title: str) -> None:
    def told(value: float | None, form: str, factor: float = 1.0) -> str:
        return "" if value is None else format(factor * value, form)

    print_table(
        title,
        ["strategy", "accuracy", "- static", "p", "ms each", "explored", "memory"],
        [
            [
                line.strategy,
                f"{100 * line.accuracy:.1f} ± {100 * line.deviation:.1f}",
                told(line.gain, "+.1f", 100.0),
                told(line.p, ".2f"),
                told(line.seconds_per_rewiring, ".3g", 1e3),
                told(line.explored, ".0%"),
                megabytes(line.array_bytes + line.state_bytes),
            ]
            for line in lines
        ],
    )
    say("accuracy and - static: in %, mean and deviation over the splits.")
    say("p: paired t test corrected for overlapping training sets; not for several comparisons.")
    say("ms each: of one rewiring, all layers, with what the strategy watches before it.")
    say("memory: the network's arrays at their largest, and what the strategy remembers.")
    for line in lines:
        if line.n_diverged:
            say(
                f"{line.strategy}: {line.n_diverged} of {line.n_splits} trainings diverged and are"
                f" left out; try a lower --learning-rate."
            )


def _draw_strategies(found: StrategyComparison, name: str, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    from ratoon.report import StrategyDisplay

    lines = found.lines()
    gains = {line.strategy: found.gains(line.strategy) for line in lines}
    gains = {strategy: values for strategy, values in gains.items() if values.size}
    if not gains:
        raise InvalidInputError(
            "there is nothing to draw: the picture shows differences to `static`, which is not"
            " among the strategies, or diverged."
        )
    display = StrategyDisplay(
        gains,
        {
            line.strategy: line.seconds_per_rewiring
            for line in lines
            if line.seconds_per_rewiring is not None
        },
        {line.strategy: line.explored for line in lines if line.explored is not None},
        title=name,
    ).plot()
    display.figure_.savefig(path, dpi=120)
    pyplot.close(display.figure_)

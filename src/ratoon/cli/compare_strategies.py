"""`ratoon compare-strategies`: the ways to rewire, on the same data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from typer.core import TyperCommand

from ratoon.cli.compare import CORRECTION, note_on_p
from ratoon.cli.options import (
    JsonOption,
    LabelOption,
    MissingOption,
    QuietOption,
    ReadingOption,
    importing_from_here,
    widths_from,
)
from ratoon.cli.output import check_picture, check_report, save_picture
from ratoon.cli.repeat import command_line
from ratoon.cli.samples import read_samples, with_classes, with_labels, without_groups
from ratoon.cli.terminal import (
    count,
    megabytes,
    p_text,
    print_json,
    print_note,
    print_table,
    signed_points,
)
from ratoon.errors import InvalidInputError, InvalidParameterError

if TYPE_CHECKING:
    from ratoon.experiments.strategy_lines import StrategyComparison, StrategyLine

DIGITS = "digits"


class StrategiesCommand(TyperCommand):
    """A command whose help ends with the names of all strategies, also of installed packages."""

    def format_help(self, *arguments: Any, **named: Any) -> None:
        """Write the help, with the names in the epilog."""
        from ratoon.evolution import strategy_names
        from ratoon.experiments.strategies import LEFT_OUT

        names = [name for name in strategy_names() if name not in LEFT_OUT]
        self.epilog = f"Strategies: {', '.join(names)}."
        super().format_help(*arguments, **named)


def compare_strategies(
    data: Annotated[
        Path, typer.Argument(help=f"Data file, or {DIGITS}: the 8 x 8 images of scikit-learn.")
    ],
    label: LabelOption = None,
    missing: MissingOption = "error",
    reading: ReadingOption = None,
    strategies: Annotated[
        str | None,
        typer.Option(
            help="Strategies to compare, separated by commas: names or package.module:Class, also"
            " with parameters, such as rigl(zeta=0.1). Default: all that come with ratoon and do"
            " not select features."
        ),
    ] = None,
    splits: Annotated[
        int, typer.Option(min=1, help="Number of splits into training and test rows.")
    ] = 20,
    epochs: Annotated[int, typer.Option(min=1, help="Number of epochs of each training.")] = 50,
    hidden: Annotated[str, typer.Option(help="Widths of the hidden layers.")] = "500,500",
    epsilon: Annotated[
        float,
        typer.Option(min=0.0, help="About epsilon * (inputs + outputs) connections in a layer."),
    ] = 10.0,
    learning_rate: Annotated[
        float, typer.Option(min=0.0, help="Learning rate of SGD with momentum.")
    ] = 0.005,
    threads: Annotated[int, typer.Option(min=1, help="Number of threads.")] = 1,
    plot: Annotated[
        Path | None, typer.Option(help="Draw a picture to this file (.png, .svg, .pdf).")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a page with charts to this HTML file.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare rewiring strategies with the same start, samples and epochs.

    In each split all networks start with the same connections and weights and
    are trained on the same minibatches; only the rewiring differs.  Accuracy
    is measured after the last epoch on a held-out third of the samples.
    Differences to the network that is never rewired are taken per split.  The
    table also has the time per rewiring, the memory, and the fraction of all
    possible connections that existed at some time (explored).

    For example:

      ratoon compare-strategies digits --splits 3 --plot digits.png

      ratoon compare-strategies genes.csv --label outcome

      ratoon compare-strategies lung.mat --strategies static,set,rigl --json

      ratoon compare-strategies digits --strategies "static,my_rules:Mine(zeta=0.1)"
    """
    from ratoon.evolution.plugins import split_strategies
    from ratoon.experiments.strategies import (
        StrategySettings,
        compare_strategies,
        known_strategies,
    )

    quiet = quiet or as_json
    if plot is not None:
        check_picture(plot)
    if report is not None:
        check_report(report)
    x, y = _strategy_samples(data, label, missing, reading, quiet=quiet)
    if epsilon <= 0 or learning_rate <= 0:
        raise InvalidParameterError("--epsilon and --learning-rate must be positive.")
    with importing_from_here():
        chosen = known_strategies(split_strategies(strategies) if strategies else None)
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
        else lambda run: print_note(
            f"split {run.split + 1} of {splits}: {run.strategy} {run.accuracy:.3f}"
        ),
    )
    lines = found.lines()
    if as_json:
        print_json(_as_dict(data, x, y, settings, lines))
    else:
        widths = "-".join(map(str, (x.shape[1], *settings.hidden, int(y.max()) + 1)))
        _show_strategies(
            lines, f"{data.name}: {widths}, {count(epochs, 'epoch')}, {count(splits, 'split')}"
        )
    if report is not None:
        facts = [
            ("data", f"{data.name}: {x.shape[0]:,} samples, {x.shape[1]:,} features"),
            ("hidden layers", hidden),
            ("epsilon", f"{epsilon:g}"),
            ("learning rate", f"{learning_rate:g}"),
            ("epochs", f"{epochs:,}"),
            ("splits", f"{splits:,}, a third of the samples held out"),
        ]
        _write_strategy_page(found, lines, report, data.name, facts, quiet=quiet)
    if plot is not None:
        _draw_strategies(found, data.name, plot)
        if not quiet:
            print_note(f"The picture is in {plot}.")


def _strategy_samples(
    data: Path, label: str | None, missing: str, reading: list[str] | None, *, quiet: bool
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    if str(data) == DIGITS and not data.exists() and label is None and not reading:
        from ratoon.experiments.strategies import digits

        return digits()
    samples = read_samples(data, label, missing, quiet=quiet, task="classify", reading=reading)
    samples = without_groups(with_classes(with_labels(samples, data), data), data)
    assert samples.y is not None
    return np.asarray(samples.X.toarray() if samples.is_sparse else samples.X), samples.y


def _as_dict(
    data: Path, x: NDArray[Any], y: NDArray[np.int64], settings: Any, lines: list[StrategyLine]
) -> dict[str, Any]:
    # JSON has no NaN, which the accuracy is if every training diverged.
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
    def text(value: float | None, form: str, factor: float = 1.0) -> str:
        return "" if value is None else format(factor * value, form)

    print_table(
        title,
        ["strategy", "accuracy", "- static", "p", "ms each", "explored", "memory"],
        [
            [
                line.strategy,
                f"{100 * line.accuracy:.1f} ± {100 * line.deviation:.1f}",
                "" if line.gain is None else signed_points(line.gain),
                "" if line.gain is None else p_text(line.p),
                text(line.seconds_per_rewiring, ".3g", 1e3),
                text(line.explored, ".0%"),
                megabytes(line.array_bytes + line.state_bytes),
            ]
            for line in lines
        ],
    )
    print_note("accuracy and - static: in %, mean and standard deviation over the splits.")
    if compared := [line for line in lines if line.gain is not None]:
        note_on_p([line.p for line in compared], compared[0].n_splits)
    print_note("ms each: one rewiring of all layers, with the statistics the strategy needs.")
    print_note("memory: the largest size of the network's arrays and of the strategy's state.")
    for line in lines:
        if line.n_diverged:
            print_note(
                f"{line.strategy}: {line.n_diverged} of {line.n_splits} trainings diverged and are"
                f" excluded; try a smaller --learning-rate."
            )


def _write_strategy_page(
    found: StrategyComparison,
    lines: list[StrategyLine],
    path: Path,
    name: str,
    facts: list[tuple[str, str]],
    *,
    quiet: bool,
) -> None:
    """Write the page of a comparison of strategies."""
    from ratoon.report.comparison import Compared, write_comparison

    methods = [
        Compared(
            line.strategy,
            list(found.accuracies(line.strategy).values()),
            found.interval(line.strategy),
            line.p,
            (
                ""
                if line.seconds_per_rewiring is None
                else f"{1e3 * line.seconds_per_rewiring:.3g}",
                "" if line.explored is None else f"{line.explored:.0%}",
                megabytes(line.array_bytes + line.state_bytes),
                f"{line.n_diverged}",
            ),
            found.gains(line.strategy) if line.gain is not None else (),
        )
        for line in lines
    ]
    write_comparison(
        path,
        methods,
        title=f"Strategies on {name}",
        reference="difference to static",
        columns=("ms per rewiring", "explored", "memory", "diverged"),
        facts=facts,
        notes=(
            "In each split all networks started with the same connections and weights and saw the"
            " same minibatches; only the rewiring differs.",
            "Accuracy after the last epoch on the held-out third: mean and standard deviation over"
            " the splits in which the training did not diverge.",
            CORRECTION,
        ),
        command=command_line(),
    )
    if not quiet:
        print_note(f"The report is in {path}.")


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
            "nothing to draw: the picture shows differences to `static`, which is not among the"
            " strategies or has diverged."
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
    save_picture(display.figure_, path, dpi=120)
    pyplot.close(display.figure_)

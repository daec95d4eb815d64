"""`ratoon compare-strategies`: which way of rewiring suits some data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from ratoon.cli.output import megabytes, print_json, print_table, say
from ratoon.cli.samples import (
    JsonOption,
    LabelOption,
    MissingOption,
    QuietOption,
    labels_of,
    read_samples,
    widths_from,
)
from ratoon.errors import InvalidInputError, InvalidParameterError

if TYPE_CHECKING:
    from ratoon.experiments.strategy_lines import StrategyComparison, StrategyLine

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
    x, y = _samples(data, label, missing, quiet=quiet)
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
        _show(lines, f"{data.name}: {widths}, {epochs} epochs, {splits} splits")
    if plot is not None:
        _draw(found, data.name, plot)
        if not quiet:
            say(f"The picture is in {plot}.")


def _samples(
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


def _show(lines: list[StrategyLine], title: str) -> None:
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


def _draw(found: StrategyComparison, name: str, path: Path) -> None:
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

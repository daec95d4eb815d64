"""`ratoon reproduce`: compute the tables and figures of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ratoon.cli.options import JsonOption, QuietOption
from ratoon.cli.output import check_new_folder, save_picture
from ratoon.cli.terminal import print_json, print_note, print_table
from ratoon.errors import InvalidParameterError
from ratoon.report.style import picture_formats
from ratoon.storage.atomic import write_file

QUICK = {"trials": 1, "epochs": 3}


def reproduce(
    table: Annotated[
        str,
        typer.Argument(
            help="Table: accuracy, curves, confusion, connections, time, extreme, layers, dropout,"
            " no-hidden, rewiring, or all."
        ),
    ],
    sets: Annotated[
        str | None,
        typer.Option(
            "--sets",
            help="Data sets, separated by commas: GSE13159, CLL-SUB-111, SMK-CAN-187, GLI-85.",
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", help="NAME=FILE: the file of a data set. May be repeated."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run one trial of three epochs.")] = False,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Number of trials; 5 in the paper.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Number of epochs; 500 in the paper.")
    ] = None,
    scale: Annotated[
        float,
        typer.Option(min=0.001, max=1.0, help="Size of generated data and networks."),
    ] = 1.0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for tables, pictures and finished trials."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the first trial.")] = 0,
    threads: Annotated[
        int, typer.Option(min=1, help="Number of threads. Does not change results.")
    ] = 1,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", min=-4096, max=4096, help="Number of parallel trials, -1 for one per core."
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compute a table or figure of the paper, next to the published values.

    Real data are used if available (`ratoon data fetch` or --data), generated
    data of the same shape otherwise; the table shows which.  The paper chooses
    the best epoch on the test rows; this accuracy is shown in a column of its
    own, next to the last epoch and the epoch chosen on validation rows.

    With -o finished trials are kept: the same command continues where an
    earlier one was stopped, and tables reuse the trials of other tables.

    For example:

      ratoon reproduce connections

      ratoon reproduce accuracy --sets GLI-85 --quick

      ratoon reproduce accuracy --data GLI-85=GLI_85.mat -o results
    """
    from ratoon.paper.reproduce import TABLES
    from ratoon.paper.reproduce import reproduce as compute
    from ratoon.paper.runs import Effort
    from ratoon.paper.sets import PAPER_SETS
    from ratoon.paper.trial import TrialStore

    quiet = quiet or as_json
    if output is not None:
        check_new_folder(output)
        picture_formats()  # raises without matplotlib
    effort = Effort(
        trials=trials or (QUICK["trials"] if quick else 5),
        epochs=epochs or (QUICK["epochs"] if quick else None),
        seed=seed,
        n_threads=threads,
        n_jobs=jobs,
        scale=scale,
        sets=tuple(PAPER_SETS) if sets is None else tuple(s.strip() for s in sets.split(",")),
        paths=_paths(data or [], tuple(PAPER_SETS)),
        tell=(lambda text: None) if quiet else print_note,
        store=TrialStore(None if output is None else output / "trials"),
    )
    results = {}
    for name in TABLES if table == "all" else [table]:
        found = compute(name, effort)
        results[name] = {"title": found.title, "columns": found.columns, "rows": found.rows}
        results[name]["notes"] = found.notes
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
            write_file(output / f"{name}.md", found.to_markdown().encode("utf-8"))
            draw(found, output / name)
        if not as_json:
            print_table(*found.narrow())
            for note in found.notes:
                print_note(f"- {note}")
    if as_json:
        print_json(results if table == "all" else results[table])
    elif output is not None and not quiet:
        print_note(f"Tables and pictures are in {output}.")


def _paths(given: list[str], known: tuple[str, ...]) -> dict[str, Path]:
    paths = {}
    for entry in given:
        name, separator, file = entry.partition("=")
        if not separator or name not in known:
            raise InvalidParameterError(
                f"--data takes NAME=FILE, with NAME one of {', '.join(known)}; got {entry!r}."
            )
        paths[name] = Path(file)
    return paths


def draw(found: Any, stem: Path) -> list[Path]:
    """Draw the pictures of a table; return the files written."""
    from matplotlib.figure import Figure

    written = []
    for name, size, plot in _pictures(found):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        plot(axes)
        title = f"{found.title}\n{_data_of(found, name)}".rstrip()
        axes.set_title(title, loc="left", fontsize=10, pad=22)
        path = stem.with_name(f"{stem.name}-{name}.png" if name else f"{stem.name}.png")
        save_picture(figure, path, dpi=120)
        written.append(path)
    return written


def _data_of(found: Any, name: str) -> str:
    """Return the data a picture was computed on, so that generated data are recognised."""
    if name in found.kinds:
        kind = found.kinds[name]
        return name if kind == name else f"{name}: {kind}"
    kinds = set(found.kinds.values()) - set(found.kinds)
    return ", ".join(part for part in (name, *sorted(kinds)) if part)


def _pictures(found: Any) -> list[tuple[str, tuple[float, float], Any]]:
    from ratoon.report import (
        ConfusionMatrixDisplay,
        ConnectionCountDisplay,
        LearningCurveDisplay,
    )

    pictures: list[tuple[str, tuple[float, float], Any]] = []
    for name, curves in found.curves.items():
        shown = LearningCurveDisplay(curves, ylabel="test accuracy")
        pictures.append((name, (7.0, 4.6), shown.plot))
    for name, (truth, predicted, names) in found.confusion.items():
        matrix = ConfusionMatrixDisplay.from_predictions(truth, predicted, class_names=names)
        side = 9.0 if len(names) > 8 else 4.6
        pictures.append((name, (max(6.4, side), side), matrix.plot))
    if found.counts:
        size = (6.8, 1.4 + 0.7 * len(found.counts))
        pictures.append(("", size, ConnectionCountDisplay(found.counts).plot))
    if found.seconds:
        n_bars = sum(len(bars) for bars in found.seconds.values())
        pictures.append(
            ("" if not found.curves else "seconds", (6.8, 1.6 + 0.3 * n_bars), _bars(found.seconds))
        )
    return pictures


def _bars(seconds: dict[str, dict[str, float]]) -> Any:
    """Return a function that draws one group of bars per entry, on a logarithmic axis."""
    from ratoon.report.style import CYCLE, tidy

    def plot(axes: Any) -> None:
        names = list(next(iter(seconds.values())))
        places = np.arange(len(seconds))
        height = 0.84 / len(names)
        for number, name in enumerate(names):
            values = [bars[name] for bars in seconds.values()]
            shift = (number - (len(names) - 1) / 2) * height
            drawn = axes.barh(
                places + shift, values, height=0.88 * height, color=CYCLE[number], label=name
            )
            axes.bar_label(drawn, [f"{value:.3g}" for value in values], padding=3, fontsize=8)
        axes.set_xscale("log")
        every = [value for bars in seconds.values() for value in bars.values()]
        axes.set_xlim(min(every) / 3, max(every) * 8)  # space for the numbers
        axes.set_yticks(places, list(seconds))
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("seconds")
        tidy(axes)
        axes.grid(visible=False)
        axes.legend(
            frameon=False, ncols=len(names), fontsize=8, loc="lower right", bbox_to_anchor=(1, 1)
        )

    return plot

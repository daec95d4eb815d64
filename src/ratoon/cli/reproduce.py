"""`ratoon reproduce`: the tables and figures of the paper, computed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ratoon.cli.output import print_json, print_table, say
from ratoon.cli.samples import JsonOption, QuietOption
from ratoon.errors import InvalidParameterError

QUICK = {"trials": 1, "epochs": 3}


def reproduce(
    table: Annotated[
        str,
        typer.Argument(
            help="accuracy, curves, confusion, connections, time, extreme, layers, dropout,"
            " no-hidden, rewiring, or all."
        ),
    ],
    sets: Annotated[
        str | None,
        typer.Option("--sets", help="Only these of GSE13159,CLL-SUB-111,SMK-CAN-187,GLI-85."),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", help="NAME=FILE: where the real file of a set is; may be repeated."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One trial of three epochs.")] = False,
    trials: Annotated[int | None, typer.Option(min=1, help="The paper: 5.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="The paper: 500.")] = None,
    scale: Annotated[
        float,
        typer.Option(min=0.001, max=1.0, help="Shrink generated data and networks."),
    ] = 1.0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder for tables, pictures, and trials already done."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the first trial.")] = 0,
    threads: Annotated[
        int, typer.Option(min=1, help="Of every training; they do not change results.")
    ] = 1,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", help="Trials at the same time, -1 for one per core."),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compute a table or figure of the paper again, its figures beside ours.

    Real data are used where they are at hand (`ratoon data fetch`, or --data);
    elsewhere generated data of the same shape stand in, and the table says so.
    The paper's protocol, which picks the best epoch on the test rows, is shown
    under its own name beside the last and the validation-chosen epoch.

    With -o every trial is kept once it is done: the same command goes on where
    an earlier one was stopped, and tables share the trials they have in common.

    For example:

      ratoon reproduce connections

      ratoon reproduce accuracy --sets GLI-85 --quick

      ratoon reproduce accuracy --data GLI-85=GLI_85.mat -o results
    """
    from ratoon.cli.reproduce_pictures import draw
    from ratoon.paper.reproduce import TABLES
    from ratoon.paper.reproduce import reproduce as compute
    from ratoon.paper.runs import Effort
    from ratoon.paper.sets import PAPER_SETS
    from ratoon.paper.trial import TrialStore

    quiet = quiet or as_json
    effort = Effort(
        trials=trials or (QUICK["trials"] if quick else 5),
        epochs=epochs or (QUICK["epochs"] if quick else None),
        seed=seed,
        n_threads=threads,
        n_jobs=jobs,
        scale=scale,
        sets=tuple(PAPER_SETS) if sets is None else tuple(s.strip() for s in sets.split(",")),
        paths=_paths(data or [], tuple(PAPER_SETS)),
        tell=(lambda text: None) if quiet else say,
        store=TrialStore(None if output is None else output / "trials"),
    )
    results = {}
    for name in TABLES if table == "all" else [table]:
        found = compute(name, effort)
        results[name] = {"title": found.title, "columns": found.columns, "rows": found.rows}
        results[name]["notes"] = found.notes
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
            (output / f"{name}.md").write_text(found.to_markdown(), encoding="utf-8")
            draw(found, output / name)
        if not as_json:
            print_table(found.title, found.columns, found.rows)
            for note in found.notes:
                say(f"- {note}")
    if as_json:
        print_json(results if table == "all" else results[table])
    elif output is not None and not quiet:
        say(f"Tables and pictures are in {output}.")


def _paths(given: list[str], known: tuple[str, ...]) -> dict[str, Path]:
    paths = {}
    for entry in given:
        name, separator, file = entry.partition("=")
        if not separator or name not in known:
            raise InvalidParameterError(
                f"--data takes NAME=FILE with a name of {', '.join(known)}; got {entry!r}."
            )
        paths[name] = Path(file)
    return paths

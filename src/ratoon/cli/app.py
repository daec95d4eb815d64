"""The `ratoon` command and its subcommands."""

from __future__ import annotations

import os
from collections.abc import Callable

import typer
from typer.core import TyperCommand

import ratoon
from ratoon.cli import (
    compare,
    compare_strategies,
    cost,
    data,
    demo,
    enrich,
    explain,
    export,
    inspect,
    predict,
    report,
    reproduce,
    select,
    serve,
    train,
)
from ratoon.cli.logs import warnings_on_one_line
from ratoon.cli.repeat import ARGUMENTS
from ratoon.cli.terminal import (
    FAILED,
    HelpfulGroup,
    error_text,
    flush_results,
    guarded,
    print_error,
    terminal_streams,
    visible_warnings,
)

TRACEBACK = "RATOON_TRACEBACK"
"""Environment variable that shows the traceback of an unexpected error."""

EPILOG = """
Start with [bold]ratoon demo[/bold], then use your own file:

  ratoon data show genes.csv

  ratoon train genes.csv --label outcome -o model.ratoon

  ratoon predict model.ratoon new.csv
"""

CLASSES: dict[Callable[..., None], type[TyperCommand]] = {
    compare_strategies.compare_strategies: compare_strategies.StrategiesCommand
}
"""Commands with a class of their own."""

app = typer.Typer(
    name="ratoon",
    help="Train truly sparse neural networks on the CPU.",
    epilog=EPILOG,
    cls=HelpfulGroup,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
)
COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "Train and predict": (demo.demo, train.train, predict.predict, predict.evaluate),
    "Models and features": (
        report.report,
        inspect.inspect,
        explain.explain,
        enrich.enrich,
        select.select,
    ),
    "Compare": (compare.compare, compare_strategies.compare_strategies, reproduce.reproduce),
    "Deploy a model": (export.export, export.slim, serve.serve),
    "Data and computer": (cost.plan, cost.bench),
}
"""Commands by their heading in the help."""

for heading, commands in COMMANDS.items():
    for command in commands:
        app.command(
            command.__name__.replace("_", "-"),
            cls=CLASSES.get(command),
            rich_help_panel=heading,
        )(guarded(command))
app.add_typer(data.app, name="data", rich_help_panel="Data and computer")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"ratoon {ratoon.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    del version


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0 is success, 1 an error in input, files or parameters, 2 a usage error, 130 Ctrl-C.  A training
    with checkpoints that receives SIGTERM writes one more and ends with 143.  No error ends with a
    traceback, unless RATOON_TRACEBACK is set.
    """
    with terminal_streams(), visible_warnings(), warnings_on_one_line():
        token = ARGUMENTS.set(arguments)
        try:
            app(args=arguments, prog_name="ratoon")
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except OSError as error:  # of help and version: stdout is full or closed
            print_error(error_text(error))
            code = FAILED
        except Exception as error:
            if os.environ.get(TRACEBACK):
                raise
            print_error(
                f"internal error: {type(error).__name__}: {error}\n"
                f"  This is a bug in ratoon. Set the environment variable {TRACEBACK}=1, run the"
                f" command again, and report the traceback."
            )
            code = FAILED
        finally:
            ARGUMENTS.reset(token)
        return code if flush_results() else code or FAILED

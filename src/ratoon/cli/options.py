"""`--read KEY=VALUE`: what Python passes to `ratoon.datasets.read`, on the command line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ratoon.datasets.limits import Limits
from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError

MISSING = ("error", "mean", "median", "zero", "drop", "drop_samples")

TASKS = {"auto": "auto", "classify": "classification", "regress": "regression"}

DataFile = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, .npz, .mat, libsvm, GEO, .h5ad, .parquet, 10x; .npy, .h5 stay on disk"
    ),
]

LabelOption = Annotated[
    str | None, typer.Option("--label", help="Name of the column or variable with the labels.")
]

MissingOption = Annotated[
    str,
    typer.Option(
        "--missing", help="Missing values: error, mean, median, zero, drop or drop_samples."
    ),
]

ReadingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="KEY=VALUE",
        help="How to read the file, as in sample_sheet=sheet.csv or duplicates=keep; may be"
        " repeated.",
    ),
]

QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no remarks.")]

JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs", help="Fits at the same time, -1 for one per core; results do not depend on it."
    ),
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print results as JSON.")]


def widths_from(text: str | None) -> tuple[int, ...] | None:
    """Return hidden widths from text such as ``3000,3000``; ``0`` is no hidden layer.

    Examples
    --------
    >>> widths_from("3000,1000"), widths_from("0"), widths_from(None)
    ((3000, 1000), (), None)
    """
    if text is None:
        return None
    try:
        widths = tuple(int(part) for part in str(text).split(","))
    except ValueError:
        widths = (-1,)
    if widths != (0,) and min(widths) < 1:
        raise InvalidParameterError(
            f"--hidden must be whole numbers with commas between, as in 3000,3000, or 0 for no"
            f" hidden layer; got {text!r}."
        )
    return () if widths == (0,) else widths


def shares_from(text: str | None) -> list[float] | None:
    """Return numbers from text such as ``0.9,0.1``.

    Examples
    --------
    >>> shares_from("0.9,0.1")
    [0.9, 0.1]
    """
    if text is None:
        return None
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        shares = []
    if not shares or not np.isfinite(shares).all() or min(shares) <= 0:
        raise InvalidParameterError(
            f"--shares must be positive numbers with commas between, as in 0.9,0.1; got {text!r}."
        )
    return shares


CoverageOption = Annotated[
    float,
    typer.Option(
        "--min-coverage",
        min=0.0,
        max=1.0,
        help="Share of the model's features that the file must have; the others get their"
        " training mean.",
    ),
]

IdMapOption = Annotated[
    Path | None,
    typer.Option(
        "--id-map", help="File of two columns: a feature's name in the data, its name in the model."
    ),
]


_TRUTH = {"true": True, "false": False}

KEYS = (
    "sample_sheet",
    "orientation",
    "index",
    "ignore",
    "matrix",
    "duplicates",
    "unlabelled",
    "sparse",
    "format",
    "isolated",
)

"""Keys that are not options of their own; `read` says what each may be."""

_LIMIT = "limits."

_LIMITS = tuple(field.name for field in fields(Limits))

_OWN_OPTIONS = ("label", "missing")

_WORDS = ("True", "False")

_PASSED = re.compile(
    rf"\b(?P<key>{'|'.join((*KEYS, *_OWN_OPTIONS, 'limits'))})="
    r"(?P<value>'[^']*'|\([^()]*\)|Limits\(\w+=[\w.]+\)|True|False)?"
)


def reading_options(given: list[str] | None) -> dict[str, Any]:
    """Return the arguments for `read` that stand in ``KEY=VALUE`` texts.

    Examples
    --------
    >>> reading_options(["ignore=age,sex", "sparse=true"])
    {'ignore': ('age', 'sex'), 'sparse': True}
    >>> reading_options(["limits.rows=30000000"])["limits"].rows
    30000000
    """
    options: dict[str, Any] = {}
    limits: dict[str, float] = {}
    for text in given or []:
        key, separator, value = text.partition("=")
        key = key.strip().replace("-", "_")
        if separator and key.removeprefix(_LIMIT) in _LIMITS and key.startswith(_LIMIT):
            limits[key.removeprefix(_LIMIT)] = _number(text, value)
            continue
        if not separator or key not in KEYS:
            raise InvalidParameterError(
                f"--read takes KEY=VALUE with a key of {', '.join(KEYS)}, or {_LIMIT} and one of"
                f" {', '.join(_LIMITS)}; got {text!r}."
            )
        if key == "ignore":
            options[key] = tuple(name.strip() for name in value.split(","))
        else:
            options[key] = _TRUTH.get(value.strip().lower(), value.strip())
    if limits:
        options["limits"] = Limits(**limits)  # type: ignore[arg-type]
    return options


def _number(text: str, value: str) -> float:
    try:
        return float(value) if "." in value else int(value)
    except ValueError:
        raise InvalidParameterError(f"--read {text}: a number is expected.") from None


@contextmanager
def explaining_read() -> Iterator[None]:
    """Add to an error that names an argument of `read` how the command line spells it."""
    try:
        yield
    except (FormatError, InvalidInputError) as error:
        if not (spelt := spelt_for_shell(str(error))):
            raise
        raise type(error)(f"{error}\n  On the command line: {', '.join(spelt)}.") from error


def spelt_for_shell(message: str) -> list[str]:
    """Return the options that do what a message asks to be passed.

    Examples
    --------
    >>> spelt_for_shell("pass label=; or orientation='samples_in_columns', ignore=('a', 'b')")
    ['--label NAME', '--read orientation=samples_in_columns', '--read ignore=a,b']
    >>> spelt_for_shell("pass limits=Limits(rows=20)")
    ['--read limits.rows=20']
    """
    found: dict[str, None] = {}
    # An address or a file name may hold an equals sign as well; keys are the ones known.
    for match in _PASSED.finditer(message):
        key, value = match["key"], match["value"] or ""
        named = re.findall(r"'([^']*)'", value)
        if key in _OWN_OPTIONS:
            found[f"--{key} {named[0] if named else 'NAME'}"] = None
        elif key == "limits":
            found[f"--read {_LIMIT}{value.removeprefix('Limits(').rstrip(')')}"] = None
        else:
            text = ",".join(named) or (value if value in _WORDS else "NAME")
            found[f"--read {key}={text}"] = None
    return list(found)


def use_config(context: typer.Context, value: Path | None) -> Any:
    """Take a command's defaults from a file; flags on the command line win.

    Keys may be written as the flags are, with dashes or underscores: ``batch-size = 5`` under
    ``[train]`` is ``--batch-size 5``.  Tables of other commands may stand beside it.
    """
    if value is None:
        return value
    try:
        document = tomllib.loads(value.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{value}: not a TOML file: {error}.") from None
    command = context.command
    top = {key: entry for key, entry in document.items() if not isinstance(entry, dict)}
    table = document.get(command.name or "", top)
    if not isinstance(table, dict):
        raise typer.BadParameter(f"{value}: [{command.name}] must be a table.")
    names = _names(command)
    several = {one.name for one in command.params if getattr(one, "multiple", False)}
    defaults = {}
    for key, entry in table.items():
        name = names.get(key.replace("-", "_"))
        if name is None:
            meant = get_close_matches(key.replace("-", "_"), names, n=1)
            hint = f"did you mean `{meant[0]}`?" if meant else f"known: {', '.join(sorted(names))}."
            raise typer.BadParameter(
                f"{value}: `{key}` is not an option of `{command.name}`; {hint}"
            )
        if isinstance(entry, list) and name not in several:
            entry = ",".join(str(item) for item in entry)
        defaults[name] = entry
    context.default_map = {**(context.default_map or {}), **defaults}
    return value


def _names(command: Any) -> dict[str, str]:
    """Map every way an option may be spelt to the name of its parameter."""
    names = {}
    for parameter in command.params:
        if not parameter.name or parameter.name in ("config", "help"):
            continue
        names[parameter.name] = parameter.name
        for flag in parameter.opts:
            if flag.startswith("--"):
                names[flag.removeprefix("--").replace("-", "_")] = parameter.name
    return names

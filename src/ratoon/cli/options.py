"""Options that several commands share, and the translation of Python arguments to options."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ratoon.cli.terminal import visible_name
from ratoon.datasets import Limits
from ratoon.errors import InvalidInputError, InvalidParameterError, RatoonError, near
from ratoon.nesting import parse_toml
from ratoon.preparation import LOG2, NORMALIZE, Prepare, as_prepare

MISSING = ("error", "mean", "median", "zero", "drop", "drop_samples")
TASKS = {"auto": "auto", "classify": "classification", "regress": "regression"}

DataFile = Annotated[
    Path,
    typer.Argument(
        help="Data file: .csv, .tsv, .npz, .mat, libsvm, GEO, .h5ad, .parquet, 10x or IDX, or a"
        " folder of images; - for CSV from stdin. Samples of .npy and .h5 files stay on disk.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path, typer.Argument(help="Model file, as written by `ratoon train`.", show_default=False)
]
LabelOption = Annotated[
    str | None, typer.Option("--label", help="Name of the column or array with the labels.")
]
TaskOption = Annotated[
    str,
    typer.Option(
        "--task",
        help="classify, regress or auto: text and whole numbers are classes, fractions are"
        " regressed.",
    ),
]
MissingOption = Annotated[
    str,
    typer.Option(
        "--missing",
        help="How to treat missing values: error, mean, median, zero, drop (features) or"
        " drop_samples.",
    ),
]
ReadingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="KEY=VALUE",
        help="Argument for the reader, such as sample_sheet=sheet.csv or duplicates=keep. May be"
        " repeated.",
    ),
]
GroupOption = Annotated[
    str | None,
    typer.Option(
        "--group",
        help="Column with the group of each sample, such as its patient or batch. Samples of a"
        " group stay together in every split.",
    ),
]
TimeOption = Annotated[
    str | None,
    typer.Option("--time", help="Survival: column with the time until the event or censoring."),
]
EventOption = Annotated[
    str | None,
    typer.Option(
        "--event",
        help="Survival: column with 1, dead, ... for an event, 0, alive, ... if censored.",
    ),
]
DuplicatesOption = Annotated[
    str | None,
    typer.Option(
        "--duplicates",
        help="Several features of one name become one: mean, max or first; keep or error.",
    ),
]
PrepareLog2Option = Annotated[
    str,
    typer.Option(
        "--log2",
        help="Take log2(max(v, 0) + 1): yes, no, or auto if the values look like intensities or"
        " counts.",
    ),
]
NormalizeOption = Annotated[
    str, typer.Option("--normalize", help="quantile: give all samples the same distribution.")
]
CenterOption = Annotated[
    bool,
    typer.Option("--center-groups", help="With --group: remove differences between group means."),
]
TrainingIdMapOption = Annotated[
    Path | None,
    typer.Option(
        "--id-map",
        help="File with two columns: a name in the data, such as a probe, and the feature, such as"
        " a gene.",
        exists=True,
        dir_okay=False,
    ),
]
CoverageOption = Annotated[
    float,
    typer.Option(
        "--min-coverage",
        min=0.0,
        max=1.0,
        help="Smallest fraction of the model's features that the file must have. Missing features"
        " get their mean in the training samples.",
    ),
]
IdMapOption = Annotated[
    Path | None,
    typer.Option(
        "--id-map",
        help="File with two columns: the name of a feature in the data and in the model.",
    ),
]
FormulaOption = Annotated[
    bool,
    typer.Option(
        "--escape-formulas/--no-escape-formulas",
        help="Write ' in front of names in CSV that a spreadsheet would take for a formula.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notes.")]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        min=-4096,
        max=4096,
        help="Number of parallel fits, -1 for one per core. Does not change results.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]


# ------------------------------------------------------------------------------- lists of numbers


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
            f"--hidden must be whole numbers separated by commas, such as 3000,3000, or 0 for no"
            f" hidden layer; got {text!r}."
        )
    return () if widths == (0,) else widths


def fractions_from(text: str | None) -> list[float] | None:
    """Return the class fractions in text such as ``0.9,0.1``.

    Examples
    --------
    >>> fractions_from("0.9,0.1")
    [0.9, 0.1]
    """
    if text is None:
        return None
    try:
        fractions = [float(part) for part in text.split(",")]
    except ValueError:
        fractions = []
    if not fractions or not np.isfinite(fractions).all() or min(fractions) <= 0:
        raise InvalidParameterError(
            f"--shares must be positive numbers separated by commas, such as 0.9,0.1; got {text!r}."
        )
    return fractions


def times_from(text: str | None) -> list[float]:
    """Return the times in text such as ``12,24``.

    Examples
    --------
    >>> times_from("12,24"), times_from(None)
    ([12.0, 24.0], [])
    """
    if text is None:
        return []
    try:
        times = [float(part) for part in text.split(",")]
    except ValueError:
        times = []
    if not times or not np.isfinite(times).all() or min(times) < 0:
        raise InvalidParameterError(
            f"--survival-at must be times separated by commas, such as 12,24; got {text!r}."
        )
    return times


# ------------------------------------------------------------------------------------ strategies


@contextmanager
def importing_from_here() -> Iterator[None]:
    """Let classes in the current folder be imported, after all installed packages."""
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)


def evolution_from(text: str | None) -> Any:
    """Return the value of `evolution`: a name, or the object in a text such as ``rigl(every=20)``.

    Examples
    --------
    >>> evolution_from("rigl")
    'rigl'
    >>> evolution_from("ratoon.evolution.rigl:RigL(every=20)").every
    20
    """
    if text is None or not (":" in text or "(" in text):
        return text
    from ratoon.evolution import strategy_from_text

    with importing_from_here():
        return strategy_from_text(text)


# ----------------------------------------------------------------------------------------- --read

KEYS = (
    "sample_sheet",
    "orientation",
    "index",
    "ignore",
    "matrix",
    "duplicates",
    "duplicate_features",
    "id_map",
    "group",
    "time",
    "event",
    "unlabelled",
    "sparse",
    "delimiter",
    "decimal",
    "size",
    "color",
    "format",
    "isolated",
)
"""Arguments of `ratoon.datasets.read` that have no option of their own."""

ON_DISK = "on_disk"
"""Key of --read for files that may stay on disk; true, false or auto."""


def with_columns(
    reading: list[str] | None,
    *,
    group: str | None = None,
    time: str | None = None,
    event: str | None = None,
    duplicates: str | None = None,
    id_map: Path | None = None,
) -> list[str]:
    """Return the arguments of --read with those that have options of their own.

    Examples
    --------
    >>> with_columns(["sparse=true"], group="patient", duplicates="mean")
    ['sparse=true', 'group=patient', 'duplicate_features=mean']
    """
    if (time is None) != (event is None):
        raise InvalidParameterError("--time and --event are given together or not at all.")
    named = {
        "group": group,
        "time": time,
        "event": event,
        "duplicate_features": duplicates,
        "id_map": id_map,
    }
    return [*(reading or []), *(f"{key}={value}" for key, value in named.items() if value)]


def prepare_from(log2: str, normalize: str, *, center: bool, group: str | None) -> Any:
    """Return how the options ask to prepare samples, or None.

    Examples
    --------
    >>> prepare_from("auto", "quantile", center=False, group=None)
    Prepare(log2='auto', normalize='quantile', center_groups=False)
    """
    for name, value, choices in (("--log2", log2, LOG2), ("--normalize", normalize, NORMALIZE)):
        if value not in choices:
            raise InvalidParameterError(
                f"{name} must be one of {', '.join(choices)}; got {value!r}.{near(value, choices)}"
            )
    if center and group is None:
        raise InvalidParameterError("--center-groups needs the groups: --group COLUMN.")
    return as_prepare(Prepare(log2, normalize, center))


_TRUTH = {"true": True, "false": False}
_LIMIT = "limits."
_LIMITS = tuple(field.name for field in fields(Limits))


def reading_options(given: list[str] | None) -> dict[str, Any]:
    """Return the arguments for `ratoon.datasets.read` from texts such as ``KEY=VALUE``.

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
        if separator and key.startswith(_LIMIT) and key.removeprefix(_LIMIT) in _LIMITS:
            limits[key.removeprefix(_LIMIT)] = _number(text, value)
            continue
        if not separator or key not in (*KEYS, ON_DISK):
            raise InvalidParameterError(
                f"--read takes KEY=VALUE; got {text!r}.{near(key, (*KEYS, ON_DISK))}\n"
                f"  Keys: {', '.join((*KEYS, ON_DISK))}.\n"
                f"  Limits: {', '.join(f'{_LIMIT}{name}' for name in _LIMITS)}."
            )
        if key == "ignore":
            options[key] = tuple(name.strip() for name in value.split(","))
        else:
            options[key] = _TRUTH.get(value.strip().lower(), value.strip())
    if options.get(ON_DISK, "auto") not in (True, False, "auto"):
        raise InvalidParameterError(
            f"--read {ON_DISK} must be true, false or auto; got {options[ON_DISK]!r}."
        )
    if limits:
        options["limits"] = Limits(**limits)  # type: ignore[arg-type]
    return options


def _number(text: str, value: str) -> float:
    try:
        return float(value) if "." in value else int(value)
    except ValueError:
        raise InvalidParameterError(f"--read {text}: the value must be a number.") from None


# ------------------------------------------------------------------- from Python to the shell

_OPTION_OF = {
    "hidden_layer_sizes": "--hidden",
    "max_iter": "--epochs",
    "learning_rate_init": "--learning-rate",
    "random_state": "--seed",
    "n_jobs": "--threads",
    "n_repeats": "--repeats",
    "n_features_to_select": "-k",
    "topology": "--groups",
    "callbacks": "--checkpoint/--distributed",
    "prepare": "the preparation (--log2, --normalize, --center-groups)",
    "duplicate_features": "--duplicates",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            "preset",
            "epsilon",
            "density",
            "evolution",
            "zeta",
            "dropout",
            "batch_size",
            "momentum",
            "augment",
            "class_weight",
            "early_stopping",
            "min_coverage",
            "id_map",
        )
    },
}
_OWN_OPTIONS = {
    "duplicate_features": "--duplicates",
    "id_map": "--id-map",
    **{name: f"--{name}" for name in ("group", "time", "event")},
}
_TASK_OF = {task: name for name, task in TASKS.items()}
_ESTIMATOR = re.compile(r"^(?:Sparse\w+: |BaseSparse\w+: |read: (?=`duplicate_f))")
_OR_NONE = re.compile(r"\b(must be(?: one of)?) None, ")
_PARAMETER = re.compile(rf"`({'|'.join(_OPTION_OF)})(?:=([^`\s]+))?`")
# A path may contain an equals sign as well: only a whole word counts.
_ARGUMENT = re.compile(
    rf"(?<![\w/.\\=-])(?P<key>{'|'.join((*KEYS, 'label', 'missing', 'task', 'limits'))})="
    r"(?P<value>'[^']*'|\([^()]*\)|Limits\(\w+=[\w.]+\)|True|False|(?=[\s.,;)]|$))"
)


def in_shell_words(message: str) -> str:
    """Return a message about Python arguments in terms of the command's options.

    Examples
    --------
    >>> in_shell_words("pass label=, or ignore=('a', 'b')")
    'pass --label NAME, or --read ignore=a,b'
    >>> in_shell_words("pass limits=Limits(rows=20) or missing='mean'")
    'pass --read limits.rows=20 or --missing mean'
    >>> in_shell_words("SparseMLPClassifier: `max_iter` must be at least 1")
    '--epochs must be at least 1'
    """

    def option(match: re.Match[str]) -> str:
        name, value = _OPTION_OF[match[1]], match[2]
        return name if value is None else f"{name} {value}".replace('"', "")

    def argument(match: re.Match[str]) -> str:
        key, value = match["key"], match["value"]
        named = re.findall(r"'([^']*)'", value)
        if key == "task":
            return f"--task {_TASK_OF.get(named[0], named[0]) if named else 'TASK'}"
        if key in _OWN_OPTIONS:
            return f"{_OWN_OPTIONS[key]} {named[0] if named else 'NAME'}"
        if key in ("label", "missing"):
            return f"--{key} {named[0] if named else 'NAME'}"
        if key == "limits":
            return f"--read {_LIMIT}{value.removeprefix('Limits(').rstrip(')')}"
        text = ",".join(named) or (value.lower() if value in ("True", "False") else "NAME")
        return f"--read {key}={text}"

    message = _PARAMETER.sub(option, _ESTIMATOR.sub("", message))
    message = _OR_NONE.sub(r"\1 ", message)  # None is an option that is left out
    return _ARGUMENT.sub(argument, message)


@contextmanager
def shell_words() -> Iterator[None]:
    """Reword the errors raised inside the block in terms of the command's options."""
    try:
        yield
    except RatoonError as error:
        reworded = in_shell_words(str(error))
        if reworded == str(error):
            raise
        raise type(error)(reworded) from error


@contextmanager
def input_errors() -> Iterator[None]:
    """Reword errors, and treat a ``ValueError`` of scikit-learn about samples as an input error."""
    with shell_words():
        try:
            yield
        except RatoonError:
            raise
        except ValueError as error:
            raise InvalidInputError(str(error)) from None


# --------------------------------------------------------------------------- configuration files

LARGEST_CONFIG = 2**20
"""Most bytes of a configuration file; a device may never end."""


def use_config(context: typer.Context, value: Path | None) -> Any:
    """Take a command's defaults from a TOML file; options on the command line win.

    Keys are spelled like the options, with dashes or underscores: ``batch-size = 5`` under
    ``[train]`` is ``--batch-size 5``.  Tables of other commands are skipped.
    """
    if value is None:
        return value
    try:
        with value.open("rb") as file:
            raw = file.read(LARGEST_CONFIG + 1)
        if len(raw) > LARGEST_CONFIG:
            raise ValueError(f"it has more than {LARGEST_CONFIG:,} bytes")
        document = parse_toml(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{value}: not a TOML file: {error}.") from None
    if not _is_printable(document):
        # A usage error would print them, and a path cannot hold all of them.
        raise typer.BadParameter(f"{value}: a key or text has control characters; remove them.")
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
            hint = near(key.replace("-", "_"), names) or f" Known: {', '.join(sorted(names))}."
            raise typer.BadParameter(
                f"{value}: `{key}` is not an option of `{command.name}`.{hint}"
            )
        if isinstance(entry, list) and name not in several:
            entry = ",".join(str(item) for item in entry)
        defaults[name] = entry
    context.default_map = {**(context.default_map or {}), **defaults}
    return value


def _is_printable(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_printable(part) for pair in value.items() for part in pair)
    if isinstance(value, list):
        return all(_is_printable(part) for part in value)
    return not isinstance(value, str) or visible_name(value) == value


def _names(command: Any) -> dict[str, str]:
    """Map every spelling of an option to the name of its parameter."""
    names = {}
    for parameter in command.params:
        if not parameter.name or parameter.name in ("config", "help"):
            continue
        names[parameter.name] = parameter.name
        for flag in parameter.opts:
            if flag.startswith("--"):
                names[flag.removeprefix("--").replace("-", "_")] = parameter.name
    return names

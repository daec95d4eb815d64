"""Data files and model files as the commands use them."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.cli.options import (
    MISSING,
    ON_DISK,
    TASKS,
    in_shell_words,
    reading_options,
    shell_words,
)
from ratoon.cli.terminal import count, print_note, print_text
from ratoon.datasets import (
    Dataset,
    Limits,
    Naming,
    can_stay_on_disk,
    open_stored,
    read,
    read_groups,
    treat_missing,
)
from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError, near

# ----------------------------------------------------------------------------------- data files


def read_samples(
    path: Path,
    label: str | None,
    missing: str,
    *,
    quiet: bool,
    task: str = "auto",
    reading: list[str] | None = None,
    model: Any = None,
    needs_labels: bool = False,
) -> Dataset:
    """Read a data file and print what the reader decided.

    Columns that were labels, groups or ignored when ``model`` was trained are not taken for
    features; labels and groups are read from them where needed.
    """
    if missing not in MISSING:
        raise InvalidParameterError(
            f"--missing must be one of {', '.join(MISSING)}; got {missing!r}."
            f"{near(missing, MISSING)}"
        )
    if task not in TASKS:
        raise InvalidParameterError(
            f"--task must be one of {', '.join(TASKS)}; got {task!r}.{near(task, TASKS)}"
        )
    path, label = known_file(path, label)
    options = reading_options(reading)
    if missing == "error" and model is not None:
        missing = "keep"  # `matched` fills in the values of training, or raises
    on_disk = options.pop(ON_DISK, "auto")
    name = "stdin" if path == STDIN else path.name
    given = {label, *options.values()}
    with shell_words(), from_stdin(path, options) as path, _hint_of_sheet(options, given, model):
        stays_on_disk = can_stay_on_disk(path, on_disk=on_disk)
        label = _use_columns_of(model, label, options, needs_labels, may_ignore=not stays_on_disk)
        if stays_on_disk:
            data = _open_on_disk(path, label, missing, task, options)
        else:
            data = read(
                path,
                label=label,
                missing=missing,  # type: ignore[arg-type]
                task=TASKS[task],  # type: ignore[arg-type]
                **options,
            )
    if not quiet:
        for note in data.notes:
            if model is not None and not needs_labels and note.startswith("no labels found"):
                continue
            print_note(f"{name}: {in_shell_words(note)}")
    return data


@contextmanager
def _hint_of_sheet(options: dict[str, Any], given: set[Any], model: Any) -> Iterator[None]:
    """Add to errors about a column that the model remembers where such a column may be."""
    try:
        yield
    except InvalidInputError as error:
        naming: Naming | None = getattr(model, "naming_", None)
        if naming is None or "sample_sheet" in options:
            raise
        names = (naming.label, naming.time, naming.event, options.get("group"))
        remembered = [name for name in names if name and name not in given]
        is_about = [name for name in remembered if repr(name) in str(error)]
        if "does not apply" in str(error):
            is_about = remembered[:1]
        if not is_about:
            raise
        raise InvalidInputError(
            f"{str(error).rstrip()}\n  The model was trained with {is_about[0]!r}. If it is in a"
            f" sample sheet, pass sample_sheet= as in training."
        ) from None


def _use_columns_of(
    model: Any, label: str | None, options: dict[str, Any], needs_labels: bool, *, may_ignore: bool
) -> str | None:
    """Add the columns of the training file to the options of the reader; return the label."""
    naming: Naming | None = getattr(model, "naming_", None)
    preparation = getattr(model, "preparation_", None)
    if preparation is not None and preparation.centres and preparation.group_column:
        options.setdefault("group", preparation.group_column)
    if naming is None:
        return label
    if needs_labels and label is None and "time" not in options:
        label = naming.label or None
        if naming.time and naming.event:
            options.update(time=naming.time, event=naming.event)
    elif not needs_labels and label is None and "sample_sheet" in options:
        label = options.get("group") or naming.label or None  # any column: labels are not used
    if may_ignore:
        used = {label, *(options.get(name) for name in ("group", "time", "event"))}
        unused = [name for name in naming.columns if name not in used]
        given = options.get("ignore", ())
        if unused:
            options["ignore"] = (*((given,) if isinstance(given, str) else given), *unused)
    return label


STDIN = Path("-")
_BY_MAGIC = {b"\x1f\x8b": ".csv.gz", b"PK": ".npz", b"PAR1": ".parquet"}


@contextmanager
def from_stdin(path: Path, options: dict[str, Any]) -> Iterator[Path]:
    """Copy stdin to a temporary file if the path is ``-``; the format is CSV unless it is known."""
    if path != STDIN:
        yield path
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise InvalidInputError("- reads the samples from stdin, which is a terminal.")
    limits = options.get("limits") or Limits()
    with tempfile.TemporaryDirectory(prefix="ratoon-") as folder:
        first = sys.stdin.buffer.read(2**20)
        kinds = (suffix for magic, suffix in _BY_MAGIC.items() if first.startswith(magic))
        copy = Path(folder) / f"stdin{next(kinds, '.csv')}"
        left = limits.file_bytes
        with copy.open("wb") as file:
            while first:
                left -= len(first)
                if left < 0:
                    raise InvalidInputError(
                        f"stdin: more than {limits.file_bytes:,} bytes.\n"
                        f"  Raise the limit with --read limits.file_bytes=..."
                    )
                file.write(first)
                first = sys.stdin.buffer.read(2**20)
        yield copy


def _open_on_disk(
    path: Path, label: str | None, missing: str, task: str, options: dict[str, Any]
) -> Dataset:
    if missing not in ("error", "keep"):
        raise InvalidParameterError(
            f"--missing {missing} needs all samples in memory, and the samples of {path.name} stay"
            f" on disk.\n  Fill in the missing values in the file itself."
        )
    known = {name: options.pop(name, None) for name in ("matrix", "group", "time", "event")}
    refuse_on_disk(options, path)
    return open_stored(
        path,
        label=label,
        **known,
        task=TASKS[task],  # type: ignore[arg-type]
    )


def known_file(path: Path, label: str | None) -> tuple[Path, str | None]:
    """Return the file of a public data set that was downloaded, where a path is its name.

    The label is that of the registry, unless another is given.

    Raises
    ------
    InvalidInputError
        If the name is known and its file is not here.
    """
    from ratoon.datasets.public.fetch import DownloadError, fetch, known_or_geo

    name = str(path)
    if path == STDIN or path.exists() or path.suffix or path.parent != Path():
        return path, label
    try:
        entry = known_or_geo(name)
    except InvalidParameterError as error:
        hint = str(error).split("?")[0].rpartition("Did you mean ")[2]
        other = f" Did you mean the data set {hint}?" if "Did you mean" in str(error) else ""
        raise InvalidInputError(f"{path}: no such file.{_files_like(path)}{other}") from None
    try:
        found = fetch(entry, offline=True)
    except DownloadError:
        raise InvalidInputError(
            f"{name} is a public data set that is not on this computer.\n"
            f"  Download it first: ratoon data fetch {name}"
        ) from None
    return found, label or entry.options.get("label")


def _files_like(path: Path) -> str:
    names = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    return near(path.name, names)


def refuse_on_disk(options: dict[str, Any], path: Path) -> None:
    """Raise if there are arguments for the reader of a file whose samples stay on disk."""
    if options:
        raise InvalidParameterError(
            f"--read {next(iter(options))} does not work with {path.name}, whose samples stay on"
            f" disk.\n"
            f"  Leave it out, or read the whole file into memory with --read {ON_DISK}=false."
        )


def with_labels(data: Dataset, path: Path) -> Dataset:
    """Return the data if it has labels; raise otherwise."""
    if data.y is None:
        raise InvalidInputError(
            f"{path}: no labels found.\n"
            f"  Name their column or array with --label NAME; `ratoon data show {path.name}` lists"
            f" what the file contains."
        )
    return data


def without_groups(data: Dataset, path: Path) -> Dataset:
    """Return the data if it has no groups; raise otherwise, where splits would not keep them."""
    if data.groups is not None:
        column = data.group_column or "GROUPS"
        raise InvalidInputError(
            f"{path}: this command splits samples at random and does not keep groups together.\n"
            f"  Leave the column out of the features with --read ignore={column}."
        )
    return data


def with_classes(data: Dataset, path: Path) -> Dataset:
    """Return the data if it has at least two classes; raise otherwise."""
    if data.class_names is None or data.n_classes < 2:
        raise InvalidInputError(f"{path}: at least two classes are needed to compare methods.")
    return data


def split(samples: Dataset, fraction: float, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return training rows and held-out rows, with the same class frequencies in both."""
    from ratoon.experiments import split_rows

    assert samples.y is not None
    y = samples.y["event"].astype(np.int64) if samples.is_survival else samples.y
    is_stratified = samples.class_names is not None or samples.is_survival
    return split_rows(y, fraction, seed, stratify=is_stratified, groups=samples.groups)


# ---------------------------------------------------------------------------------- estimators


def load_model(path: Path) -> Any:
    """Return the estimator in a model file."""
    import ratoon
    from ratoon.cli.split import load_split

    try:
        return load_split(path) if path.is_dir() else ratoon.load(path)
    except FormatError as error:
        raise FormatError(
            f"{error}\n  Expected a model file, as written by `ratoon train ... -o MODEL`."
        ) from None


def task_of(estimator: Any) -> str:
    """Return the ``--task`` a fitted estimator was trained for."""
    return "classify" if hasattr(estimator, "classes_") else "regress"


def score_name(estimator: Any) -> str:
    """Return what the score of an estimator is called."""
    if hasattr(estimator, "event_times_"):
        return "concordance (Harrell's C)"
    return "accuracy" if hasattr(estimator, "classes_") else "R squared"


def how_it_was_fitted(estimator: Any) -> str:
    """Return in words how an estimator was fitted, and how long it took."""
    from ratoon.history import duration

    history = estimator.history_
    times = (history.column("train_seconds"), history.column("rewire_seconds"))
    seconds = duration(float(np.sum(times)))
    if estimator.solver_ == "closed form":
        return f"solved in closed form in {seconds}"
    return f"trained for {count(len(history), 'epoch')} in {seconds}"


def print_preparation(estimator: Any) -> None:
    """Print how samples are prepared, if `prepare` was set."""
    if estimator.settings_.prepare is None:
        return
    done = [] if estimator.preparation_ is None else estimator.preparation_.describe()
    if estimator.settings_.prepare.log2 == "auto" and not estimator.preparation_.log2:
        done = ["no logarithms (the values look like logarithms already)", *done]
    print_text(f"prepared: {', then '.join(done)}")


def matched(
    estimator: Any,
    data: Dataset,
    path: Path,
    *,
    min_coverage: float,
    id_map: Path | None,
    quiet: bool,
) -> Dataset:
    """Return the samples with the features the estimator was trained on, in that order.

    Features are matched by name if both the model and the data have names, and by position
    otherwise.  What was missing, ignored or reordered is printed.
    """
    from ratoon.estimators.names import align_samples, filling, with_filled

    can_fill = estimator.naming_ is not None and estimator.naming_.fill is not None
    if not quiet and can_fill and (n_missing := _n_missing(data)):
        print_note(f"{path.name}: filled {n_missing:,} missing values as in training")
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and data.feature_names is not None:
        given = replace(data, source=str(path))  # errors name the file as the user did
        with shell_words():
            aligned, how = align_samples(estimator, given, id_map=id_map, min_coverage=min_coverage)
        if not (quiet or how.is_exact):
            text = f"{how}; {filling(estimator)}" if how.missing else str(how)
            print_note(f"{path.name}: {text}.")
        return _without_missing(aligned)
    if id_map is not None:
        which = "the model" if known is None else str(path)
        raise InvalidInputError(f"--id-map needs feature names, and {which} has none.")
    if data.n_features != estimator.n_features_in_:
        raise InvalidInputError(
            f"{path}: {data.n_features} features; the model was trained on"
            f" {estimator.n_features_in_}."
        )
    data = _without_missing(with_filled(data, estimator.naming_))
    return data if known is None else replace(data, feature_names=tuple(map(str, known)))


def _without_missing(data: Dataset) -> Dataset:
    """Return the data; raise if values are missing that training did not fill in."""
    if _n_missing(data):
        with shell_words():
            return treat_missing(data)
    return data


def _n_missing(data: Dataset) -> int:
    values = data.X.data if data.is_sparse else data.X
    in_memory = isinstance(values, np.ndarray) and values.dtype.kind == "f"
    return int(np.isnan(values).sum()) if in_memory else 0


# ----------------------------------------------------------------------------- prior knowledge


def topology_from_groups(
    samples: Dataset,
    file: Path | None,
    hidden: tuple[int, ...] | None,
    *,
    within: bool,
    quiet: bool,
) -> list[Any] | None:
    """Return the ``topology`` of an estimator with one hidden neuron per group of features.

    If the first hidden layer is wider than the number of groups, its other neurons start
    unconnected.
    """
    if file is None:
        if within:
            raise InvalidParameterError("--within needs a file with groups: --groups FILE.")
        return None
    if samples.feature_names is None:
        raise InvalidInputError(
            f"--groups {file} names features, and the features of the data have no names.\n"
            f"  Use a format with names, such as CSV with a header, h5ad or a series matrix."
        )
    groups = read_groups(file, samples.feature_names)
    n_groups = len(groups.names)
    extra = 0 if hidden is None else hidden[0] - n_groups if hidden else -n_groups
    if extra < 0 or (within and extra > 0):
        raise InvalidParameterError(
            f"--groups {file} has {n_groups} groups with members among the features, and each is a"
            f" neuron of the first hidden layer; --hidden starts with {hidden[0] if hidden else 0}."
            f"\n  Omit --hidden, or start it with {n_groups}"
            + (
                ": with --within a neuron without a group could have no connection."
                if within
                else " or more: further neurons start unconnected."
            )
        )
    if not quiet:
        unknown = f"; {groups.n_unknown:,} members are not features" if groups.n_unknown else ""
        print_note(f"{file}: {groups!r}{unknown}")
    return groups.within() if within else groups.topology(extra)

"""`read`: read a data file of any supported format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ratoon.datasets.align import read_id_map
from ratoon.datasets.arrays import as_matrix, sparse_if_mostly_zero
from ratoon.datasets.collapse import Duplicates, collapse
from ratoon.datasets.dataset import Dataset, Naming
from ratoon.datasets.files import Limits, survey
from ratoon.datasets.formats.images import find_images, survey_images
from ratoon.datasets.formats.registry import READERS, format_of
from ratoon.datasets.formats.tenx import survey_tenx
from ratoon.datasets.isolation import Isolation, read_isolated
from ratoon.datasets.missing import Missing, treat_missing
from ratoon.datasets.options import Orientation, Parsed, ReadOptions
from ratoon.datasets.tables.labels import Task, encode_labels, is_missing_label
from ratoon.datasets.tables.orientation import repeated
from ratoon.datasets.tables.sample_sheet import (
    cells_of,
    join_sample_sheet,
    read_cls,
    read_sample_sheet,
)
from ratoon.datasets.tables.survival import survival_from
from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError, near

_CHOICES: dict[str, tuple[object, ...]] = {
    "orientation": ("auto", "samples_in_rows", "samples_in_columns"),
    "task": ("auto", "classification", "regression"),
    "missing": ("error", "mean", "median", "zero", "drop", "drop_samples", "keep"),
    "unlabelled": ("error", "drop"),
    "duplicates": ("error", "keep"),
    "duplicate_features": get_args(Duplicates),
    "sparse": ("auto", True, False),
    "dtype": ("float32", "float64"),
    "decimal": ("auto", ".", ","),
    "color": ("auto", "gray", "rgb"),
}
MOST_COLUMNS = 100
"""Ignored columns that a model keeps, to ignore them in other files."""

_TABLES = ("csv", "excel", "arff", "parquet")
"""Formats whose reader returns columns itself."""

_DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "bar": "|"}


def read(
    path: str | os.PathLike[str],
    *,
    label: str | int | None = None,
    sample_sheet: str | os.PathLike[str] | None = None,
    matrix: str | None = None,
    index: str | None = None,
    ignore: Sequence[str] = (),
    orientation: Orientation = "auto",
    task: Task = "auto",
    missing: Missing = "error",
    unlabelled: Literal["error", "drop"] = "error",
    duplicates: Literal["error", "keep"] = "error",
    duplicate_features: Duplicates = "keep",
    id_map: str | os.PathLike[str] | None = None,
    group: str | None = None,
    time: str | None = None,
    event: str | None = None,
    sparse: bool | Literal["auto"] = "auto",
    dtype: str = "float32",
    delimiter: str | None = None,
    decimal: Literal["auto", ".", ","] = "auto",
    size: str | Sequence[int] | None = None,
    color: Literal["auto", "gray", "rgb"] = "auto",
    format: str = "auto",
    limits: Limits | None = None,
    isolated: bool | Isolation = False,
) -> Dataset:
    r"""Read a data file of any supported format.

    Parameters
    ----------
    path : path
        A table (``.csv``, ``.tsv``, ``.txt``, ``.gct``), a GEO series matrix or SOFT file, ARFF,
        libsvm, Matrix Market (each of these also gzipped), ``.xlsx``, ``.npz``, ``.mat``,
        ``.h5ad``, ``.parquet``, ``.rds``, ``.RData``, a 10x ``.h5`` file, a 10x folder, an IDX
        file of images, or a folder with one folder of images per class.
    label : str or int, optional
        Column, row, array or field with the labels.  By default one named ``y``, ``label``,
        ``class``, ``target``, ... is used; the notes of the result name it.
    sample_sheet : path, optional
        Table with one row per sample and the sample names in the first column; ``label`` is then
        one of its other columns.  Or a Broad ``.cls`` file with one label per sample.
    matrix : str, optional
        Array (``.npz``, ``.mat``, R) or layer (``.h5ad``) with the data, if it is not ``X``; or
        the sheet of a workbook, if it is not the first.
    index : str, optional
        Column with the sample names, if it is not the first or contains numbers.
    ignore : sequence of str
        Columns or rows to ignore.
    orientation : {"auto", "samples_in_rows", "samples_in_columns"}
        Orientation of a table; with "auto" the notes of the result give it and the reason.
    task : {"auto", "classification", "regression"}
        Whether labels are classes or a continuous target.
    missing : {"error", "mean", "median", "zero", "drop", "drop_samples", "keep"}
        What to do with missing values: see `treat_missing`.
    unlabelled : {"error", "drop"}
        What to do with samples without a label.
    duplicates : {"error", "keep"}
        What to do with sample names that occur more than once.
    duplicate_features : {"keep", "mean", "max", "first", "error"}
        What to do with feature names that occur more than once; a model that is trained on the
        result does the same to other data.
    id_map : path, optional
        Table with two columns: a name in the file, such as a probe, and the name of the feature,
        such as a gene, or several separated by ``///``.  Features that are not in it are left out,
        and several of one name are collapsed as ``duplicate_features`` says ("mean" if it is
        "keep").
    group : str, optional
        Column, row or field with the group of each sample, such as its patient or batch: samples of
        a group stay together where samples are split.
    time, event : str, optional
        For survival: columns with the time of each sample, and with whether the event was observed
        (1, true, dead, deceased, event, yes, ...) or censored (0, false, alive, ...).
    sparse : bool or "auto"
        Whether X is a CSR matrix; "auto" keeps sparse files sparse and stores a large table as
        sparse if less than a tenth of its values are not zero.
    dtype : {"float32", "float64"}
        Type of X.  Training computes in float32.  Images stay uint8.
    delimiter : str, optional
        Character between the cells of a text table, or one of "tab", "space", "comma",
        "semicolon", "bar".  By default the one that splits the first lines evenly.
    decimal : {"auto", ".", ","}
        Decimal mark of a text table; with "auto" it is a comma if numbers have one and cells are
        not separated by commas.
    size : str or (int, int), optional
        Width and height to resize a folder of images to, such as ``"32x32"``.
    color : {"auto", "gray", "rgb"}
        Channels of a folder of images; with "auto" gray if all of them are.
    format : str
        Name of the format; with "auto" it is detected from the first bytes and the file name.
    limits : Limits, optional
        Limits on sizes; the defaults suit most files.
    isolated : bool or Isolation
        Parse in a child process with bounded memory and time, so that a file that crashes the HDF5
        or the Parquet library does not crash this process.  For untrusted ``.h5ad``, ``.mat``
        (version 7.3) and ``.parquet`` files; takes about half a second longer.

    Returns
    -------
    Dataset

    Raises
    ------
    FormatError
        The file is damaged, hostile or not what it should be.
    InvalidInputError
        The file is valid but does not contain what the arguments ask for.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "small.csv")
    ...     _ = table.write_text("sample,TP53,BRCA1,class\nA,1.5,2,ill\nB,0.5,3,well\n")
    ...     data = read(table)
    >>> data.X
    array([[1.5, 2. ],
           [0.5, 3. ]], dtype=float32)
    >>> data.feature_names, data.class_names, data.y
    (('TP53', 'BRCA1'), ('ill', 'well'), array([0, 1]))
    >>> data.notes
    ("samples are in rows: the row names are headed 'sample'", "labels from column 'class'")
    """
    limits = limits or Limits()
    path = Path(path)
    options = ReadOptions(
        label=label,
        matrix=matrix,
        index=index,
        ignore=(ignore,) if isinstance(ignore, str) else tuple(ignore),
        orientation=orientation,
        task=task,
        missing=missing,
        unlabelled=unlabelled,
        duplicates=duplicates,
        duplicate_features=duplicate_features,
        columns=tuple(name for name in (group, time, event) if name is not None),
        sparse=sparse,
        dtype=np.dtype(dtype).name,
        delimiter=_checked_delimiter(delimiter, decimal),
        decimal=decimal,
        size=_checked_size(size),
        color=color,
        limits=limits,
    )
    _check_choices(options)
    if (time is None) != (event is None):
        raise InvalidParameterError("read: `time` and `event` are given together or not at all.")
    if time is not None and label is not None:
        raise InvalidParameterError(
            f"label={label!r} cannot be used with time={time!r} and event={event!r}, which are"
            " the labels of survival.\n  Leave out one or the other."
        )
    if isolated:
        given = {**vars(options), "sample_sheet": sample_sheet, "format": format}
        given |= {"group": group, "time": time, "event": event, "id_map": id_map}
        del given["limits"], given["columns"]
        return read_isolated(path, given, limits, Isolation() if isolated is True else isolated)
    labels_file = _cls_file(path, sample_sheet, label)
    if sample_sheet is not None and labels_file is None:
        options = replace(options, sample_sheet=read_sample_sheet(Path(sample_sheet), limits))
    if not path.is_dir():
        digest = survey(path, limits)
    kind = format_of(path, format, limits)
    if path.is_dir():
        images = find_images(path, limits) if kind == "images" else None
        digest = survey_tenx(path, limits) if images is None else survey_images(images, limits)
    _check_options_of(kind, path, options)
    parsed = READERS[kind](path, options)
    if labels_file is not None:
        parsed.labels = read_cls(labels_file, limits)
        parsed.label_source = labels_file.name
        parsed.notes.append(f"labels from {labels_file.name}, in the order of the samples")
    _add_columns(parsed, kind, path, options)
    data = finish(
        parsed, options, source=str(path), sha256=digest, group=group, survival=(time, event)
    )
    named = tuple(name for name in (label, group, time, event) if isinstance(name, str))
    named = (*named, *options.ignore[:MOST_COLUMNS])
    if named:
        naming = Naming(
            label=label if isinstance(label, str) else "",
            columns=named,
            time=time or "",
            event=event or "",
        )
        data = replace(data, naming=naming)
    if id_map is not None or duplicate_features != "keep":
        pairs = None if id_map is None else read_id_map(Path(id_map), limits=limits)
        rule: Duplicates = "mean" if id_map and duplicate_features == "keep" else duplicate_features
        data = collapse(data, rule, id_map=pairs)
    return treat_missing(data, options.missing)


def _add_columns(parsed: Parsed, kind: str, path: Path, options: ReadOptions) -> None:
    """Add the columns with one value per sample that the reader did not return."""
    for name in options.columns:
        if name in parsed.columns:
            continue
        if options.sample_sheet is not None and name in options.sample_sheet.columns:
            parsed.columns[name], _ = cells_of(parsed, options.sample_sheet, name, str(path))
        elif options.sample_sheet is not None or kind in _TABLES:
            known = [] if options.sample_sheet is None else list(options.sample_sheet.columns)
            raise InvalidInputError(
                f"{path}: there is no column {name!r}"
                + (f"; the sample sheet has {', '.join(map(repr, known[:12]))}." if known else ".")
                + near(name, known)
            )
        else:  # it is found in the way that labels are
            again = READERS[kind](path, replace(options, label=name, columns=()))
            parsed.columns[name] = again.labels or ()


def finish(
    parsed: Parsed,
    options: ReadOptions,
    *,
    source: str,
    sha256: str | None,
    group: str | None = None,
    survival: tuple[str | None, str | None] = (None, None),
) -> Dataset:
    """Return a checked `Dataset` with the content of a file."""
    time, event = survival
    if options.sample_sheet is not None and time is None:
        parsed = join_sample_sheet(parsed, options.sample_sheet, options.label, source)
    is_image = parsed.image_shape is not None and parsed.values.dtype == np.uint8
    X = as_matrix(parsed.values, dtype="uint8" if is_image else options.dtype, source=source)
    notes = list(parsed.notes)
    labels = parsed.labels
    if labels is not None and len(labels) != X.shape[0]:
        raise FormatError(
            f"{source}: {len(labels)} labels for {X.shape[0]} samples ({parsed.label_source}).\n"
            "  Every sample needs one label; pass label= if another array has the labels."
        )
    names = None if parsed.sample_names is None else tuple(map(str, parsed.sample_names))
    columns = dict(parsed.columns)
    if labels is not None and options.unlabelled == "drop":
        kept = [i for i, value in enumerate(labels) if not is_missing_label(value)]
        if len(kept) < len(labels):
            notes.append(f"left out {len(labels) - len(kept)} samples without a label")
            X, labels = X[kept], [labels[i] for i in kept]
            columns = {name: [column[i] for i in kept] for name, column in columns.items()}
            names = None if names is None else tuple(names[i] for i in kept)
    y, classes = None, None
    if time is not None and event is not None:
        y = survival_from(columns[time], columns[event], source, time, event)
        notes = [note for note in notes if not note.startswith("labels from")]
        notes.append(
            f"survival: time from {time!r}, event from {event!r}; {int(y['event'].sum())}"
            f" of {len(y)} samples have the event"
        )
    elif labels is None:
        notes.append("no labels found; if the data have labels, pass label= or sample_sheet=")
    else:
        where = f"{source}, {parsed.label_source}"
        y, classes = encode_labels(labels, task=options.task, source=where)
        classes = _class_names_from_file(y, classes, parsed)
    features = None if parsed.feature_names is None else tuple(map(str, parsed.feature_names))
    _check_names(names, features, options, source, notes)
    if not is_image or options.sparse is True:
        X = _choose_storage(X if not is_image else X.astype(options.dtype), options, notes)
    shape = parsed.image_shape
    data = Dataset(X, y, features, names, classes, source, sha256, tuple(notes), shape)
    if group is not None:
        found = tuple(_group_text(value) for value in columns[group])
        data = replace(data, groups=found, group_column=group)
    return data


def _group_text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _class_names_from_file(
    y: Any, classes: tuple[str, ...] | None, parsed: Parsed
) -> tuple[str, ...] | None:
    """Return the class names given in the file, if its labels are 0..K-1 or 1..K."""
    given = parsed.class_names
    if classes is None or given is None:
        return classes
    name_of = {str(code): name for code, name in enumerate(given)}
    if set(classes) <= set(name_of):
        return tuple(str(name_of[name]) for name in classes)
    if set(classes) <= {str(code + 1) for code in range(len(given))}:
        return tuple(str(given[int(name) - 1]) for name in classes)
    return classes


def _check_names(
    samples: tuple[str, ...] | None,
    features: tuple[str, ...] | None,
    options: ReadOptions,
    source: str,
    notes: list[str],
) -> None:
    repeated_samples = repeated(samples or ())
    if repeated_samples:
        name, places = next(iter(repeated_samples.items()))
        description = f"sample name {name!r} occurs {len(places)} times (samples"
        description += f" {', '.join(str(place + 1) for place in places[:5])})"
        others = (
            f", and {len(repeated_samples) - 1} others also repeat"
            if len(repeated_samples) > 1
            else ""
        )
        if options.duplicates == "error":
            raise InvalidInputError(
                f"{source}: {description}{others}.\n"
                "  The same sample may end up in both the training and the test set. Remove it, or"
                " pass duplicates='keep' if these are different samples."
            )
        notes.append(description)
    repeated_features = repeated(features or ())
    if repeated_features:
        notes.append(
            f"{len(repeated_features)} feature names occur more than once, for instance"
            f" {next(iter(repeated_features))!r}"
        )


def _choose_storage(X: Any, options: ReadOptions, notes: list[str]) -> Any:
    is_sparse = not isinstance(X, np.ndarray)
    if options.sparse is False and is_sparse:
        options.limits.check_shape("X as a dense array", X.shape[0], X.shape[1], X.dtype.itemsize)
        return X.toarray()
    if options.sparse is True and not is_sparse:
        return sparse_if_mostly_zero(X, threshold=np.inf)
    if options.sparse == "auto" and not is_sparse and X.size >= 100_000:
        X = sparse_if_mostly_zero(X)
        if not isinstance(X, np.ndarray):
            percentage = 100 * X.nnz / (X.shape[0] * X.shape[1])
            notes.append(f"stored as sparse: {percentage:.2g}% of the values are not zero")
    return X


def _checked_size(size: Any) -> tuple[int, int] | None:
    """Return the width and the height of ``size``."""
    if size is None:
        return None
    try:
        parts = size.lower().split("x") if isinstance(size, str) else size
        width, height = (int(part) for part in parts)
        if min(width, height) >= 1:
            return width, height
    except (TypeError, ValueError, AttributeError):
        pass
    raise InvalidParameterError(
        f"read: `size` must be width and height in pixels, such as '32x32', got {size!r}."
    )


def _check_choices(options: ReadOptions) -> None:
    for name, choices in _CHOICES.items():
        if getattr(options, name) not in choices:
            raise InvalidParameterError(
                f"read: `{name}` must be one of {', '.join(map(repr, choices))},"
                f" got {getattr(options, name)!r}.{near(getattr(options, name), choices)}"
            )


def _cls_file(path: Path, given: Any, label: str | int | None) -> Path | None:
    """Return the Broad ``.cls`` file with the labels: given, or next to a ``.gct`` file."""
    if given is not None:
        return Path(given) if Path(given).suffix.lower() == ".cls" else None
    beside = path.parent / (path.name.removesuffix(".gz").removesuffix(".gct") + ".cls")
    is_gct = path.name.lower().removesuffix(".gz").endswith(".gct")
    return beside if is_gct and label is None and beside.is_file() else None


def _check_options_of(kind: str, path: Path, options: ReadOptions) -> None:
    """Raise for options that do not apply to the format of a file."""
    for names, kinds, what in (
        (("delimiter", "decimal"), {"csv"}, "text tables"),
        (("size", "color"), {"images"}, "folders of images"),
    ):
        for name in names:
            value = getattr(options, name)
            if kind not in kinds and value != getattr(ReadOptions, name):
                raise InvalidParameterError(
                    f"read: `{name}={value!r}` is for {what}; {path} is read as {kind!r}.\n"
                    "  Omit it."
                )


def _checked_delimiter(given: str | None, decimal: str) -> str | None:
    if given is None:
        return None
    delimiter = _DELIMITERS.get(given, given)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter.isalnum() or delimiter in '".+-':
        raise InvalidParameterError(
            f"read: `delimiter` must be one character, such as ';', or one of"
            f" {', '.join(name for name in _DELIMITERS if name.isalpha())}; got {given!r}."
        )
    if delimiter == decimal:
        raise InvalidParameterError(
            f"read: `delimiter` and `decimal` are both {decimal!r}; they must differ."
        )
    return delimiter

"""Data sets of the study, and their splits into training and test rows.

Text sets are used dense by every method: they are small, and all methods then see the same.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from ratoon.datasets import read

Array = NDArray[Any]

WIDE = ("TOX-171", "ALL_BCRABL", "arcene", "lymphoma", "colon", "ALLAML", "subramanian")
MANY = ("madelon", "PCMAC", "BASEHOCK")
SUFFIXES = (".mat", ".npz")


class Split(NamedTuple):
    """Training rows, test rows and their classes, numbered from 0."""

    x: Array
    x_test: Array
    y: NDArray[np.int64]
    y_test: NDArray[np.int64]


def default_folder() -> Path:
    """Return where the development sets are, unless ``RATOON_DATA`` says otherwise."""
    return Path(os.environ.get("RATOON_DATA", Path(__file__).parents[3] / "shared" / "data"))


def names_in(folder: Path) -> list[str]:
    """Return the sets of a folder: known ones in their usual order, others after them."""
    found = {path.stem for path in Path(folder).iterdir() if path.suffix in SUFFIXES}
    known = [name for name in (*WIDE, *MANY) if name in found]
    return known + sorted(found.difference(known))


def load(name: str, folder: Path) -> tuple[Array, NDArray[np.int64]]:
    """Return dense samples as float64, and classes numbered from 0; see `tidied`."""
    return tidied(*_read(name, folder))[:2]


def remarks(name: str, folder: Path) -> str:
    """Say in a line what a set holds, and what was done to it."""
    x, y, notes = tidied(*_read(name, folder))
    counts = np.bincount(y)
    shape = f"{x.shape[0]} x {x.shape[1]}, {counts.size} classes of {counts.min()}-{counts.max()}"
    return "; ".join((f"{name}: {shape}", *notes))


def tidied(x: Array, y: Array) -> tuple[Array, NDArray[np.int64], list[str]]:
    """Leave out rows without another of their class, number the classes, say what was found.

    >>> x, y, notes = tidied(np.eye(5), np.array(["b", "a", "b", "c", "c"]))
    >>> y.tolist(), notes
    ([0, 0, 1, 1], ['1 row left out that is alone in its class'])
    """
    codes, counts = np.unique(y, return_inverse=True, return_counts=True)[1:]
    notes = []
    if n_alone := int(np.count_nonzero(counts == 1)):
        rows = "1 row left out that is" if n_alone == 1 else f"{n_alone} rows left out that are"
        notes.append(f"{rows} alone in {'its' if n_alone == 1 else 'their'} class")
    kept = counts[codes] > 1
    x, codes = x[kept], np.unique(codes[kept], return_inverse=True)[1]
    if n_missing := int(np.count_nonzero(np.isnan(x))):
        notes.append(f"{n_missing} missing values filled with means of the training rows")
    with np.errstate(invalid="ignore"):
        if n_constant := int(np.count_nonzero(np.nanmax(x, axis=0) == np.nanmin(x, axis=0))):
            notes.append(f"{n_constant} features are constant")
    return x, codes.astype(np.int64), notes


def _read(name: str, folder: Path) -> tuple[Array, Array]:
    [path] = [p for p in Path(folder).iterdir() if p.stem == name and p.suffix in SUFFIXES]
    found = read(path, missing="keep")
    x = found.X.toarray() if hasattr(found.X, "toarray") else np.asarray(found.X)
    return np.ascontiguousarray(x, dtype=np.float64), np.ravel(found.y)


def split(x: Array, y: NDArray[np.int64], number: int) -> Split:
    """Two thirds to train, the rest to test, classes in equal shares; means for what is missing."""
    parts = Split(*train_test_split(x, y, test_size=1 / 3, stratify=y, random_state=number))
    if not np.isnan(x).any():
        return parts
    present = np.isfinite(parts.x)
    sums, counts = np.where(present, parts.x, 0.0).sum(axis=0), present.sum(axis=0)
    mean = sums / np.maximum(counts, 1)
    return parts._replace(
        x=np.where(np.isnan(parts.x), mean, parts.x),
        x_test=np.where(np.isnan(parts.x_test), mean, parts.x_test),
    )


def standardised(parts: Split) -> Split:
    """Return both parts with the training rows' mean and deviation; constant features are 0."""
    mean, deviation = parts.x.mean(axis=0), parts.x.std(axis=0)
    varies = deviation > 1e-12 * np.maximum(1.0, np.abs(mean))
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=varies)
    return parts._replace(x=(parts.x - mean) * scale, x_test=(parts.x_test - mean) * scale)

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
    """Return dense samples as float64, and classes numbered from 0."""
    [path] = [p for p in Path(folder).iterdir() if p.stem == name and p.suffix in SUFFIXES]
    found = read(path)
    x = found.X.toarray() if hasattr(found.X, "toarray") else np.asarray(found.X)
    y = np.unique(np.ravel(found.y), return_inverse=True)[1]
    return np.ascontiguousarray(x, dtype=np.float64), y.astype(np.int64)


def split(x: Array, y: NDArray[np.int64], number: int) -> Split:
    """Two thirds to train, one third to test, classes in equal shares."""
    return Split(*train_test_split(x, y, test_size=1 / 3, stratify=y, random_state=number))


def standardised(parts: Split) -> Split:
    """Return both parts with the training rows' mean and deviation; constant features are 0."""
    mean, deviation = parts.x.mean(axis=0), parts.x.std(axis=0)
    varies = deviation > 1e-12 * np.maximum(1.0, np.abs(mean))
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=varies)
    return parts._replace(x=(parts.x - mean) * scale, x_test=(parts.x_test - mean) * scale)

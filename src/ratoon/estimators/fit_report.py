"""`fit(report=...)`: the page about a network, written when its training ends."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ratoon.datasets import Dataset
from ratoon.errors import InvalidInputError
from ratoon.estimators.data import parts_of_eval_set
from ratoon.report import write_report
from ratoon.samples.checked import checked_samples, targets_or_labels


def check_report_path(path: Any) -> None:
    """Raise before a long training if its report could not be written afterwards."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidInputError(f"`report` must be the path of a file, got {path!r}.")
    folder = os.path.dirname(os.fspath(path)) or "."
    if not os.path.isdir(folder):
        raise InvalidInputError(f"`report`: there is no folder {folder}; make it first.")


def write_fit_report(estimator: Any, path: Any, X: Any, y: Any, eval_set: Any) -> None:
    """Write the report of a training: on the validation data, or else on those trained on.

    Validation data by which early stopping chose the epoch are not called held out.
    """
    held_out: bool | None = False
    if eval_set is not None:
        X, y, _ = parts_of_eval_set(eval_set)
        held_out = None if estimator.early_stopping else True
    write_report(estimator, path, _dataset(estimator, X, y), held_out=held_out)


def _dataset(estimator: Any, X: Any, y: Any) -> Dataset | None:
    x = checked_samples(estimator, X, reset=False, streamed=True)
    targets = np.asarray(targets_or_labels(X, y))
    if x.is_on_disk or targets.ndim != 1:
        return None  # reading again is slow, and the page has no plot for several targets
    names = getattr(estimator, "feature_names_in_", None)
    given: dict[str, Any] = {
        "feature_names": None if names is None else tuple(map(str, names)),
        "source": "samples given to fit",
    }
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return Dataset(x.values(), targets.astype(np.float64), **given)
    words = targets.astype(str)
    class_names, codes = np.unique(words, return_inverse=True)
    return Dataset(
        x.values(), codes.astype(np.int64), class_names=tuple(class_names.tolist()), **given
    )

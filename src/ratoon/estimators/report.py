"""The report of a fit as a table, and as an HTML page written by ``fit(report=...)``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ratoon.datasets import Dataset
from ratoon.datasets.optional import require
from ratoon.errors import InvalidInputError
from ratoon.estimators.data import groups_of, parts_of_eval_set
from ratoon.estimators.settings import CLOSED_FORM, Settings
from ratoon.history import History, duration
from ratoon.initialise import density_of
from ratoon.network import SparseMLP
from ratoon.report import write_report
from ratoon.samples.checked import checked_samples, targets_or_labels
from ratoon.storage.atomic import SaveError, check_target, shown

_HEADINGS = ("layer", "shape", "connections", "requested", "achieved", "MB", "rewired")


@dataclass(frozen=True)
class LayerReport:
    """One layer: its size, requested and achieved density, memory, connections rewired."""

    n_in: int
    n_out: int
    n_connections: int
    requested_density: float | None
    achieved_density: float
    megabytes: float
    rewired: int

    def cells(self, index: int) -> tuple[str, ...]:
        """Return the row of this layer in the table."""
        requested = "given" if self.requested_density is None else f"{self.requested_density:.4g}"
        return (
            str(index),
            f"{self.n_in} -> {self.n_out}",
            f"{self.n_connections:,}",
            requested,
            f"{self.achieved_density:.4g}",
            f"{self.megabytes:.3g}",
            f"{self.rewired:,}",
        )


@dataclass(frozen=True)
class FitReport:
    """What a fit did.  Prints as a table; a notebook shows it as one.

    ``solver`` and ``reason`` are those of the fit's `Settings`, ``how`` a sentence with both.

    Examples
    --------
    >>> from ratoon import SparseMLPRegressor
    >>> model = SparseMLPRegressor((8,), density=0.5, max_iter=2, random_state=0)
    >>> report = model.fit([[0.0, 1.0], [1.0, 0.0]], [0.0, 1.0]).report_
    >>> [layer.n_connections for layer in report.layers], report.n_epochs
    ([8, 4], 2)
    """

    layers: tuple[LayerReport, ...]
    n_epochs: int
    seconds_per_epoch: float
    rewire_seconds_per_epoch: float
    loss: float | None
    dtype: str
    solver: str
    reason: str
    how: str

    @property
    def n_connections(self) -> int:
        """Connections of all layers."""
        return sum(layer.n_connections for layer in self.layers)

    @property
    def n_positions(self) -> int:
        """Connections a dense network of the same widths would have."""
        return sum(layer.n_in * layer.n_out for layer in self.layers)

    def _rows(self) -> list[tuple[str, ...]]:
        return [layer.cells(index) for index, layer in enumerate(self.layers, start=1)]

    def _notes(self) -> list[str]:
        of_dense = self.n_connections / self.n_positions
        notes = [
            f"{self.n_connections:,} connections in {self.dtype}, {of_dense:.3%} of the"
            f" {self.n_positions:,} of a dense network",
            self.how,
        ]
        each, rewiring = map(duration, (self.seconds_per_epoch, self.rewire_seconds_per_epoch))
        if self.solver == CLOSED_FORM:
            notes.append(f"took {each}")
        else:
            notes.append(f"{each} per epoch, {rewiring} of it for rewiring")
        return notes if self.loss is None else [*notes, f"last training loss {self.loss:.4g}"]

    def __str__(self) -> str:
        lines = [_HEADINGS, *self._rows()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in lines
        ]
        return "\n".join([*table, *self._notes()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def line(tag: str, cells: Sequence[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(c)}</{tag}>" for c in cells) + "</tr>"

        rows = "".join(line("td", row) for row in self._rows())
        notes = "<br>".join(map(escape, self._notes()))
        return (
            f"<table><thead>{line('th', _HEADINGS)}</thead><tbody>{rows}</tbody></table>"
            f"<p>{notes}</p>"
        )


def make_report(
    network: SparseMLP, history: History, settings: Settings, rewired: Sequence[int]
) -> FitReport:
    """Return the report of a fit with these settings."""
    layers = []
    for layer, given, n_rewired in zip(
        network.layers, settings.given_topology, rewired, strict=True
    ):
        requested = settings.density
        if settings.epsilon is not None:
            requested = density_of(layer.shape, settings.epsilon)
        layers.append(
            LayerReport(
                *layer.shape,
                layer.n_connections,
                None if given else requested,
                layer.topology.density,
                layer.nbytes() / 1e6,
                n_rewired,
            )
        )
    first = int(settings.after_closed_form)  # that record is not of an epoch
    train = history.column("train_seconds")[first:]
    rewire = history.column("rewire_seconds")[first:]
    return FitReport(
        layers=tuple(layers),
        n_epochs=len(history),
        seconds_per_epoch=float(np.mean(train) + np.mean(rewire)) if train else 0.0,
        rewire_seconds_per_epoch=float(np.mean(rewire)) if rewire else 0.0,
        loss=history[-1].loss if len(history) else None,
        dtype=network.dtype.name,
        solver=settings.solver,
        reason=settings.reason,
        how=settings.describe(len(history)),
    )


def check_report_path(path: Any) -> None:
    """Raise before a long training if its report could not be written afterwards."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidInputError(f"`report` must be the path of a file, got {path!r}.")
    require("jinja2", "to write reports", extra="report")
    try:
        check_target(path, stream=True)
    except SaveError as error:
        raise InvalidInputError(f"`report={shown(path)!r}`: {error.strerror}.") from None


def write_fit_report(
    estimator: Any, path: Any, X: Any, y: Any, eval_set: Any, groups: Any = None
) -> None:
    """Write the report of a training: on the validation data, or else on those trained on.

    Validation data by which early stopping chose the epoch are not called held out.
    """
    held_out: bool | None = False
    if eval_set is not None:
        (X, y, _), groups = parts_of_eval_set(eval_set), None
        held_out = None if estimator.settings_.early_stopping else True
    write_report(estimator, path, _dataset(estimator, X, y, groups), held_out=held_out)


def _dataset(estimator: Any, X: Any, y: Any, groups: Any = None) -> Dataset | None:
    x = checked_samples(estimator, X, reset=False, streamed=True)
    targets = np.asarray(targets_or_labels(X, y))
    if x.is_on_disk or targets.ndim != 1:
        return None  # on disk, or several targets: the page is about the network alone
    names = getattr(estimator, "feature_names_in_", None)
    given: dict[str, Any] = {
        "feature_names": None if names is None else tuple(map(str, names)),
        "source": "samples given to fit",
        "groups": groups_of(X, groups),
    }
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return Dataset(x.values(), targets.astype(np.float64), **given)
    words = targets.astype(str)
    class_names, codes = np.unique(words, return_inverse=True)
    return Dataset(
        x.values(), codes.astype(np.int64), class_names=tuple(class_names.tolist()), **given
    )

"""Where an estimator's training stands, as plain JSON values, and back."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

from ratoon.errors import FormatError
from ratoon.estimators.fitting import Progress
from ratoon.estimators.presets import Shape
from ratoon.network import SparseMLP
from ratoon.storage.fields import Fields
from ratoon.storage.limits import EXACT_INTEGER, MAX_LAYERS, MAX_WIDTH
from ratoon.storage.rules import require
from ratoon.training import EarlyStopping

_SHAPE = {"n_samples", "n_features", "n_outputs", "is_classifier"}
_KEYS = {"seed", "cycle", "epochs_done", "rewired", "evolving", "stopping"}
_STOPPING = {"patience", "tol", "restore_best", "best_score", "best_epoch", "n_waited"}
_LARGEST = sys.float_info.max


def shape_to_plain(shape: Shape) -> dict[str, Any]:
    """Return the shape of the first data seen."""
    return asdict(shape)


def shape_from_plain(stored: Any) -> Shape:
    """Return what `shape_to_plain` was given; raise `Violation` for anything else.

    Examples
    --------
    >>> shape_from_plain(shape_to_plain(Shape(30, 8, 3)))
    Shape(n_samples=30, n_features=8, n_outputs=3, is_classifier=True)
    """
    fields = Fields(stored, "shape", _SHAPE)
    return Shape(
        fields.integer("n_samples", 1, EXACT_INTEGER),
        fields.integer("n_features", 1, MAX_WIDTH),
        fields.integer("n_outputs", 1, MAX_WIDTH),
        fields.flag("is_classifier"),
    )


def progress_to_plain(progress: Progress) -> dict[str, Any]:
    """Return all of a progress but its shape, networks, history and evolution's memory."""
    return {
        "seed": str(progress.seed),  # of up to 63 bits or more: too many for numbers of JSON
        "cycle": progress.cycle,
        "epochs_done": progress.epochs_done,
        "rewired": list(progress.rewired),
        "evolving": progress.evolution_state is not None,
        "stopping": _stopping_to_plain(progress.stopping),
    }


def progress_from_plain(stored: Any, shape: Shape, networks: list[SparseMLP]) -> Progress:
    """Return a progress at the place that `progress_to_plain` told, with these networks.

    ``evolution_state`` is an empty dictionary where the strategy had a memory, else None.
    """
    if len(networks) not in (1, 2):
        raise FormatError(f"one or two networks make an estimator, got {len(networks)}")
    fields = Fields(stored, "progress", _KEYS)
    seed = fields["seed"]
    digits = type(seed) is str and len(seed) <= 1000 and seed.isascii() and seed.isdecimal()
    require(digits, 5, "config: progress.seed must be the digits of a number")
    rewired = fields.listing("rewired", 1, MAX_LAYERS)
    counts = all(type(count) is int and 0 <= count <= EXACT_INTEGER for count in rewired)
    require(counts, 5, "config: progress.rewired must hold counts")
    if len(rewired) != len(networks[0].layers):
        raise FormatError(f"{len(rewired)} counts for {len(networks[0].layers)} layers")
    stopping = _stopping_from_plain(fields["stopping"])
    if len(networks) == 2:
        if stopping is None or stopping.best_epoch < 0:
            raise FormatError("a best network without early stopping")
        stopping.best_network = networks[1]
    elif stopping is not None and stopping.restore_best and stopping.best_epoch >= 0:
        raise FormatError("early stopping without its best network")
    return Progress(
        int(seed),
        shape,
        networks[0],
        fields.integer("cycle", 0, EXACT_INTEGER),
        fields.integer("epochs_done", 0, EXACT_INTEGER),
        stopping,
        rewired=rewired,
        evolution_state={} if fields.flag("evolving") else None,
    )


def _stopping_to_plain(stopping: EarlyStopping | None) -> dict[str, Any] | None:
    if stopping is None:
        return None
    seen = stopping.best_epoch >= 0
    return {
        "patience": int(stopping.patience),
        "tol": float(stopping.tol),
        "restore_best": bool(stopping.restore_best),
        "best_score": float(stopping.best_score) if seen else None,
        "best_epoch": int(stopping.best_epoch),
        "n_waited": int(stopping.n_waited),
    }


def _stopping_from_plain(stored: Any) -> EarlyStopping | None:
    if stored is None:
        return None
    fields = Fields(stored, "progress.stopping", _STOPPING)
    best_epoch = fields.integer("best_epoch", -1, EXACT_INTEGER)
    seen = best_epoch >= 0
    return EarlyStopping(
        patience=fields.integer("patience", 1, EXACT_INTEGER),
        tol=fields.number("tol", 0.0, _LARGEST),
        restore_best=fields.flag("restore_best"),
        best_score=fields.number("best_score", -_LARGEST, _LARGEST) if seen else -float("inf"),
        best_epoch=best_epoch,
        n_waited=fields.integer("n_waited", 0, EXACT_INTEGER),
    )

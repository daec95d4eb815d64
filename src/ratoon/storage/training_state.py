"""A `TrainingState` as JSON values, arrays and networks, and back.

Model files and checkpoints hold it, and ranks exchange it, in this one form.  A history is stored
as one array per quantity, so that ten thousand epochs do not enlarge the header.
"""

from __future__ import annotations

import math
import sys
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import FormatError
from ratoon.history import EpochRecord, History
from ratoon.network import SparseMLP
from ratoon.storage.rules import EXACT_INTEGER, MAX_LAYERS, Fields, require
from ratoon.training import EarlyStopping, TrainingState

PREFIX = "history/"
STATES = {"absent": 0, "finite": 1, "nan": 2, "inf": 3, "-inf": 4}
"""Codes of the values that arrays in files, which hold finite numbers only, cannot hold."""
_FIELDS = fields(EpochRecord)
_NAMES = [item.name for item in _FIELDS]
_INTEGERS = {item.name for item in _FIELDS if item.type == "int"}
_OPTIONAL = {item.name for item in _FIELDS if "None" in str(item.type)}
_DEFAULTS = {item.name: item.default for item in _FIELDS if item.default is not MISSING}
Parts = tuple[dict[str, Any], dict[str, Array], list[SparseMLP]]
_KEYS = {"seed", "cycle", "epochs_done", "rewired", "evolving", "stopping"}
_STOPPING = {"patience", "tol", "restore_best", "best_score", "best_epoch", "n_waited"}
_EVOLUTION = "evolution/"
_LARGEST = sys.float_info.max


def history_to_arrays(history: History) -> dict[str, Array]:
    """Return a history as named arrays for a `Document`.

    Examples
    --------
    >>> history = History([EpochRecord(0, 0.7, 0.1, 900, 0.02, 0, 1.0, 0.0)])
    >>> arrays = history_to_arrays(history)
    >>> arrays["history/loss"], arrays["history/validation_score.state"]
    (array([0.7]), array([0], dtype=uint8))
    >>> history_from_arrays(arrays) == history
    True
    """
    arrays: dict[str, Array] = {}
    for name in _NAMES:
        column = history.column(name)
        if name in _INTEGERS:
            arrays[PREFIX + name] = np.array(column, dtype=np.int64)
            continue
        states = [_state_of(value) for value in column]
        arrays[f"{PREFIX}{name}.state"] = np.array(states, dtype=np.uint8)
        finite = [
            value if state == STATES["finite"] else 0.0
            for value, state in zip(column, states, strict=True)
        ]
        arrays[PREFIX + name] = np.array(finite, dtype=np.float64)
    return arrays


def history_from_arrays(arrays: dict[str, Array]) -> History:
    """Return a history, removing its arrays from ``arrays``.

    Quantities that the file does not have yet get their default values.

    Raises
    ------
    FormatError
        If they do not make a history.
    """
    columns: dict[str, list[Any]] = {}
    for name in _NAMES:
        if PREFIX + name not in arrays and name in _DEFAULTS:
            columns[name] = [_DEFAULTS[name]] * len(columns["epoch"])
            continue
        values = _take(arrays, PREFIX + name, np.int64 if name in _INTEGERS else np.float64)
        column: list[Any] = values.tolist()
        if name not in _INTEGERS:
            states = _take(arrays, f"{PREFIX}{name}.state", np.uint8).tolist()
            if len(states) != len(column):
                raise FormatError(f"the arrays of the history's {name!r} differ in length.")
            column = [_value_of(*pair, name=name) for pair in zip(column, states, strict=True)]
        columns[name] = column
    if len({len(column) for column in columns.values()}) != 1:
        raise FormatError("the columns of the history differ in length.")
    rows = zip(*columns.values(), strict=True)
    return History([EpochRecord(**dict(zip(_NAMES, row, strict=True))) for row in rows])


def state_to_parts(state: TrainingState) -> Parts:
    """Return a state as JSON values, arrays by name, and one or two networks.

    The networks are the latest and, where early stopping keeps another one, the best.

    Examples
    --------
    >>> network = SparseMLP.start((4, 8, 2), density=0.5, seed=0)
    >>> values, arrays, networks = state_to_parts(TrainingState(network, seed=3, epochs_done=2))
    >>> values["seed"], values["rewired"], len(networks)
    ('3', [0, 0], 1)
    >>> state_from_parts(values, arrays, networks).epochs_done
    2
    """
    values = {
        "seed": str(state.seed),  # may have more bits than numbers of JSON
        "cycle": int(state.cycle),
        "epochs_done": int(state.epochs_done),
        "rewired": [int(count) for count in state.rewired_by_layer],
        "evolving": state.evolution_state is not None,
        "stopping": _stopping_to_values(state.stopping),
    }
    arrays = history_to_arrays(state.history)
    for name, array in (state.evolution_state or {}).items():
        arrays[_EVOLUTION + name] = array
    networks = [state.network]
    if state.best is not state.network:
        networks.append(state.best)
    return values, arrays, networks


def state_from_parts(
    values: Any, arrays: dict[str, Array], networks: list[SparseMLP], where: str = "progress"
) -> TrainingState:
    """Return the state that `state_to_parts` was given; its arrays are removed from ``arrays``.

    Raises
    ------
    Violation, FormatError
        If the parts do not make a state.
    """
    if len(networks) not in (1, 2):
        raise FormatError(f"a training state has one or two networks, got {len(networks)}")
    fields = Fields(values, where, _KEYS)
    seed = fields["seed"]
    digits = type(seed) is str and len(seed) <= 1000 and seed.isascii() and seed.isdecimal()
    require(digits, 5, f"config: {where}.seed must be the digits of a number")
    rewired = fields.listing("rewired", 1, MAX_LAYERS)
    counts = all(type(count) is int and 0 <= count <= EXACT_INTEGER for count in rewired)
    require(counts, 5, f"config: {where}.rewired must hold counts")
    if len(rewired) != len(networks[0].layers):
        raise FormatError(f"{len(rewired)} counts for {len(networks[0].layers)} layers")
    stopping = _stopping_from_values(fields["stopping"], f"{where}.stopping")
    if len(networks) == 2:
        if stopping is None or stopping.best_epoch < 0:
            raise FormatError("a best network without early stopping")
        stopping.best_network = networks[1]
    elif stopping is not None and stopping.restore_best and stopping.best_epoch >= 0:
        raise FormatError("early stopping without its best network")
    state = TrainingState(
        networks[0],
        int(seed),
        fields.integer("cycle", 0, EXACT_INTEGER),
        fields.integer("epochs_done", 0, EXACT_INTEGER),
        history_from_arrays(arrays),
        rewired,
        stopping=stopping,
    )
    if fields.flag("evolving"):
        named = [name for name in arrays if name.startswith(_EVOLUTION)]
        state.evolution_state = {name.removeprefix(_EVOLUTION): arrays.pop(name) for name in named}
    return state


def _state_of(value: float | None) -> int:
    if value is None:
        return STATES["absent"]
    if math.isfinite(value):
        return STATES["finite"]
    return STATES["nan" if math.isnan(value) else "inf" if value > 0 else "-inf"]


def _value_of(value: float, state: int, *, name: str) -> float | None:
    if state == STATES["finite"]:
        return value
    if state == STATES["absent"] and name in _OPTIONAL:
        return None
    for text in ("nan", "inf", "-inf"):
        if state == STATES[text]:
            return float(text)
    raise FormatError(f"a history's {name!r} cannot have the state {state}.")


def _take(arrays: dict[str, Array], name: str, dtype: Any) -> Array:
    array = arrays.pop(name, None)
    if array is None or array.ndim != 1 or array.dtype != dtype:
        raise FormatError(
            f"the history needs a one-dimensional array {name!r} of {np.dtype(dtype)}."
        )
    return array


def _stopping_to_values(stopping: EarlyStopping | None) -> dict[str, Any] | None:
    if stopping is None:
        return None
    observed = stopping.best_epoch >= 0
    return {
        "patience": int(stopping.patience),
        "tol": float(stopping.tol),
        "restore_best": bool(stopping.restore_best),
        "best_score": float(stopping.best_score) if observed else None,
        "best_epoch": int(stopping.best_epoch),
        "n_waited": int(stopping.n_waited),
    }


def _stopping_from_values(values: Any, where: str) -> EarlyStopping | None:
    if values is None:
        return None
    fields = Fields(values, where, _STOPPING)
    best_epoch = fields.integer("best_epoch", -1, EXACT_INTEGER)
    observed = best_epoch >= 0
    return EarlyStopping(
        patience=fields.integer("patience", 0, EXACT_INTEGER),
        tol=fields.number("tol", -_LARGEST, _LARGEST),
        restore_best=fields.flag("restore_best"),
        best_score=fields.number("best_score", -_LARGEST, _LARGEST) if observed else -float("inf"),
        best_epoch=best_epoch,
        n_waited=fields.integer("n_waited", 0, EXACT_INTEGER),
    )

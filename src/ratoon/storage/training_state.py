"""A `TrainingState` as plain values, arrays and networks, and back.

Model files and checkpoints hold it, and ranks exchange it, in this one form.
"""

from __future__ import annotations

import sys
from typing import Any

from ratoon.arrays import Array
from ratoon.errors import FormatError
from ratoon.network import SparseMLP
from ratoon.storage.fields import Fields
from ratoon.storage.histories import history_from_arrays, history_to_arrays
from ratoon.storage.limits import EXACT_INTEGER, MAX_LAYERS
from ratoon.storage.rules import require
from ratoon.training import EarlyStopping, TrainingState

Parts = tuple[dict[str, Any], dict[str, Array], list[SparseMLP]]

_KEYS = {"seed", "cycle", "epochs_done", "rewired", "evolving", "stopping"}
_STOPPING = {"patience", "tol", "restore_best", "best_score", "best_epoch", "n_waited"}
_EVOLUTION = "evolution/"
_LARGEST = sys.float_info.max


def state_to_parts(state: TrainingState) -> Parts:
    """Return a state as plain JSON values, arrays by name, and one or two networks.

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
    """Return the state that `state_to_parts` was given; its arrays are taken out of ``arrays``.

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

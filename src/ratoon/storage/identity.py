"""The identity of a training: plan, network and data as plain values, and their differences."""

from __future__ import annotations

import hashlib
import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ratoon import kernels
from ratoon.arrays import Array
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.storage.rules import pieces
from ratoon.topology import Topology
from ratoon.training import EarlyStopping, TrainingData, TrainingPlan

SCHEDULE_POINTS = 9
ABSENT = object()
N_SUMS = 64
_SEED = 20180619  # any number, for ever the same


def describe_plan(plan: TrainingPlan) -> dict[str, Any]:
    """Return all of a plan that changes results; the number of threads does not.

    A schedule is a function and cannot be compared; its values along training can.

    Examples
    --------
    >>> description = describe_plan(TrainingPlan(learning_rate=0.1))
    >>> description["learning_rate"], description["optimizer"]["momentum"]
    (0.1, 0.9)
    """
    found = {
        item.name: plain(getattr(plan, item.name))
        for item in fields(plan)
        if item.name not in ("n_threads", "schedule")
    }
    last = SCHEDULE_POINTS - 1
    found["schedule"] = [float(plan.schedule(k / last)) for k in range(SCHEDULE_POINTS)]
    return found


def describe_network(network: SparseMLP) -> dict[str, Any]:
    """Return what does not change while a network trains."""
    return {
        "dtype": network.weight_type,
        "widths": list(network.widths),
        "layers": [
            {
                "activation": layer.activation,
                "slope": float(layer.slope),
                "dropout": float(layer.dropout),
                "init": layer.init,
                **({} if layer.allowed is None else {"allowed": layer.allowed.content_hash()}),
            }
            for layer in network.layers
        ],
        "clip": float(network.scaling.clip),
    }


def describe_stopping(stopping: EarlyStopping | None) -> dict[str, Any] | None:
    """Return the parameters of early stopping."""
    if stopping is None:
        return None
    return {
        "patience": int(stopping.patience),
        "tol": float(stopping.tol),
        "restore_best": bool(stopping.restore_best),
    }


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; objects by class and fields, the rest by their text."""
    if type(value) is float and not math.isfinite(value):
        return repr(value)
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        parts = {item.name: plain(getattr(value, item.name)) for item in fields(value)}
        return {"class": type(value).__name__, **parts}
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return plain(value.item())  # a NumPy number
    name = getattr(value, "__qualname__", None)  # a function or a class
    return str(name) if name else type(value).__qualname__


def differences(theirs: Any, ours: Any, name: str = "") -> list[str]:
    """Return one line for every place where two descriptions differ.

    Examples
    --------
    >>> differences({"lr": 0.1, "widths": [3, 2]}, {"lr": 0.2, "widths": [3, 2]})
    ['lr: 0.1 there, 0.2 here']
    """
    if isinstance(theirs, dict) and isinstance(ours, dict):
        lines = []
        for key in [*theirs, *(key for key in ours if key not in theirs)]:
            place = f"{name}.{key}" if name else str(key)
            lines += differences(theirs.get(key, ABSENT), ours.get(key, ABSENT), place)
        return lines
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        if not all(isinstance(item, dict) for item in [*theirs, *ours]):
            return [] if theirs == ours else [f"{name}: {_show(theirs)} there, {_show(ours)} here"]
        lines = []
        for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            lines += differences(one, other, f"{name}[{index}]")
        return lines
    if theirs == ours and isinstance(theirs, bool) == isinstance(ours, bool):
        return []
    return [f"{name}: {_show(theirs)} there, {_show(ours)} here"]


def fingerprint(*arrays: Any) -> str:
    """Return a SHA-256 over types, shapes and contents of arrays, dense or sparse, or None.

    Examples
    --------
    >>> fingerprint(np.zeros(3), None) == fingerprint(np.zeros(3), None)
    True
    >>> fingerprint(np.zeros(3)) == fingerprint(np.zeros((3, 1)))
    False
    """
    seen = hashlib.sha256()
    for array in arrays:
        if array is None:
            seen.update(b"none;")
        elif scipy.sparse.issparse(array):
            matrix = array.tocsr()
            seen.update(f"csr{matrix.shape};".encode())
            for part in (matrix.indptr, matrix.indices, matrix.data):
                _add(seen, part)
        else:
            _add(seen, np.asarray(array))
    return seen.hexdigest()


def describe_data(data: TrainingData, network: SparseMLP, n_threads: int) -> dict[str, Any]:
    """Return what tells training data apart, as plain values.

    The samples themselves may be anywhere, on disk too.  They are read once, through the same
    door as in training, and weighted sums over groups of features go into a hash: other samples,
    another order of samples or another scaling give another text.
    """
    return {
        "n_samples": data.n_samples,
        "rows": fingerprint(data.rows),
        "n_features": data.samples.n_features,
        "samples": fingerprint(_sums(data, network, n_threads)),
        "targets": fingerprint(data.targets),
        "weights": fingerprint(data.weights),
        "offset": fingerprint(data.offset),
    }


def _show(value: Any) -> str:
    if value is ABSENT:
        return "nothing"
    text = repr(value)
    is_hash = isinstance(value, str) and len(value) == 64
    return text[1:13] + "..." if is_hash else text if len(text) <= 100 else text[:100] + "..."


def _sums(data: TrainingData, network: SparseMLP, n_threads: int) -> Array:
    n_features, dtype = data.samples.n_features, network.dtype
    every = np.arange(n_features)
    topology = Topology.from_pairs((n_features, N_SUMS), every, every % N_SUMS)
    weights = kernels.normal(n_features, 1.0, dtype, seed=_SEED)
    layer = SparseLayer(topology, weights, np.zeros(N_SUMS, dtype=dtype))
    native = SparseMLP([layer]).native("squared_error", n_threads)
    return native.predict(data.samples, scaling=network.scaling)


def _add(seen: Any, array: Array) -> None:
    seen.update(f"{array.dtype.str}{array.shape};".encode())
    if array.dtype.kind in "OU":
        for item in array.ravel().tolist():
            text = str(item).encode("utf-8", "surrogatepass")
            seen.update(f"{len(text)};".encode())
            seen.update(text)
        return
    rows = array.reshape(1, -1) if array.ndim < 2 else array
    for row in rows:  # row by row, so that a memory map is never copied as a whole
        for piece in pieces(np.ascontiguousarray(row)):
            seen.update(piece.view(np.uint8).data)

"""The identity of a training: plan, network and data as plain values, and their differences."""

from __future__ import annotations

import hashlib
import math
from dataclasses import fields, is_dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from ratoon import kernels
from ratoon.arrays import Array
from ratoon.kernels import Scaling
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.storage.rules import chunks
from ratoon.topology import Topology
from ratoon.training import EarlyStopping, TrainingData, TrainingPlan

SCHEDULE_POINTS = 9
ABSENT = object()
N_SUMS = 64
_SEED = 20180619  # arbitrary, and must not change


class ReadsSamples(Protocol):
    """A network, or a part of one, as far as it reads samples."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the computation."""
        ...

    @property
    def scaling(self) -> Scaling:
        """How samples are read."""
        ...


def describe_plan(plan: TrainingPlan) -> dict[str, Any]:
    """Return the parameters of a plan that change results, which the number of threads does not.

    A schedule is a function, which cannot be compared; its values in the course of training can.

    Examples
    --------
    >>> description = describe_plan(TrainingPlan(learning_rate=0.1))
    >>> description["learning_rate"], description["optimizer"]["momentum"]
    (0.1, 0.9)
    """
    found = {
        item.name: to_json(getattr(plan, item.name))
        for item in fields(plan)
        if item.name not in ("n_threads", "schedule", "augment")
    }
    if plan.augment is not None:  # earlier checkpoints know nothing of it
        found["augment"] = to_json(plan.augment)
    last = SCHEDULE_POINTS - 1
    found["schedule"] = [float(plan.schedule(k / last)) for k in range(SCHEDULE_POINTS)]
    return found


def describe_network(network: SparseMLP) -> dict[str, Any]:
    """Return the parts of a network that training does not change."""
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


def to_json(value: Any) -> Any:
    """Convert a value to JSON values: objects to class and fields, others to their names."""
    if type(value) is float and not math.isfinite(value):
        return repr(value)
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        parts = {item.name: to_json(getattr(value, item.name)) for item in fields(value)}
        return {"class": type(value).__name__, **parts}
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return to_json(value.item())  # a NumPy number
    name = getattr(value, "__qualname__", None)  # a function or a class
    return str(name) if name else type(value).__qualname__


def differences(theirs: Any, ours: Any, name: str = "") -> list[str]:
    """Return one line for every difference of two descriptions.

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


def describe_data(data: TrainingData, network: ReadsSamples, n_threads: int) -> dict[str, Any]:
    """Return the identity of training data, as JSON values.

    The samples may be in memory or on disk.  They are read once, by the same code as in training,
    and weighted sums over groups of features are hashed: other samples, another order of samples
    or another scaling give another hash.
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


def _sums(data: TrainingData, network: ReadsSamples, n_threads: int) -> Array:
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
    for row in rows:  # row by row, so that a memory map is not copied as a whole
        for chunk in chunks(np.ascontiguousarray(row)):
            seen.update(chunk.view(np.uint8).data)

"""From dense matrices and other number types to what sparse layers are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ratoon.errors import InvalidParameterError
from ratoon.initialise import connections_wanted
from ratoon.topology import Topology


def largest_entries(
    weight: NDArray[Any], *, density: float | None = None, epsilon: float | None = None
) -> tuple[Topology, NDArray[Any]]:
    """Return the topology of the largest entries of a matrix, inputs x outputs, and the entries.

    Examples
    --------
    >>> topology, values = largest_entries(np.array([[1.0, -5.0], [3.0, 0.0]]), density=0.5)
    >>> topology.rows.tolist(), topology.columns.tolist(), values.tolist()
    ([1, 0], [0, 1], [3.0, -5.0])
    """
    shape = (weight.shape[0], weight.shape[1])
    count = connections_wanted(shape, density=density, epsilon=epsilon)
    magnitude = np.abs(weight).ravel()
    smaller = magnitude.size - count
    positions = np.argpartition(magnitude, smaller)[smaller:] if smaller else np.arange(count)
    topology = Topology.from_positions(shape, positions)
    return topology, np.ascontiguousarray(weight[topology.pairs()])


def as_values(array: Any) -> NDArray[Any]:
    """Return numbers that kernels take; float32 and float64 arrays in C order as they are.

    Examples
    --------
    >>> as_values([1, 2]).dtype
    dtype('float32')
    """
    given = np.asarray(array)
    kind = given.dtype if given.dtype in (np.float32, np.float64) else np.dtype(np.float32)
    values = np.ascontiguousarray(given, dtype=kind)
    return values if values.flags.writeable else values.copy()


def numpy_dtype(dtype: torch.dtype | None) -> np.dtype[Any]:
    """Return NumPy's name of a number type of PyTorch, float32 or float64.

    Examples
    --------
    >>> numpy_dtype(torch.float64)
    dtype('float64')
    """
    kind = torch.get_default_dtype() if dtype is None else dtype
    if kind not in (torch.float32, torch.float64):
        raise InvalidParameterError(f"sparse layers compute in float32 or float64, not {kind}.")
    return np.dtype(np.float64 if kind == torch.float64 else np.float32)


def check_device(device: Any, owner: str) -> None:
    """Raise unless the device is the CPU.

    Examples
    --------
    >>> check_device("cpu", "SparseLinear")
    """
    if device is not None and torch.device(device).type != "cpu":
        raise InvalidParameterError(
            f"{owner}: `device` must be the CPU, got {device!r}.\n"
            "  Its kernels are written for processors; leave the layer there and move its input"
            " and output."
        )

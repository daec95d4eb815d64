"""Handles: the native topology of a module, kept in sync with the module's buffers.

A module stores its topology as tensors, so that `state_dict`, safetensors and optimizers do not
depend on ratoon.  Any code can replace or edit tensors.  Native code therefore never reads them: it
reads a `Topology`, which owns a checked copy, and the handle makes a new one whenever the tensors
have changed.
"""

from __future__ import annotations

import itertools
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from numpy.typing import NDArray

from ratoon.errors import InvalidInputError
from ratoon.topology import Topology

Signals = tuple[NDArray[Any], NDArray[Any]]
Stamp = tuple[Any, ...]

_ids = itertools.count(1)
_handles: WeakValueDictionary[int, TopologyHandle] = WeakValueDictionary()


class TopologyHandle:
    """The native topology of one module, and the signals recorded in it.

    ``token`` is a tensor that identifies the handle.  Operators take only tensors, and a graph of
    `torch.compile` must not depend on the module's current topology; so an operator takes the
    token and looks up the handle when it runs.

    While ``recording`` is true, the backward pass appends the activations and errors of the layer
    to ``recorded``.
    """

    def __init__(self) -> None:
        number = next(_ids)
        self.token = torch.tensor(number)
        self.recording = False
        self.recorded: list[Signals] = []
        self._topology: Topology | None = None
        self._stamps: tuple[Stamp | None, ...] = ()
        self._storages: tuple[Any, ...] = ()
        _handles[number] = self

    def adopt(self, topology: Topology, buffers: TopologyBuffers) -> None:
        """Set the topology; the buffers must describe it."""
        self._topology = topology
        self._stamps = tuple(_stamp(tensor) for tensor in buffers)
        # While the storages are referenced, no other tensor can have the same address.
        self._storages = tuple(tensor.untyped_storage() for tensor in buffers)

    def topology(self, buffers: TopologyBuffers) -> Topology:
        """Return the topology that the buffers describe; check them if they have changed."""
        stamps = tuple(_stamp(tensor) for tensor in buffers)
        if self._topology is not None and None not in stamps and stamps == self._stamps:
            return self._topology
        if self._topology is None or not _describes(buffers, self._topology):
            self._topology = checked_topology(buffers)
        self.adopt(self._topology, buffers)
        return self._topology


TopologyBuffers = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Shape and tiling, first slot of every tile, packed connections."""


def handle_of(token: torch.Tensor) -> TopologyHandle:
    """Return the handle of a token; a new one if its module was deleted."""
    return _handles.get(int(token.item())) or TopologyHandle()


def buffers_of(topology: Topology) -> TopologyBuffers:
    """Return new tensors that describe a topology.

    Examples
    --------
    >>> grid, starts, packed = buffers_of(Topology.from_pairs((4, 3), [0, 2], [1, 0]))
    >>> grid.tolist()[:2], starts.tolist(), packed.tolist()
    ([4, 3], [0, 2], [131072, 1])
    """
    grid = torch.tensor([*topology.shape, *topology.tile, int(topology.grouped)])
    starts = torch.from_numpy(np.array(topology.starts))
    # PyTorch does not fully support unsigned integers; the bits are the same.
    packed = torch.from_numpy(np.array(topology.packed).view(np.int32))
    return grid, starts, packed


def checked_topology(buffers: TopologyBuffers) -> Topology:
    """Return the topology that tensors describe, after checking every entry.

    Raises
    ------
    InvalidInputError
        If they do not describe a topology.
    """
    for name, tensor, dtype in zip(
        ("grid", "starts", "packed"),
        buffers,
        (torch.int64, torch.int64, torch.int32),
        strict=True,
    ):
        if tensor.dtype != dtype or tensor.ndim != 1 or tensor.device.type != "cpu":
            raise InvalidInputError(
                f"`{name}` must be a tensor of one dimension, {dtype}, on the CPU; got"
                f" {tensor.ndim} dimensions, {tensor.dtype}, on {tensor.device}."
            )
    grid, starts, packed = (np.array(tensor.detach().numpy()) for tensor in buffers)
    if grid.size != 5 or grid[4] not in (0, 1):
        raise InvalidInputError(
            "`grid` must hold inputs, outputs, inputs and outputs per tile, and 0 or 1;"
            f" got {grid.tolist()}."
        )
    n_in, n_out, tile_in, tile_out, grouped = grid.tolist()
    return Topology.checked(
        (n_in, n_out), (tile_in, tile_out), bool(grouped), starts, packed.view(np.uint32)
    )


def _stamp(tensor: torch.Tensor) -> Stamp | None:
    """Return a key that changes with the content; None if PyTorch does not count edits."""
    if tensor.is_inference():
        return None
    memory = tensor.data_ptr(), tensor._version
    return *memory, tensor.dtype, tensor.shape, tensor.stride()


def _describes(buffers: TopologyBuffers, topology: Topology) -> bool:
    """Whether edited or replaced tensors still describe the topology (as after a broadcast)."""
    return all(
        given.dtype == own.dtype and torch.equal(given, own)
        for given, own in zip(buffers, buffers_of(topology), strict=True)
    )

"""Ranks: how topologies stay the same when several processes train one model (DDP).

Weights and optimizer state are the same on all ranks, and so is the seed; what differs are the
samples.  Strategies that look at what flowed through a layer are therefore shown what flowed
through it on all ranks.  Then every rank draws the same rewiring, and that is checked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ratoon.errors import RatoonError
from ratoon.evolution.base import Signals
from ratoon.torch.connections import SparseConnections


def group_of(model: torch.nn.Module) -> Any | None:
    """Return the process group that trains the model, or None if this process does it alone."""
    for module in model.modules():
        if isinstance(module, DistributedDataParallel):
            return module.process_group
    return None


def heard_by_all(signals: Signals, group: Any) -> Signals:
    """Return what flowed through a layer on all ranks, in their order.

    Each rank's loss is the mean of its own samples, and DDP takes the mean of the ranks.
    """
    parts: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(parts, signals, group=group)
    inputs, errors = (np.concatenate(kind, axis=1) for kind in zip(*parts, strict=True))
    errors /= len(parts)
    return inputs, errors


def check_agreement(layers: Sequence[SparseConnections], group: Any) -> None:
    """Raise unless all ranks have the same connections and weights."""
    digest = hashlib.sha256()
    for layer in layers:
        digest.update(layer.topology.content_hash().encode())
        digest.update(layer.values.detach().numpy().tobytes())
    mine = int.from_bytes(digest.digest()[:7], "little")
    ends = torch.tensor([mine, -mine])
    dist.all_reduce(ends, dist.ReduceOp.MAX, group=group)
    if ends[0] != -ends[1]:
        raise RatoonError(
            "ranks disagree about the connections after a rewiring.\n"
            "  Give all of them the same seed, strategy and optimizer, and run them on the same"
            " instruction set (RATOON_ISA)."
        )

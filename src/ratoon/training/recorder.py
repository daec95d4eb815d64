"""TopologyRecorder: records every change of a network's connections."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ratoon.arrays import Array
from ratoon.history import EpochRecord
from ratoon.topology import IntArray, Rewiring, Topology
from ratoon.training.callbacks import Callback
from ratoon.training.loop import Training


def compressed(positions: IntArray) -> bytes:
    """Return ascending positions in compressed form: their differences, then zlib.

    Examples
    --------
    >>> len(compressed(np.arange(0, 10**6, 10))) < 2000
    True
    """
    gaps = np.diff(positions, prepend=0)
    width = np.min_scalar_type(int(gaps.max(initial=0)))
    return width.char.encode() + zlib.compress(gaps.astype(width).tobytes(), 6)


def decompressed(data: bytes) -> IntArray:
    """Return the positions that `compressed` was given.

    Examples
    --------
    >>> decompressed(compressed(np.array([3, 70_000])))
    array([    3, 70000])
    """
    gaps = np.frombuffer(zlib.decompress(data[1:]), dtype=np.dtype(data[:1].decode()))
    return np.cumsum(gaps, dtype=np.int64)


@dataclass(frozen=True)
class Change:
    """The changes of one rewiring to one layer: removed and grown positions, compressed.

    A position that was removed and grown again in the same rewiring is in both.
    """

    removed: bytes
    grown: bytes

    @classmethod
    def between(cls, old: Topology, rewiring: Rewiring) -> Change:
        """Return the changes of a rewiring of the topology ``old``."""
        gone = np.ones(old.n_connections, dtype=bool)
        gone[rewiring.origin[~rewiring.is_grown]] = False
        grown = rewiring.topology.positions[rewiring.is_grown]
        return cls(compressed(np.sort(old.positions[gone])), compressed(np.sort(grown)))

    def applied(self, positions: IntArray) -> IntArray:
        """Return ascending positions after the change."""
        left = np.setdiff1d(positions, decompressed(self.removed), assume_unique=True)
        return np.sort(np.concatenate((left, decompressed(self.grown))))


@dataclass
class TopologyRecorder(Callback):
    """Callback that records the first topologies and every change, compressed.

    One to two bytes per changed connection.  Positions are flat and row-major: ``input * n_out +
    output``.  Training takes the general path for rewirings; results are the same.

    Parameters
    ----------
    with_strength : bool, default=False
        Also record the strength of every input after each epoch.

    Examples
    --------
    >>> from ratoon.evolution import SET
    >>> from ratoon.network import SparseMLP
    >>> from ratoon.training import TrainingData, TrainingPlan
    >>> x = np.eye(4, dtype=np.float32)
    >>> recorder = TopologyRecorder()
    >>> training = Training(
    ...     SparseMLP.start((4, 16, 4), density=0.5, seed=0),
    ...     TrainingData.of(x, x, np.float32),
    ...     TrainingPlan(n_epochs=4, evolution=SET()),
    ...     callbacks=[recorder],
    ... )
    >>> training.run()
    >>> recorder.epochs
    [1, 2, 3]
    >>> now = np.sort(training.network.layers[0].topology.positions)
    >>> bool(np.all(recorder.positions_at(3)[0] == now))
    True
    """

    with_strength: bool = False
    shapes: list[tuple[int, int]] = field(default_factory=list)
    start: list[bytes] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    changes: list[list[Change]] = field(default_factory=list)
    strengths: list[Array] = field(default_factory=list)

    needs_rewirings = True

    def __post_init__(self) -> None:
        self._last: list[Topology] = []

    # ------------------------------------------------------------------------------- recording

    def on_fit_begin(self, training: Training) -> None:
        """Record the first topologies; a training that continues adds to the record."""
        topologies = [layer.topology for layer in training.network.layers]
        if not self.start:
            self.shapes = [topology.shape for topology in topologies]
            self.start = [compressed(np.sort(topology.positions)) for topology in topologies]
        self._last = topologies

    def on_rewire(self, training: Training, rewirings: Sequence[Rewiring]) -> None:
        """Record the changes."""
        self.epochs.append(training.epochs_done)
        self.changes.append(
            [Change.between(old, new) for old, new in zip(self._last, rewirings, strict=True)]
        )
        self._last = [rewiring.topology for rewiring in rewirings]

    def on_epoch_end(self, training: Training, record: EpochRecord) -> None:
        """Record the strength of inputs, with ``with_strength``."""
        del record
        if self.with_strength:
            self.strengths.append(training.network.input_strength())

    # --------------------------------------------------------------------------------- reading

    @property
    def n_bytes(self) -> int:
        """Size of the record."""
        kept = sum(map(len, self.start)) + sum(array.nbytes for array in self.strengths)
        return kept + sum(len(c.removed) + len(c.grown) for change in self.changes for c in change)

    def replay(self) -> Iterator[tuple[int, list[IntArray]]]:
        """Yield epoch and positions per layer, at the start (epoch 0) and after every rewiring."""
        layers = [decompressed(data) for data in self.start]
        yield 0, layers
        for epoch, change in zip(self.epochs, self.changes, strict=True):
            layers = [one.applied(p) for one, p in zip(change, layers, strict=True)]
            yield epoch, layers

    def positions_at(self, epoch: int) -> list[IntArray]:
        """Return the positions of each layer at the end of an epoch."""
        found: list[IntArray] = []
        for when, layers in self.replay():
            if when > epoch:
                break
            found = layers
        return found

    def topologies_at(self, epoch: int) -> list[Topology]:
        """Return the topologies at the end of an epoch."""
        return [
            Topology.from_positions(shape, positions)
            for shape, positions in zip(self.shapes, self.positions_at(epoch), strict=True)
        ]

    def births_at(self, epoch: int, layer: int) -> tuple[IntArray, IntArray]:
        """Return positions of a layer at an epoch's end, and the epoch each was grown in.

        First connections count as grown in epoch 0.  The age of a connection is the difference
        to the current epoch.
        """
        positions = decompressed(self.start[layer])
        births = np.zeros(positions.size, dtype=np.int64)
        for when, change in zip(self.epochs, self.changes, strict=True):
            if when > epoch:
                break
            stays = ~np.isin(positions, decompressed(change[layer].removed), assume_unique=True)
            grown = decompressed(change[layer].grown)
            positions = np.concatenate((positions[stays], grown))
            births = np.concatenate((births[stays], np.full(grown.size, when)))
            order = np.argsort(positions)
            positions, births = positions[order], births[order]
        return positions, births

    # ----------------------------------------------------------------------------------- files

    def to_arrays(self) -> dict[str, Array]:
        """Return the record as named arrays, for `numpy.savez` or another file format."""
        arrays: dict[str, Array] = {
            "shapes": np.array(self.shapes, dtype=np.int64).reshape(-1, 2),
            "epochs": np.array(self.epochs, dtype=np.int64),
        }
        for index, data in enumerate(self.start):
            arrays[f"start.{index}"] = np.frombuffer(data, dtype=np.uint8)
        for number, change in enumerate(self.changes):
            for index, one in enumerate(change):
                arrays[f"removed.{number}.{index}"] = np.frombuffer(one.removed, dtype=np.uint8)
                arrays[f"grown.{number}.{index}"] = np.frombuffer(one.grown, dtype=np.uint8)
        if self.strengths:
            arrays["strengths"] = np.stack(self.strengths)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> TopologyRecorder:
        """Return the recorder of such arrays."""
        shapes = [(int(n_in), int(n_out)) for n_in, n_out in arrays["shapes"]]
        strengths = list(arrays["strengths"]) if "strengths" in arrays else []
        layers = range(len(shapes))
        return cls(
            with_strength=bool(strengths),
            shapes=shapes,
            start=[arrays[f"start.{index}"].tobytes() for index in layers],
            epochs=[int(epoch) for epoch in arrays["epochs"]],
            changes=[
                [
                    Change(
                        arrays[f"removed.{number}.{index}"].tobytes(),
                        arrays[f"grown.{number}.{index}"].tobytes(),
                    )
                    for index in layers
                ]
                for number in range(len(arrays["epochs"]))
            ],
            strengths=strengths,
        )

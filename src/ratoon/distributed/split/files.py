"""SplitFolder: a split network in a folder, one file per part, read by any number of ranks.

``split.json`` names the epoch that is complete and describes the network; ``epoch-00000012/`` has
``part-00000.ratoon`` and so on, and ``scaling.ratoon``.  A write that is cut off leaves the epoch
before.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from ratoon.arrays import Array
from ratoon.distributed.communicator import Communicator
from ratoon.distributed.split.network import (
    Column,
    LayerKind,
    SplitNetwork,
    check_parts,
    n_sources,
    own_parts,
    part_of,
)
from ratoon.errors import FormatError, InvalidInputError
from ratoon.history import History
from ratoon.kernels import ACTIVATIONS, Scaling
from ratoon.kernels.types import checked_dtype
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.storage import (
    Document,
    ResumeError,
    history_from_arrays,
    history_to_arrays,
    read_document,
    strict_json,
    write_document,
)
from ratoon.storage.atomic import write_file
from ratoon.storage.identity import describe_plan, differences
from ratoon.storage.rules import MAX_STATES, MAX_WIDTH, Fields, Violation
from ratoon.training import TrainingPlan

MANIFEST = "split.json"
SCALING = "scaling.ratoon"
FORMAT = 1
MAX_MANIFEST_BYTES = 2**22
MAX_PARTS = 2**16
MAX_LAYERS = 500
_KEYS = ("format", "epoch", "widths", "n_parts", "kinds", "dtype", "clip", "plan", "content")


class SplitFolder:
    """A split network in a folder, with the state of its training.

    Parameters
    ----------
    path : path
        Created if needed.  All ranks must see the same folder.
    content : dict, optional
        More JSON values to keep, for instance the names of classes.

    Examples
    --------
    >>> import tempfile
    >>> from ratoon.distributed import SingleRank
    >>> network = SplitNetwork.start((30, 20, 3), 2, SingleRank(), epsilon=5, seed=0)
    >>> with tempfile.TemporaryDirectory() as path:
    ...     SplitFolder(path).write(network, TrainingPlan(), History())
    ...     SplitFolder(path).load(SingleRank()).n_connections == network.n_connections
    True
    """

    def __init__(self, path: str | Path, content: dict[str, Any] | None = None) -> None:
        self.path = Path(path)
        self.content = content or {}

    @property
    def exists(self) -> bool:
        """Whether there is a complete network in the folder."""
        return (self.path / MANIFEST).is_file()

    def write(self, network: SplitNetwork, plan: TrainingPlan, history: History) -> None:
        """Write the parts of this rank; rank 0 then declares the epoch complete.

        The epoch before is deleted afterwards.
        """
        ranks, epoch = network.ranks, len(history)
        place = self._place(epoch)
        if ranks.rank == 0:
            place.mkdir(parents=True, exist_ok=True)
            scaling = network.scaling
            arrays = {"shift": scaling.shift, "scale": scaling.scale}
            present = {name: array for name, array in arrays.items() if array is not None}
            write_document(Document({"split": "scaling"}, present), place / SCALING)
        ranks.gather(None)  # the folder exists
        for part in network.own:
            document = _document_of(network, part, history)
            write_document(document, place / _name(part))
        ranks.gather(None)  # all parts are complete
        if ranks.rank == 0:
            write_file(self.path / MANIFEST, self._manifest(network, plan, epoch))
            for other in self.path.glob("epoch-*"):
                if other != place:
                    with suppress(OSError):
                        shutil.rmtree(other)

    def load(self, ranks: Communicator) -> SplitNetwork:
        """Return the network with the parts of this rank.

        Raises
        ------
        FormatError
            If a file is missing, damaged, or does not fit the others.
        """
        return self._load(self._read_manifest(), ranks)[0]

    def resume(self, network: SplitNetwork, plan: TrainingPlan) -> tuple[int, History]:
        """Give a network the weights of the folder; return completed epochs and their history.

        Without a network in the folder nothing changes.

        Raises
        ------
        ResumeError
            If the folder belongs to another training.
        """
        if not network.ranks.from_first(self.exists):
            return 0, History()
        manifest = self._read_manifest()
        ours = strict_json.parse(self._manifest(network, plan, 0).decode(), max_depth=16)
        compared = ("widths", "n_parts", "kinds", "dtype", "clip", "plan")
        found = differences(
            {key: manifest[key] for key in compared}, {key: ours[key] for key in compared}
        )
        if found:
            raise ResumeError(
                f"{self.path} holds another training:\n  "
                + "\n  ".join(found[:12])
                + "\n  Use another folder, or the parameters of that training."
            )
        loaded, history = self._load(manifest, network.ranks)
        network.columns, network.scaling = loaded.columns, loaded.scaling
        return len(history), history

    def description(self) -> dict[str, Any]:
        """Return the ``content`` with which the folder was written."""
        content: dict[str, Any] = self._read_manifest()["content"]
        return content

    # ------------------------------------------------------------------------------- manifest

    def _place(self, epoch: int) -> Path:
        return self.path / f"epoch-{epoch:08d}"

    def _manifest(self, network: SplitNetwork, plan: TrainingPlan, epoch: int) -> bytes:
        values = {
            "format": FORMAT,
            "epoch": epoch,
            "widths": list(network.widths),
            "n_parts": network.n_parts,
            "kinds": [asdict(kind) for kind in network.kinds],
            "dtype": network.dtype.name,
            "clip": float(network.scaling.clip),
            "plan": describe_plan(plan),
            "content": self.content,
        }
        return (json.dumps(values, indent=1, allow_nan=False) + "\n").encode()

    def _read_manifest(self) -> dict[str, Any]:
        path = self.path / MANIFEST
        try:
            with path.open("rb") as file:
                raw = file.read(MAX_MANIFEST_BYTES + 1)
        except OSError as error:
            raise InvalidInputError(
                f"{self.path} is not a folder with a split network ({error.strerror}).\n"
                f"  Such a folder has a file {MANIFEST}."
            ) from None
        try:
            if len(raw) > MAX_MANIFEST_BYTES:
                raise ValueError(f"larger than {MAX_MANIFEST_BYTES} bytes")
            fields = Fields(strict_json.parse(raw.decode(), max_depth=16), MANIFEST, _KEYS)
            fields.integer("format", FORMAT, FORMAT)
            fields.integer("epoch", 0, 10**8 - 1)
            fields.integer("n_parts", 1, MAX_PARTS)
            fields.choice("dtype", ("float32", "float64"))
            fields.number("clip", 0.0)
            widths = fields.listing("widths", 2, MAX_LAYERS + 1)
            kinds = fields.listing("kinds", len(widths) - 1, len(widths) - 1)
            if not all(type(width) is int and 1 <= width <= MAX_WIDTH for width in widths):
                raise ValueError("widths must be positive integers")
            for index, kind in enumerate(kinds):
                one = Fields(kind, f"kinds[{index}]", LayerKind.__dataclass_fields__)
                one.choice("activation", ACTIVATIONS)
                one.number("slope")
                one.number("dropout", 0.0, 1.0)
            return {key: fields[key] for key in _KEYS}
        except (ValueError, Violation) as error:
            raise FormatError(f"{path}: {error}; the file is damaged.") from None

    # ---------------------------------------------------------------------------------- parts

    def _load(self, manifest: dict[str, Any], ranks: Communicator) -> tuple[SplitNetwork, History]:
        n_parts, widths = manifest["n_parts"], tuple(manifest["widths"])
        check_parts(n_parts, ranks)
        place, history = self._place(manifest["epoch"]), History()
        columns = {}
        for part in own_parts(n_parts, ranks):
            path = place / _name(part)
            document = read_document(path)
            history = _history_of(document, path)
            columns[part] = _columns_of(document, widths, part, n_parts, manifest["dtype"], path)
        if len(history) != manifest["epoch"]:
            raise FormatError(f"{place}: a part is of epoch {len(history)}; the folder is damaged.")
        scaling = read_document(place / SCALING).arrays
        for name, array in scaling.items():
            if array.shape != (widths[0],) or array.dtype.name != manifest["dtype"]:
                raise FormatError(f"{place / SCALING}: {name} does not fit the inputs.")
        kinds = [LayerKind(**kind) for kind in manifest["kinds"]]
        found = Scaling(scaling.get("shift"), scaling.get("scale"), float(manifest["clip"]))
        return SplitNetwork(widths, n_parts, ranks, kinds, columns, found), history


def _name(part: int) -> str:
    return f"part-{part:05d}.ratoon"


def _document_of(network: SplitNetwork, part: int, history: History) -> Document:
    arrays, blocks, networks = history_to_arrays(history), [], []
    for index, column in enumerate(network.columns[part]):
        arrays[f"bias/{index}"] = column.bias
        for k, array in enumerate(column.bias_state):
            arrays[f"bias_state/{index}/{k}"] = array
        for source, block in enumerate(column.blocks):
            if block is not None:
                blocks.append([index, source])
                networks.append(SparseMLP([block]))
    config = {"split": "part", "part": part, "n_parts": network.n_parts, "blocks": blocks}
    return Document(config, arrays, networks)


def _history_of(document: Document, path: Path) -> History:
    arrays = {name: array for name, array in document.arrays.items() if name.startswith("history/")}
    try:
        return history_from_arrays(arrays)
    except KeyError:
        raise FormatError(f"{path}: its history is incomplete; the file is damaged.") from None


def _columns_of(
    document: Document, widths: tuple[int, ...], part: int, n_parts: int, dtype: str, path: Path
) -> list[Column]:
    """Return one column per layer; every shape is checked."""
    expected = {"split": "part", "part": part, "n_parts": n_parts}
    config = document.config
    places = config.get("blocks")
    if {key: config.get(key) for key in expected} != expected or not isinstance(places, list):
        raise FormatError(f"{path} is not part {part} of {n_parts} of this network.")
    by_place: dict[tuple[int, int], SparseLayer] = {}
    for place, network in zip(places, document.networks, strict=False):
        if isinstance(place, list) and len(place) == 2 and len(network.layers) == 1:
            by_place[tuple(place)] = network.layers[0]
    columns = []
    for index, (n_in, n_out) in enumerate(pairwise(widths)):
        sources = n_sources(index, n_parts)
        width = _length(part_of(n_out, part, n_parts))
        bias = _checked(document.arrays.get(f"bias/{index}"), width, dtype, path)
        blocks: list[SparseLayer | None] = []
        for source in range(sources):
            shape = (_length(part_of(n_in, source, sources)), width)
            block = by_place.pop((index, source), None)
            if shape[0] * shape[1] == 0:
                blocks.append(None)
                continue
            if block is None or block.shape != shape or block.bias.dtype.name != dtype:
                raise FormatError(f"{path}: layer {index + 1} does not fit the other parts.")
            blocks.append(block)
        n_states = sum(f"bias_state/{index}/{k}" in document.arrays for k in range(MAX_STATES))
        if any(len(block.state) != n_states for block in blocks if block is not None):
            raise FormatError(f"{path}: the optimizer state of layer {index + 1} is incomplete.")
        columns.append(
            Column(
                blocks,
                bias,
                [
                    _checked(document.arrays.get(f"bias_state/{index}/{k}"), width, dtype, path)
                    for k in range(n_states)
                ],
            )
        )
    if by_place:
        raise FormatError(f"{path} holds connections of no layer of this network.")
    return columns


def _length(part: slice) -> int:
    return int(part.stop - part.start)


def _checked(array: Array | None, size: int, dtype: str, path: Path) -> Array:
    if array is None or array.shape != (size,) or array.dtype != checked_dtype(dtype):
        raise FormatError(f"{path}: biases do not fit the other parts.")
    return array

"""Document: the content of a file in memory; and its outline, which is all but array values."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.network import SparseMLP
from ratoon.storage import strict_json
from ratoon.storage.container import CODES, DTYPES, Tensor
from ratoon.storage.networks import NetworkOutline, network_arrays
from ratoon.storage.rules import (
    EXACT_INTEGER,
    MAX_ARRAYS,
    MAX_CONFIG_DEPTH,
    MAX_NAME,
    MAX_NETWORKS,
    MAX_RANK,
    TEXT_FACTOR,
    TEXT_SLACK,
    Fields,
    Violation,
    check_values,
    require,
)

NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_./-]{{0,{MAX_NAME - 1}}}")
TEXT = "text"
MAX_CHARS = 2**20


@dataclass(frozen=True)
class ArrayOutline:
    """Type and shape of a named array.

    ``type`` is a code of safetensors or ``"text"``.  ``chars`` is the width of text that NumPy
    keeps at a fixed width; 0 for Python strings in an object array, and for numbers.
    """

    type: str
    shape: tuple[int, ...]
    chars: int = 0

    @classmethod
    def of(cls, name: str, array: Array) -> ArrayOutline:
        """Return the outline of an array; raise if it cannot be stored.

        Examples
        --------
        >>> ArrayOutline.of("classes", np.array(["lung", "skin"]))
        ArrayOutline(type='text', shape=(2,), chars=4)
        """
        if not NAME.fullmatch(name):
            raise InvalidInputError(f"{name!r} cannot be the name of an array.")
        kind = array.dtype.newbyteorder("=")
        if kind in CODES:
            return cls(CODES[kind], array.shape)
        if kind.kind == "U":
            return cls(TEXT, array.shape, max(1, kind.itemsize // 4))
        if kind.kind == "O" and all(isinstance(item, str) for item in array.ravel()):
            return cls(TEXT, array.shape)
        raise InvalidInputError(
            f"the array {name!r} of type {array.dtype} cannot be stored; numbers, truth values and"
            " strings can."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the outline as the configuration holds it."""
        return {"type": self.type, "shape": list(self.shape), "chars": self.chars}

    @classmethod
    def parse(cls, value: Any, name: str) -> ArrayOutline:
        """Read an outline from the configuration: rule 5."""
        require(NAME.fullmatch(name) is not None, 5, "config: an array has an impossible name")
        fields = Fields(value, f"arrays.{name}", ("type", "shape", "chars"))
        kind = fields.choice("type", {*DTYPES, TEXT})
        chars = fields.integer("chars", 0, MAX_CHARS if kind == TEXT else 0)
        shape = fields.listing("shape", 0, MAX_RANK)
        for size in shape:
            holds = type(size) is int and 0 <= size <= EXACT_INTEGER
            require(holds, 5, f"config: arrays.{name}.shape must hold sizes")
        return cls(kind, tuple(shape), chars)

    @property
    def expanded_bytes(self) -> int:
        """Bytes of memory for text of fixed width, which may be more than the file holds."""
        return math.prod(self.shape) * self.chars * 4

    def tensors(self, name: str, header: dict[str, Tensor] | None = None) -> dict[str, Tensor]:
        """Return the tensors of the array; the length of text is in the header only."""
        if self.type != TEXT:
            return {f"arrays.{name}": Tensor(self.type, self.shape)}
        n_bytes = (header or {}).get(f"texts.{name}.bytes", Tensor("U8", (0,)))
        require(len(n_bytes.shape) == 1, 7, f"the text of {name!r} is not one-dimensional")
        return {
            f"texts.{name}.offsets": Tensor("I64", (math.prod(self.shape) + 1,)),
            f"texts.{name}.bytes": Tensor("U8", n_bytes.shape),
        }

    def encode(self, name: str, array: Array) -> dict[str, Array]:
        """Return the array's tensors."""
        if self.type != TEXT:
            return {f"arrays.{name}": array}
        try:
            encoded = [str(item).encode() for item in array.ravel()]
        except UnicodeEncodeError:
            raise InvalidInputError(f"the array {name!r} holds text that is not Unicode.") from None
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(item) for item in encoded], out=offsets[1:])
        return {
            f"texts.{name}.offsets": offsets,
            f"texts.{name}.bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        }

    def build(self, name: str, tensors: dict[str, Array]) -> Array:
        """Build the array, removing its tensors from ``tensors``: rule 12."""
        if self.type != TEXT:
            array = tensors.pop(f"arrays.{name}")
            check_values(f"arrays.{name}", array)
            return array
        offsets = tensors.pop(f"texts.{name}.offsets")
        raw = tensors.pop(f"texts.{name}.bytes").tobytes()
        holds = offsets[0] == 0 and offsets[-1] == len(raw) and bool((np.diff(offsets) >= 0).all())
        require(holds, 12, f"the offsets of the text {name!r} do not fit its bytes")
        places = offsets.tolist()
        try:
            found = [raw[first:last].decode() for first, last in pairwise(places)]
        except UnicodeDecodeError:
            raise Violation(12, f"the text {name!r} is not UTF-8") from None
        if self.chars:
            fits = all(len(item) <= self.chars and not item.endswith("\0") for item in found)
            require(fits, 12, f"the text {name!r} does not fit {self.chars} characters")
        array = np.empty(len(found), dtype=f"<U{self.chars}" if self.chars else object)
        array[:] = found
        return array.reshape(self.shape)


def text_array(texts: Sequence[str]) -> Array:
    r"""Return an array of Python strings.

    NumPy's own text type pads every string to the longest and drops NUL characters at the end.

    Examples
    --------
    >>> text_array(["a\0", "b"]).tolist()
    ['a\x00', 'b']
    """
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def check_storable(array: Array, what: str) -> None:
    r"""Raise if an array could not be written to a file, or not be read again.

    Examples
    --------
    >>> check_storable(np.array(["lung", "\ud800"]), "class names")
    Traceback (most recent call last):
    ...
    ratoon.errors.InvalidInputError: class names: '\ud800' is not valid Unicode (it has a lone
    surrogate), so the model could not be saved.
      Replace it first, for example with text.encode("utf-8", "replace").decode().
    """
    try:
        outline = ArrayOutline.of("checked", array)
    except InvalidInputError:
        raise InvalidInputError(
            f"{what} of type {array.dtype} could not be saved with the model.\n"
            "  Convert them to text, integers, truth values or float64."
        ) from None
    if outline.type != TEXT:
        return
    for text in array.ravel():
        if not strict_json.is_text(text):
            raise InvalidInputError(
                f"{what}: {text[:40]!r} is not valid Unicode (it has a lone surrogate), so the"
                " model could not be saved.\n"
                '  Replace it first, for example with text.encode("utf-8", "replace").decode().'
            )
    if outline.chars > MAX_CHARS or outline.expanded_bytes > TEXT_SLACK:
        raise InvalidInputError(
            f"{what} as text of {outline.chars} characters each could not be saved with the model:"
            f" the limits are {MAX_CHARS} characters, and {TEXT_SLACK} bytes in all.\n"
            "  Shorten them, or pass Python strings in an array with dtype=object."
        )


@dataclass(frozen=True, eq=False)
class Document:
    """Content of one file: a configuration, named arrays and networks.

    Their meaning is up to the caller, for instance an estimator or an unfinished training.

    Parameters
    ----------
    config : dict
        JSON values: dictionaries with string keys, lists, strings, finite numbers, truth
        values, None.
    arrays : dict of ndarray
        Finite numbers, truth values or strings, by name.
    networks : list of SparseMLP
        With the optimizer's state, if they have one.
    kind : {"model", "checkpoint"}
        A model can be read by every later version; a checkpoint only by the same minor version.
    """

    config: dict[str, Any]
    arrays: dict[str, Array] = field(default_factory=dict)
    networks: list[SparseMLP] = field(default_factory=list)
    kind: str = "model"

    def without_optimizer(self) -> Document:
        """Return the document with the same networks, without their optimizer state."""
        bare = [
            SparseMLP(
                [replace(layer, state=[], bias_state=[]) for layer in network.layers],
                network.scaling,
            )
            for network in self.networks
        ]
        return replace(self, networks=bare)


@dataclass(frozen=True)
class Outline:
    """The configuration in a file: all of a document but the values of arrays."""

    content: dict[str, Any]
    arrays: dict[str, ArrayOutline]
    networks: tuple[NetworkOutline, ...]

    @classmethod
    def of(cls, document: Document) -> Outline:
        """Return the outline of a document; raise if it cannot be stored."""
        strict_json.check_plain(document.config, "config")
        if type(document.config) is not dict:
            raise InvalidInputError("the configuration must be a dictionary.")
        return cls(
            document.config,
            {name: ArrayOutline.of(name, array) for name, array in document.arrays.items()},
            tuple(NetworkOutline.of(network) for network in document.networks),
        )

    def to_text(self) -> str:
        """Return the configuration as JSON text."""
        return strict_json.canonical(
            {
                "content": self.content,
                "arrays": {name: outline.to_json() for name, outline in self.arrays.items()},
                "networks": [outline.to_json() for outline in self.networks],
            }
        )

    @classmethod
    def parse(cls, text: str, file_bytes: int) -> Outline:
        """Read the configuration: rules 3, 5 and 9."""
        try:
            value = strict_json.parse(text, max_depth=MAX_CONFIG_DEPTH)
        except ValueError as error:
            raise Violation(3, f"the configuration is {error}") from None
        fields = Fields(value, "the configuration", ("content", "arrays", "networks"))
        outline = cls(
            fields.mapping("content", len(text)),
            {
                name: ArrayOutline.parse(item, name)
                for name, item in fields.mapping("arrays", MAX_ARRAYS).items()
            },
            tuple(
                NetworkOutline.parse(item, f"networks[{index}]")
                for index, item in enumerate(fields.listing("networks", 0, MAX_NETWORKS))
            ),
        )
        expanded = sum(array.expanded_bytes for array in outline.arrays.values())
        limit = TEXT_SLACK + TEXT_FACTOR * file_bytes
        require(expanded <= limit, 5, f"{expanded} bytes of text where {limit} are allowed")
        return outline

    def tensors(self, header: dict[str, Tensor] | None = None) -> dict[str, Tensor]:
        """Return all tensors that the file must have."""
        found: dict[str, Tensor] = {}
        for index, network in enumerate(self.networks):
            found.update(network.tensors(f"networks.{index}"))
        for name, array in self.arrays.items():
            found.update(array.tensors(name, header))
        return found

    def encode(self, document: Document) -> dict[str, Array]:
        """Return the arrays of all tensors; large ones are not copied."""
        found: dict[str, Array] = {}
        for index, network in enumerate(document.networks):
            found.update(network_arrays(network, f"networks.{index}"))
        for name, outline in self.arrays.items():
            found.update(outline.encode(name, document.arrays[name]))
        return {name: np.asarray(array, order="C") for name, array in found.items()}

    def build(self, kind: str, tensors: dict[str, Array]) -> Document:
        """Build the document, removing its arrays from ``tensors``: rules 10 to 13."""
        networks = [
            network.build(f"networks.{index}", tensors)
            for index, network in enumerate(self.networks)
        ]
        arrays = {name: outline.build(name, tensors) for name, outline in self.arrays.items()}
        return Document(self.content, arrays, networks, kind)

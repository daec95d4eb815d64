"""Named arrays in a file: numbers as they are, text as UTF-8 bytes and offsets."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.storage.container import CODES, DTYPES, Tensor
from ratoon.storage.fields import Fields
from ratoon.storage.limits import EXACT_INTEGER, MAX_NAME, MAX_RANK
from ratoon.storage.rules import Violation, require
from ratoon.storage.values import check_values

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
        """Return the outline of an array, or say why it cannot be stored.

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
        """Return the tensors the array must have; the length of text only the header knows."""
        if self.type != TEXT:
            return {f"arrays.{name}": Tensor(self.type, self.shape)}
        n_bytes = (header or {}).get(f"texts.{name}.bytes", Tensor("U8", (0,)))
        require(len(n_bytes.shape) == 1, 7, f"the text of {name!r} is no row of bytes")
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
        """Take the array's tensors out of ``tensors`` and make it: rule 12."""
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

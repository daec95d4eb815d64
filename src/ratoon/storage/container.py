"""The safetensors container: eight bytes of length, a JSON header, then the tensors' bytes.

Stricter than the safetensors library: every tensor is aligned, padding is spaces only, and there
are no unknown fields.  Every file that is written here can be read by the library.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from ratoon.storage import strict_json
from ratoon.storage.rules import (
    EXACT_INTEGER,
    MAX_DEPTH,
    MAX_HEADER_BYTES,
    MAX_RANK,
    MAX_TENSORS,
    Violation,
    require,
)

LENGTH_BYTES = 8
METADATA = "__metadata__"
DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
    "U64": np.dtype("<u8"),
    "F32": np.dtype("<f4"),
    "I32": np.dtype("<i4"),
    "U32": np.dtype("<u4"),
    "F16": np.dtype("<f2"),
    "I16": np.dtype("<i2"),
    "U16": np.dtype("<u2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
CODES = {dtype.newbyteorder("="): code for code, dtype in DTYPES.items()}
FORMAT = "ratoon"
FORMAT_VERSION = 1
KINDS = ("model", "checkpoint")
KEYS = {"format", "format_version", "kind", "writer", "config", "digest"}
ZERO_DIGEST = "sha256:" + "0" * 64
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
WRITER = re.compile(r"[ -~]{1,100}")


@dataclass(frozen=True)
class Tensor:
    """Type and shape of an array in a file."""

    code: str
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Number type, with the byte order of the file."""
        return DTYPES[self.code]

    @property
    def n_bytes(self) -> int:
        """Bytes in the file."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Header:
    """A parsed header: metadata, and tensors with their positions in the file."""

    metadata: dict[str, str]
    tensors: dict[str, Tensor]
    spans: dict[str, tuple[int, int]]


def build_header(metadata: dict[str, str], tensors: dict[str, Tensor]) -> tuple[bytes, list[str]]:
    """Return the length and header as bytes, and the names of the tensors in file order.

    Wide numbers come first, so that every tensor lies on a multiple of its number's size.

    Examples
    --------
    >>> raw, order = build_header({}, {"a": Tensor("U8", (3,)), "b": Tensor("F32", (1,))})
    >>> order
    ['b', 'a']
    >>> len(raw) % 8
    0
    """
    order = sorted(tensors, key=lambda name: -tensors[name].dtype.itemsize)
    parts = [f'"{METADATA}":{strict_json.canonical(metadata)}']
    begin = 0
    for name in order:
        tensor = tensors[name]
        end = begin + tensor.n_bytes
        entry = {"dtype": tensor.code, "shape": tensor.shape, "data_offsets": [begin, end]}
        parts.append(f"{strict_json.canonical(name)}:{strict_json.canonical(entry)}")
        begin = end
    text = "{" + ",".join(parts) + "}"
    text += " " * (-len(text) % 8)
    return len(text).to_bytes(LENGTH_BYTES, "little") + text.encode("ascii"), order


def check_length(raw: bytes, file_bytes: int) -> int:
    """Return the length of the header from the first eight bytes: rule 2."""
    length = int.from_bytes(raw, "little")
    require(2 <= length <= MAX_HEADER_BYTES, 2, f"a header of {length} bytes")
    require(length % 8 == 0, 2, f"a header of {length} bytes, not a multiple of 8")
    require(length <= file_bytes - LENGTH_BYTES, 2, "the header is longer than the file")
    return length


def parse_header(raw: bytes) -> Header:
    """Parse a header: rule 3, and the form of every entry."""
    try:
        text = raw.decode("utf-8", errors="strict")
    except UnicodeDecodeError as error:
        raise Violation(3, f"the header is not UTF-8: {error.reason}") from None
    require(text.startswith("{"), 3, "the header does not begin with a brace")
    stripped = text.rstrip(" ")
    require(stripped.endswith("}"), 3, "the header does not end with a brace")
    require(len(text) - len(stripped) < 8, 3, "the header has too much padding")
    try:
        entries = strict_json.parse(stripped, max_depth=MAX_DEPTH)
    except ValueError as error:
        raise Violation(3, f"the header is {error}") from None
    metadata = entries.pop(METADATA, None)
    require(isinstance(metadata, dict), 4, "there is no metadata")
    require(
        all(isinstance(value, str) for value in metadata.values()),
        4,
        "the metadata has values that are not strings",
    )
    require(len(entries) <= MAX_TENSORS, 6, f"{len(entries)} tensors")
    places = {name: _parse_entry(name, entry) for name, entry in entries.items()}
    return Header(
        metadata,
        {name: tensor for name, (tensor, _) in places.items()},
        {name: span for name, (_, span) in places.items()},
    )


def check_tensors(header: Header, expected: dict[str, Tensor], payload_bytes: int) -> list[str]:
    """Return the tensors' names in file order, once rules 6, 7 and 8 hold."""
    if missing := sorted(expected.keys() - header.tensors.keys()):
        raise Violation(6, f"the tensor {missing[0]!r} is missing")
    if extra := sorted(header.tensors.keys() - expected.keys()):
        raise Violation(6, f"there is an unexpected tensor {_short(extra[0])}")
    for name, tensor in header.tensors.items():
        wanted = expected[name]
        require(
            tensor == wanted,
            7,
            f"the tensor {name!r} is {tensor.code} of shape {list(tensor.shape)},"
            f" not {wanted.code} of shape {list(wanted.shape)}",
        )
        begin, end = header.spans[name]
        require(end - begin == tensor.n_bytes, 7, f"the tensor {name!r} has a wrong length")
        require(begin % tensor.dtype.itemsize == 0, 7, f"the tensor {name!r} is not aligned")
    order = sorted(header.spans, key=header.spans.__getitem__)
    at = 0
    for name in order:
        begin, end = header.spans[name]
        require(begin == at, 8, f"the tensor {name!r} begins at {begin}, not at {at}")
        at = end
    require(at == payload_bytes, 8, f"{at} bytes of tensors in {payload_bytes} bytes of file")
    return order


@cache
def writer() -> str:
    """Return the name and version that this library writes into its files.

    Examples
    --------
    >>> writer().startswith("ratoon ")
    True
    """
    return f"ratoon {version('ratoon')}"


def make_metadata(kind: str, config: str) -> dict[str, str]:
    """Return the metadata of a new file, with a digest of zeros."""
    return {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "kind": kind,
        "writer": writer(),
        "config": config,
        "digest": ZERO_DIGEST,
    }


def check_metadata(metadata: dict[str, str]) -> None:
    """Check rule 4, all but the digest itself.

    The version is checked before the set of keys, so that a file of a later version is not
    mistaken for a damaged one.

    Examples
    --------
    >>> check_metadata({**make_metadata("model", "{}"), "format_version": "2"})
    Traceback (most recent call last):
    ...
    ratoon.storage.rules.Violation: format version 2 is newer than this library reads (1);
    upgrade ratoon (rule 4, metadata, version and digest)
    """
    require(metadata.get("format") == FORMAT, 4, "this is not a ratoon file")
    number = metadata.get("format_version", "")
    require(re.fullmatch(r"[1-9][0-9]{0,8}", number) is not None, 4, "no format version")
    require(
        int(number) <= FORMAT_VERSION,
        4,
        f"format version {number} is newer than this library reads ({FORMAT_VERSION});"
        " upgrade ratoon",
    )
    require(metadata.keys() == KEYS, 4, f"the metadata must have the keys {sorted(KEYS)}")
    require(metadata["kind"] in KINDS, 4, f"the kind must be one of {KINDS}")
    require(WRITER.fullmatch(metadata["writer"]) is not None, 4, "the writer has no name")
    require(DIGEST.fullmatch(metadata["digest"]) is not None, 4, "there is no digest")
    if metadata["kind"] == "checkpoint":
        _check_same_minor(metadata["writer"])


def digest_place(header: bytes, digest: str) -> int:
    """Return where in the header the 64 characters of the digest begin.

    They must occur exactly once, so that all readers set the same characters to zero.
    """
    raw = digest.encode("ascii")
    if header.count(raw) != 1:
        raise Violation(4, "the digest does not appear exactly once in the header")
    return header.index(raw) + len("sha256:")


def _parse_entry(name: str, entry: Any) -> tuple[Tensor, tuple[int, int]]:
    shown = _short(name)
    require(
        isinstance(entry, dict) and entry.keys() == {"dtype", "shape", "data_offsets"},
        7,
        f"the tensor {shown} must have dtype, shape and data_offsets",
    )
    code, shape, span = entry["dtype"], entry["shape"], entry["data_offsets"]
    require(isinstance(code, str) and code in DTYPES, 7, f"the tensor {shown}: unknown dtype")
    require(_are_sizes(shape), 7, f"the tensor {shown}: the shape is not a list of sizes")
    require(len(shape) <= MAX_RANK, 7, f"the tensor {shown} has {len(shape)} dimensions")
    require(
        _are_sizes(span) and len(span) == 2 and span[0] <= span[1],
        7,
        f"the tensor {shown}: data_offsets are not a pair of positions",
    )
    return Tensor(code, tuple(shape)), (span[0], span[1])


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(
        type(item) is int and 0 <= item <= EXACT_INTEGER for item in value
    )


def _short(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:80] + "...")


def _check_same_minor(written_by: str) -> None:
    theirs, ours = _minor(written_by), _minor(writer())
    require(
        theirs is not None and theirs == ours,
        4,
        f"the checkpoint was written by {written_by}, and a checkpoint can be continued only by"
        f" the same minor version (this is {writer()}); models have no such limit",
    )


def _minor(name: str) -> str | None:
    found = re.match(r"ratoon ([0-9]{1,6}\.[0-9]{1,6})(?![0-9])", name)
    return found.group(1) if found else None

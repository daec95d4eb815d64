"""The six strings of metadata: what the file is, who wrote it, and a digest of all its bytes."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version

from ratoon.storage.rules import Violation, require

FORMAT = "ratoon"
FORMAT_VERSION = 1
KINDS = ("model", "checkpoint")
KEYS = {"format", "format_version", "kind", "writer", "config", "digest"}
ZERO_DIGEST = "sha256:" + "0" * 64
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
WRITER = re.compile(r"[ -~]{1,100}")


@cache
def writer() -> str:
    """Return how this library signs its files.

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

    The version is looked at before the set of keys, so that a file of a later version is told
    from a damaged one.

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
    require(WRITER.fullmatch(metadata["writer"]) is not None, 4, "the writer is not named")
    require(DIGEST.fullmatch(metadata["digest"]) is not None, 4, "there is no digest")
    if metadata["kind"] == "checkpoint":
        _check_same_minor(metadata["writer"])


def digest_place(header: bytes, digest: str) -> int:
    """Return where in the header the 64 characters of the digest begin.

    They must be there once and only once, so that all readers set the same characters to zero.
    """
    raw = digest.encode("ascii")
    if header.count(raw) != 1:
        raise Violation(4, "the digest does not appear exactly once in the header")
    return header.index(raw) + len("sha256:")


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

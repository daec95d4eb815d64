"""Write documents in one pass over the arrays, without a second copy of them in memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.storage.atomic import PathLike, replace_file, write_all
from ratoon.storage.container import (
    CODES,
    DTYPES,
    KINDS,
    LENGTH_BYTES,
    ZERO_DIGEST,
    Tensor,
    build_header,
    check_length,
    check_metadata,
    check_tensors,
    digest_place,
    make_metadata,
    parse_header,
)
from ratoon.storage.document import Document, Outline
from ratoon.storage.networks import check_layer_values
from ratoon.storage.read import verify_file
from ratoon.storage.rules import CHUNK_BYTES, Violation, chunks

SMALL_BYTES = 2**16


def write_document(document: Document, path: PathLike, *, optimizer: bool = True) -> None:
    """Save a document; the file at ``path`` is replaced as a whole or not at all.

    Parameters
    ----------
    document : Document
        What to save.  Equal documents make equal files, byte for byte.
    path : path
        The file to write.  Its directory must exist and be writable.
    optimizer : bool, default=True
        Also save the optimizer's state, which is needed to continue training exactly.  Without it
        the file of a network trained with momentum is a third smaller.

    Raises
    ------
    InvalidInputError
        If the document cannot be stored, for instance because a weight is not finite.
    SaveError
        If the file cannot be written; a file that existed before is unchanged.

    Examples
    --------
    >>> import tempfile
    >>> from ratoon.network import SparseMLP
    >>> from ratoon.storage import read_document
    >>> network = SparseMLP.start((8, 4, 2), density=0.5, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.ratoon")
    ...     write_document(Document({"note": "hello"}, networks=[network]), path)
    ...     found = read_document(path)
    >>> found.config, found.networks[0].widths
    ({'note': 'hello'}, (8, 4, 2))
    """
    if document.kind not in KINDS:
        raise InvalidParameterError(f"`kind` must be one of {KINDS}, got {document.kind!r}.")
    if document.kind == "checkpoint":
        replace_file(path, _filler(document), check=verify_file)
    else:
        replace_file(path, _filler(document if optimizer else document.without_optimizer()))


def document_to_bytes(document: Document) -> bytes:
    """Return the file of a document as bytes, without writing it.

    Raises
    ------
    InvalidInputError
        If the document cannot be stored.

    Examples
    --------
    >>> from ratoon.storage import document_from_bytes
    >>> document_from_bytes(document_to_bytes(Document({"note": "hello"}))).config
    {'note': 'hello'}
    """
    try:
        header, arrays = lay_out(document)
    except Violation as violation:
        raise InvalidInputError(f"this cannot be saved: {violation}.") from None
    gathered = bytearray()
    digest = stream(header, arrays, gathered.extend)
    place = digest_place(header, ZERO_DIGEST)
    gathered[place : place + len(digest)] = digest.encode("ascii")
    return bytes(gathered)


def _filler(document: Document) -> Callable[[int], None]:
    try:
        header, arrays = lay_out(document)
    except Violation as violation:
        raise InvalidInputError(f"this cannot be saved: {violation}.") from None

    def fill(descriptor: int) -> None:
        gathered = bytearray()

        def write(data: bytes | memoryview) -> None:
            # Small arrays are written together, large ones without a copy.
            if len(data) < SMALL_BYTES:
                gathered.extend(data)
            if len(data) >= SMALL_BYTES or len(gathered) > CHUNK_BYTES:
                write_all(descriptor, gathered)
                gathered.clear()
            if len(data) >= SMALL_BYTES:
                write_all(descriptor, data)

        digest = stream(header, arrays, write)
        write_all(descriptor, gathered)
        os.lseek(descriptor, digest_place(header, ZERO_DIGEST), os.SEEK_SET)
        write_all(descriptor, digest.encode("ascii"))

    return fill


def lay_out(document: Document) -> tuple[bytes, list[Array]]:
    """Return the header, with a digest of zeros, and the arrays that follow it, in order.

    The header is checked by the rules of reading, so that nothing is written that cannot be
    loaded.
    """
    outline = Outline.of(document)
    arrays = outline.encode(document)
    tensors = {
        name: Tensor(CODES[array.dtype.newbyteorder("=")], array.shape)
        for name, array in arrays.items()
    }
    for name, array in arrays.items():
        check_layer_values(name, array)
    raw, order = build_header(make_metadata(document.kind, outline.to_text()), tensors)
    payload = sum(tensor.n_bytes for tensor in tensors.values())
    check_length(raw[:LENGTH_BYTES], len(raw) + payload)
    header = parse_header(raw[LENGTH_BYTES:])
    check_metadata(header.metadata)
    found = Outline.parse(header.metadata["config"], len(raw) + payload)
    check_tensors(header, found.tensors(header.tensors), payload)
    digest_place(raw, ZERO_DIGEST)
    return raw, [arrays[name] for name in order]


def stream(header: bytes, arrays: list[Array], write: Callable[[bytes | memoryview], None]) -> str:
    """Pass all bytes to ``write`` in chunks, and return their SHA-256."""
    seen = hashlib.sha256(header)
    write(header)
    for array in arrays:
        code = CODES[array.dtype.newbyteorder("=")]
        for chunk in chunks(array):
            # No copy where the machine has the byte order of the file.
            data = chunk.astype(DTYPES[code], copy=False).view(np.uint8).data
            seen.update(data)
            write(data)
    return seen.hexdigest()

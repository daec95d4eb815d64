"""How large the parts of a file may be.

The limits bound what a hostile file can make a reader do before it is refused: memory never
exceeds a small multiple of the file's own size.
"""

from __future__ import annotations

MIB = 2**20
GIB = 2**30

MAX_FILE_BYTES = 64 * GIB
MAX_HEADER_BYTES = MIB
MAX_DEPTH = 8
"""Of the header."""
MAX_CONFIG_DEPTH = 16
MAX_TENSORS = 4096
MAX_LAYERS = 1023
"""Of one network: 1024 widths."""
MAX_NETWORKS = 1024
MAX_WIDTH = 2**31 - 1
MAX_TILE = 2**16
MAX_STATES = 2
MAX_RANK = 8
MAX_ARRAYS = 1024
MAX_NAME = 100
MAX_NUMBER = 1e30
"""Of a slope or a clip: well inside float32."""
EXACT_INTEGER = 2**53
"""Largest integer that every reader of JSON keeps exactly."""

TEXT_SLACK = 64 * MIB
TEXT_FACTOR = 3
"""Text of fixed width may take up to TEXT_SLACK + TEXT_FACTOR * file size in memory."""

CHUNK_BYTES = MIB
"""Read, written, hashed and looked at in pieces of this size, which stay in cache."""

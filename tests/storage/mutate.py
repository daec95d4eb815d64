"""Structured mutants: files that are wrong in one or two places and sealed again.

Used in the tests with a few thousand mutants, and in `tests/soak` with as many as time allows.
"""

import json
from copy import deepcopy

import numpy as np

from ratoon.storage.container import DTYPES, LENGTH_BYTES, Tensor, build_header
from tests.storage.cases import seal

INTEGERS = [
    *(0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 32, 64, 255, 256, 512, 4095, 65_535, 65_536, 65_537),
    *(-1, -(2**31), 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**53 + 1, 2**63 - 1, 2**63),
    *(2**64 - 1, 2**64, 10**30),
]
VALUES = [
    *(None, True, False, "", "relu", "he", "float64", "text", "F32", "\x00", "\ud800", "é" * 50),
    *([], {}, [[]], [1, 2], {"a": 1}, 0.5, -0.0, 1e-300, 1e30, 1e300, 0.999999999999, 3.0),
]
FLOATS = [np.nan, np.inf, -np.inf, -0.0, 1e-45, 3e38, -3e38, 1e30, 0.0, 1.0]


class Parts:
    """A file taken apart: header, configuration, and the bytes of every tensor."""

    def __init__(self, raw):
        length = int.from_bytes(raw[:LENGTH_BYTES], "little")
        payload = raw[LENGTH_BYTES + length :]
        self.header = json.loads(raw[LENGTH_BYTES : LENGTH_BYTES + length])
        self.metadata = self.header.pop("__metadata__")
        self.config = json.loads(self.metadata["config"])
        self.arrays = {}
        for name, entry in self.header.items():
            first, last = entry["data_offsets"]
            data = np.frombuffer(payload[first:last], dtype=DTYPES[entry["dtype"]])
            self.arrays[name] = data.reshape(entry["shape"]).copy()

    def joined(self):
        """Put the parts together so that all but what was changed is right."""
        tensors = {name: Tensor(code_of(a), a.shape) for name, a in self.arrays.items()}
        metadata = {**self.metadata, "config": json.dumps(self.config)}
        header, order = build_header(metadata, tensors)
        return header + b"".join(self.arrays[name].tobytes() for name in order)


def code_of(array):
    return next(code for code, dtype in DTYPES.items() if dtype == array.dtype)


def pick(rng, options):
    return options[int(rng.integers(len(options)))]


def leaves(value, path=()):
    """Every place inside a JSON value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (value, key)
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield (value, index)
            yield from leaves(item, (*path, index))


def change_json(rng, value):
    """Change, remove, add or exchange something inside a JSON value."""
    places = list(leaves(value))
    if not places:
        return
    container, key = pick(rng, places)
    action = rng.integers(6)
    if action <= 2:
        old = container[key]
        if isinstance(old, int) and not isinstance(old, bool) and rng.integers(3):
            near = [old - 1, old + 1, 2 * old, old + 16, old // 2]
            container[key] = pick(rng, near if rng.integers(2) else INTEGERS)
        else:
            container[key] = deepcopy(pick(rng, VALUES))
    elif action == 3:
        del container[key]
    elif action == 4:
        other, other_key = pick(rng, places)
        # Copies: one place may be inside the other, and a value inside itself has no JSON.
        container[key], other[other_key] = deepcopy(other[other_key]), deepcopy(container[key])
    elif isinstance(container, dict):
        container[f"{key}x"] = deepcopy(container[key])
    else:
        container.append(deepcopy(container[key]))


def change_array(rng, parts):
    """Change numbers inside a tensor, in the way its type invites."""
    array = parts.arrays[pick(rng, list(parts.arrays))].reshape(-1)
    if not array.size:
        return
    place = int(rng.integers(array.size))
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            array[place] = pick(rng, FLOATS)
    elif array.dtype == np.uint32 and rng.integers(2):
        # An index: one bit off, out of its tile, a duplicate, out of order.
        other = int(rng.integers(array.size))
        array[place] = pick(
            rng, [array[place] ^ np.uint32(1 << rng.integers(32)), array[other], np.uint32(0)]
        )
    else:
        words = array.view(np.uint8).reshape(array.size, -1)
        words[place] = np.frombuffer(
            (pick(rng, INTEGERS) % 2**64).to_bytes(8, "little"), dtype=np.uint8
        )[: words.shape[1]]


def resize_array(rng, parts):
    """Make a tensor longer or shorter, and sometimes the configuration with it."""
    name = pick(rng, list(parts.arrays))
    array = parts.arrays[name]
    by = int(rng.integers(1, 4))
    longer = rng.integers(2)
    parts.arrays[name] = np.concatenate([array.reshape(-1)] + [array.reshape(-1)[:by]] * longer)
    if not longer:
        parts.arrays[name] = array.reshape(-1)[:-by].copy()


def drop_connections(rng, parts):
    """Take the last connections away everywhere, so that only what is left decides."""
    networks = parts.config["networks"]
    index = int(rng.integers(len(networks)))
    place = int(rng.integers(len(networks[index]["layers"])))
    layer = networks[index]["layers"][place]
    gone = int(rng.integers(1, layer["n_connections"] + 1)) if layer["n_connections"] else 0
    layer["n_connections"] -= gone
    prefix = f"networks.{index}.layers.{place}."
    for name, array in parts.arrays.items():
        short = name.removeprefix(prefix)
        if short in ("packed", "weights") or short.startswith("state."):
            parts.arrays[name] = array[: array.size - gone].copy()
        elif short == "starts":
            array[-1] -= gone if rng.integers(4) else 0


def change_shape(rng, parts):
    """Give a layer another width or cut, and its arrays the lengths that go with it."""
    networks = parts.config["networks"]
    index = int(rng.integers(len(networks)))
    layers = networks[index]["layers"]
    layer = layers[0]
    key = pick(rng, ["n_in", "tile_in", "tile_out"])
    layer[key] = int(pick(rng, [1, 3, 16, 32, 48, 100, 65_536, layer[key] + 1]))
    tiles = -(-layer["n_in"] // max(layer["tile_in"], 1))
    tiles *= -(-layers[0]["n_out"] // max(layer["tile_out"], 1))
    starts = np.sort(rng.integers(0, layer["n_connections"] + 1, size=tiles + 1))
    starts[0], starts[-1] = 0, layer["n_connections"]
    parts.arrays[f"networks.{index}.layers.0.starts"] = starts.astype(np.int64)
    for name in ("shift", "scale"):
        if f"networks.{index}.scaling.{name}" in parts.arrays:
            parts.arrays[f"networks.{index}.scaling.{name}"] = np.ones(
                layer["n_in"], dtype=parts.arrays[f"networks.{index}.layers.0.weights"].dtype
            )


def change_bytes(rng, raw):
    """Change, insert, remove or repeat bytes anywhere."""
    raw = bytearray(raw)
    place = int(rng.integers(len(raw)))
    action = rng.integers(5)
    if action == 0:
        raw[place] = int(rng.integers(256))
    elif action == 1:
        raw[place] ^= 1 << int(rng.integers(8))
    elif action == 2:
        del raw[place : place + int(rng.integers(1, 9))]
    elif action == 3:
        raw[place:place] = rng.bytes(int(rng.integers(1, 9)))
    else:
        raw[place : place + 8] = pick(rng, INTEGERS).__mod__(2**64).to_bytes(8, "little")
    return bytes(raw)


def change_header(rng, raw):
    """Change the header alone; the tensors' bytes stay where they are."""
    length = int.from_bytes(raw[:LENGTH_BYTES], "little")
    header = json.loads(raw[LENGTH_BYTES : LENGTH_BYTES + length])
    change_json(rng, header)
    text = json.dumps(header).encode()
    if rng.integers(8) == 0:
        text = text.replace(b"{", b'{"__metadata__":{},', 1)
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(LENGTH_BYTES, "little") + text + raw[LENGTH_BYTES + length :]


def mutant(rng, raw):
    """Return one mutant of a file, sealed."""
    kind = rng.integers(10)
    if kind == 0:
        return seal(change_bytes(rng, raw))
    if kind == 1:
        return seal(change_header(rng, raw))
    parts = Parts(raw)
    for _ in range(int(rng.integers(1, 3))):
        if kind <= 3:
            change_json(rng, parts.config)
        elif kind <= 6:
            change_array(rng, parts)
        elif kind == 7:
            resize_array(rng, parts)
        elif kind == 8:
            drop_connections(rng, parts)
        else:
            change_shape(rng, parts)
    try:
        return seal(parts.joined())
    except (ValueError, TypeError, KeyError, AttributeError):
        return seal(change_bytes(rng, raw))

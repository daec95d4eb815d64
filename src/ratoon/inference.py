"""Prediction with NumPy alone: no compiled module, no SciPy, no scikit-learn.

Reads the files that estimators save (`docs/file-format.md`), so that a model trained anywhere can
be used where only Python and NumPy are installed.  One sample takes about twice the time of the
kernels, a large batch up to 25 times; the results agree to rounding.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ratoon.activations import ACTIVATIONS, sigmoid
from ratoon.arrays import Array
from ratoon.errors import FormatError, InvalidInputError
from ratoon.losses import LOSSES
from ratoon.nesting import parse_json
from ratoon.preparation import Preparation

_CODES = {
    "F64": "<f8",
    "F32": "<f4",
    "I64": "<i8",
    "I32": "<i4",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "u1",
}
_MAX_HEADER = 100_000_000


@dataclass(frozen=True, eq=False)
class PlainLayer:
    """A layer whose connections are sorted by output; those of output j begin at ``starts[j]``."""

    n_in: int
    starts: Array
    inputs: Array
    weights: Array
    bias: Array
    activation: str = "identity"
    slope: float = 0.0

    @classmethod
    def of(
        cls, n_in: int, inputs: Array, outputs: Array, weights: Array, bias: Array, **how: Any
    ) -> PlainLayer:
        """Build from connections in any order."""
        order = np.argsort(outputs, kind="stable")
        starts = np.zeros(bias.size + 1, dtype=np.int64)
        np.cumsum(np.bincount(outputs, minlength=bias.size), out=starts[1:])
        return cls(n_in, starts, inputs[order], weights[order], bias, **how)

    @property
    def n_out(self) -> int:
        """Number of outputs."""
        return int(self.bias.size)

    def __call__(self, x: Array) -> Array:
        """Return the activations of the outputs for those of the inputs, of one sample."""
        # One sample at a time: that is twice as fast in NumPy as several rows at once.
        z = self.bias.copy()
        connected = self.starts[1:] > self.starts[:-1]
        z[connected] += np.add.reduceat(x[self.inputs] * self.weights, self.starts[:-1][connected])
        return self.activate(z)

    def activate(self, z: Array) -> Array:
        """Apply the activation."""
        return ACTIVATIONS[self.activation].function(z, self.slope)


@dataclass(frozen=True, eq=False)
class Predictor:
    """A trained network that predicts with NumPy alone.

    Parameters
    ----------
    layers : tuple of PlainLayer
        First to last.
    shift, scale : ndarray, optional
        Subtracted from each feature, and multiplied with the difference.
    clip : float
        Largest magnitude of a scaled feature; 0 for no limit.
    loss : str, optional
        Loss of the training, which says how to convert outputs to probabilities.
    targets : dict
        The encoding of the targets, as in the estimator's file.
    arrays : dict of ndarray
        Classes; or mean and standard deviation of the targets.
    preparation : Preparation, optional
        What is done to samples first.  Groups of samples cannot be centred here.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> model = SparseMLPClassifier((4,), max_iter=3, random_state=0)
    >>> _ = model.fit([[0.0, 1.0], [1.0, 0.0]], ["ill", "well"])
    >>> predictor = Predictor.of(model)
    >>> x = [[0.2, 0.7]]
    >>> bool(np.allclose(predictor.predict_proba(x), model.predict_proba(x)))
    True
    """

    layers: tuple[PlainLayer, ...]
    shift: Array | None = None
    scale: Array | None = None
    clip: float = 0.0
    loss: str | None = None
    targets: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    preparation: Preparation | None = None

    @classmethod
    def of(cls, model: Any) -> Predictor:
        """Build from a fitted estimator, or from a `SparseMLP`, which predicts raw outputs."""
        network = getattr(model, "network_", model)
        layers = tuple(_layer_of(layer) for layer in network.layers)
        scaling = network.scaling
        if network is model:
            return cls(layers, scaling.shift, scaling.scale, scaling.clip)
        targets, arrays = model._target_state()
        how = (scaling.shift, scaling.scale, scaling.clip)
        return cls(layers, *how, model._loss(), targets, arrays, model.preparation_)

    @classmethod
    def load(cls, path: str | Path) -> Predictor:
        """Build from a file that an estimator saved.

        Raises
        ------
        FormatError
            If the file is damaged or does not hold an estimator.
        """
        try:
            return _from_file(Path(path))
        except FormatError:
            raise
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            kind = type(error).__name__  # its text may hold the whole file
            raise FormatError(f"{path}: not the file of an estimator ({kind}).") from None

    # ---------------------------------------------------------------------------- prediction

    @property
    def dtype(self) -> np.dtype[Any]:
        """Number type of the computation."""
        return self.layers[0].weights.dtype

    @property
    def n_features(self) -> int:
        """Features of a sample."""
        return self.layers[0].n_in

    @property
    def is_multilabel(self) -> bool:
        """Whether a sample can have several labels."""
        return bool(self.targets.get("multilabel", False))

    @property
    def classes(self) -> Array:
        """The classes, in the order of the outputs."""
        if "classes" not in self.arrays:
            raise InvalidInputError("this model is not a classifier.")
        classes = self.arrays["classes"]
        return classes.astype(object) if self.targets.get("objects") else classes

    def outputs(self, x: ArrayLike) -> Array:
        """Return the raw outputs of samples x features."""
        samples = np.asarray(x)
        if samples.ndim != 2 or samples.shape[1] != self.n_features:
            raise InvalidInputError(
                f"the model needs rows of {self.n_features} features, got an array of shape"
                f" {samples.shape}."
            )
        if self.preparation is not None:
            samples = self.preparation.rows(samples)
        found = np.empty((samples.shape[0], self.layers[-1].n_out), dtype=self.dtype)
        for number, sample in enumerate(samples):
            activations = self._scaled(sample)
            for layer in self.layers:
                activations = layer(activations)
            found[number] = activations
        return found

    @property
    def reading(self) -> str | None:
        """How raw outputs become class probabilities; see `ratoon.losses.Loss`."""
        return LOSSES[self.loss].reading if self.loss in LOSSES else "sigmoid"

    def predict_proba(self, x: ArrayLike) -> Array:
        """Return the probability of every class, (samples, classes)."""
        n_classes = self.classes.size
        z = self.outputs(x).astype(np.float64)
        if self.reading == "softmax":
            powers = np.exp(z - z.max(axis=1, keepdims=True))
            return np.asarray(powers / powers.sum(axis=1, keepdims=True))
        p = np.clip(0.5 * (1.0 + z), 0.0, 1.0) if self.reading == "margin" else sigmoid(z)
        if self.is_multilabel:
            return p
        totals = p.sum(axis=1, keepdims=True)
        p[totals[:, 0] == 0], totals[totals == 0] = 1.0, n_classes
        return np.asarray(p / totals)

    def predict(self, x: ArrayLike) -> Array:
        """Return classes, labels or numbers as the estimator does; raw outputs for a network."""
        z = self.outputs(x)
        if "classes" in self.arrays:
            if self.is_multilabel:
                return (z > 0).astype(np.intp)
            return np.asarray(self.classes[z.argmax(axis=1)])
        if "target_mean" in self.arrays:
            y = z.astype(np.float64) * self.arrays["target_std"] + self.arrays["target_mean"]
            return y[:, 0] if self.targets["one_column"] else y
        return z

    def _scaled(self, sample: Array) -> Array:
        z = sample.astype(self.dtype)
        if self.shift is not None:
            z -= self.shift
        if self.scale is not None:
            z *= self.scale
        return np.clip(z, -self.clip, self.clip) if self.clip > 0 else z


def _layer_of(layer: Any) -> PlainLayer:
    inputs, outputs = layer.topology.pairs()
    how = {"activation": layer.activation, "slope": layer.slope}
    return PlainLayer.of(layer.shape[0], inputs, outputs, layer.weights, layer.bias, **how)


# ----------------------------------------------------------------------------------------- files


def _from_file(path: Path) -> Predictor:
    metadata, tensors = _read_tensors(path)
    if (metadata["format"], metadata["format_version"], metadata["kind"]) != (
        "ratoon",
        "1",
        "model",
    ):
        raise FormatError(f"{path}: not a model file of format version 1.")
    config = _parsed(metadata["config"], path)
    number = len(config["networks"]) - 1  # the best network, where it is not the latest
    outline, prefix = config["networks"][number], f"networks.{number}"
    layers = [
        _layer(layer, f"{prefix}.layers.{index}", tensors, outline["dtype"])
        for index, layer in enumerate(outline["layers"])
    ]
    for before, after in pairwise(layers):
        if before.n_out != after.n_in:
            raise FormatError(
                f"{path}: {before.n_out} outputs before a layer of {after.n_in} inputs."
            )
    content = config["content"]
    arrays = {
        name: _array(name, config["arrays"], tensors)
        for name in ("classes", "target_mean", "target_std")
        if name in config["arrays"]
    }
    if any(array.shape != (layers[-1].n_out,) for array in arrays.values()):
        raise FormatError(f"{path}: the targets do not fit {layers[-1].n_out} outputs.")
    preparation = None
    if "preparation" in content:
        stored = {
            name: _array(name, config["arrays"], tensors)
            for name in config["arrays"]
            if name.startswith("preparation_")
        }
        preparation = Preparation.from_parts(content["preparation"], stored, layers[0].n_in)
    _check_targets(path, content["targets"], arrays)
    shift, scale = (tensors.get(f"{prefix}.scaling.{name}") for name in ("shift", "scale"))
    if any(part is not None and part.shape != (layers[0].n_in,) for part in (shift, scale)):
        raise FormatError(f"{path}: the scaling does not fit {layers[0].n_in} features.")
    loss = content["parameters"].get("loss")  # a survival model has none
    if loss == "auto" and "classes" in arrays:
        multilabel = content["targets"]["multilabel"]
        loss = "sigmoid_cross_entropy" if multilabel else "softmax_cross_entropy"
    return Predictor(
        tuple(layers),
        shift,
        scale,
        float(outline["clip"]),
        loss,
        content["targets"],
        arrays,
        preparation,
    )


def _check_targets(path: Path, targets: Any, arrays: dict[str, Array]) -> None:
    """Raise unless the description of the targets has the flags that predictions read."""
    needed = ("multilabel",) if "classes" in arrays else ()
    if "target_mean" in arrays or "target_std" in arrays:
        needed = (*needed, "one_column")
        numbers = [arrays[name] for name in ("target_mean", "target_std")]
        if any(array.dtype.kind != "f" for array in numbers):
            raise FormatError(f"{path}: the means of the targets must be numbers.")
    flags = isinstance(targets, dict) and all(type(targets.get(name)) is bool for name in needed)
    if not flags:
        raise FormatError(f"{path}: the targets are described incompletely.")


def _parsed(text: str, path: Path) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise FormatError(f"{path}: the header is not JSON: {error}.") from None


def _read_tensors(path: Path) -> tuple[dict[str, str], dict[str, Array]]:
    """Read a safetensors file, and compare its bytes with the digest in its metadata."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 or length > min(_MAX_HEADER, len(raw) - 8):
        raise FormatError(f"{path}: the header is longer than the file.")
    header = _parsed(raw[8 : 8 + length].decode(), path)
    metadata = header.pop("__metadata__")
    digest = metadata["digest"].removeprefix("sha256:").encode()
    blank = raw[: 8 + length].replace(digest, b"0" * 64)
    body = memoryview(raw)[8 + length :]
    found = hashlib.sha256(blank)
    found.update(body)
    if len(digest) != 64 or found.hexdigest().encode() != digest:
        raise FormatError(f"{path}: the digest does not agree with the content.")
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] in _CODES:
            begin, end = entry["data_offsets"]
            numbers = np.frombuffer(body[begin:end], dtype=_CODES[entry["dtype"]])
            tensors[name] = numbers.reshape(entry["shape"])
    return metadata, tensors


def _layer(
    outline: dict[str, Any], prefix: str, tensors: dict[str, Array], dtype: str
) -> PlainLayer:
    """Unpack a layer and check every index."""
    n_in, n_out = int(outline["n_in"]), int(outline["n_out"])
    tile_in, tile_out = int(outline["tile_in"]), int(outline["tile_out"])
    packed, starts = tensors[f"{prefix}.packed"], tensors[f"{prefix}.starts"]
    weights, bias = tensors[f"{prefix}.weights"], tensors[f"{prefix}.bias"]
    if dtype == "bfloat16" and weights.dtype == np.dtype("<u2"):
        # The upper halves of float32 numbers.
        dtype, weights = "float32", (weights.astype(np.uint32) << 16).view(np.float32)
    tiles_in, tiles_out = -(-n_in // tile_in), -(-n_out // tile_out)
    sizes = np.diff(starts)
    whole = starts.shape == (tiles_in * tiles_out + 1,) and (sizes >= 0).all()
    if not (whole and starts[0] == 0 and starts[-1] == packed.size == weights.size):
        raise FormatError(f"{prefix}: the tiles do not match the connections.")
    tile = np.repeat(np.arange(sizes.size), sizes)
    local_in, local_out = (packed >> 16).astype(np.int64), (packed & 0xFFFF).astype(np.int64)
    inputs = tile % tiles_in * tile_in + local_in
    outputs = tile // tiles_in * tile_out + local_out
    outside = (local_in >= tile_in) | (local_out >= tile_out) | (inputs >= n_in)
    if outside.any() or (outputs >= n_out).any() or bias.shape != (n_out,):
        raise FormatError(f"{prefix}: a connection is outside its tile.")
    if dtype not in ("float32", "float64") or {weights.dtype, bias.dtype} != {np.dtype(dtype)}:
        raise FormatError(f"{prefix}: unknown number type {dtype!r}, or arrays of another type.")
    if outline["activation"] not in ACTIVATIONS:
        raise FormatError(f"{prefix}: unknown activation {outline['activation']!r}.")
    return PlainLayer.of(
        n_in,
        inputs,
        outputs,
        weights,
        bias,
        activation=outline["activation"],
        slope=float(outline["slope"]),
    )


def _array(name: str, outlines: dict[str, Any], tensors: dict[str, Array]) -> Array:
    if outlines[name]["type"] != "text":
        return tensors[f"arrays.{name}"]
    raw = tensors[f"texts.{name}.bytes"].tobytes()
    spans = pairwise(tensors[f"texts.{name}.offsets"].tolist())
    texts = [raw[first:last].decode() for first, last in spans]
    # A width that the file claims could need any amount of memory.
    width = min(int(outlines[name]["chars"]), max(map(len, texts), default=0))
    return np.array(texts, f"<U{max(width, 1)}")

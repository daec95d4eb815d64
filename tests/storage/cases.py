"""Documents, files and trainings that the tests of storage share."""

import hashlib
import io
import re

import numpy as np

from ratoon.evolution import SET
from ratoon.kernels import Scaling
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD, Adam
from ratoon.storage import Document
from ratoon.storage.read import read_source
from ratoon.storage.write import lay_out, stream
from ratoon.training import EarlyStopping, Training, TrainingData, TrainingPlan

DIGEST = re.compile(rb"sha256:[0-9a-f]{64}")


def a_network(widths=(6, 5, 3), *, n_states=1, dtype=np.float32, scaling=True, seed=0, **how):
    how = {"density": 0.5, "activation": "leaky_relu", "slope": 0.1, "dropout": 0.2, **how}
    rng = np.random.default_rng(seed)
    shift, scale = rng.normal(size=(2, widths[0]))
    network = SparseMLP.start(
        widths,
        seed=seed,
        dtype=dtype,
        scaling=Scaling(shift, np.abs(scale) + 0.5, 5.0) if scaling else None,
        **how,
    )
    for layer in network.layers:
        layer.clear_state(n_states)
        layer.bias += rng.normal(size=layer.bias.size).astype(dtype)
        for values in [*layer.state, *layer.bias_state]:
            values += np.abs(rng.normal(size=values.size)).astype(dtype)
    return network


def a_document(kind="model", **how):
    arrays = {
        "classes": np.array(["lung", "skin", "ébène"]),
        "names": np.array(["a", "", "gene 3"], dtype=object),
        "counts": np.arange(4, dtype=np.int64).reshape(2, 2),
        "flags": np.array([True, False]),
    }
    return Document({"answer": 42, "nested": {"x": [0.5, None]}}, arrays, [a_network(**how)], kind)


def a_small_document():
    """As small as a document gets that still has all kinds of parts."""
    network = a_network((3, 2), n_states=1, scaling=False)
    return Document({}, {"c": np.array(["é", "b"])}, [network])


def to_bytes(document):
    header, arrays = lay_out(document)
    parts = []
    digest = stream(header, arrays, lambda data: parts.append(bytes(data)))
    return b"".join(parts).replace(b"0" * 64, digest.encode(), 1)


def from_bytes(raw, **how):
    return read_source(io.BytesIO(raw), len(raw), **how)


def seal(raw):
    """Make the digest agree with whatever the bytes are, as an attacker would."""
    found = DIGEST.search(raw)
    if found is None:
        return raw
    first, last = found.start() + 7, found.end()
    digest = hashlib.sha256(raw[:first] + b"0" * 64 + raw[last:]).hexdigest()
    return raw[:first] + digest.encode() + raw[last:]


def same_network(one, other):
    """Whether two networks are equal to the last bit."""
    if one.dtype != other.dtype or len(one.layers) != len(other.layers):
        return False
    pairs = [
        (one.scaling.shift, other.scaling.shift),
        (one.scaling.scale, other.scaling.scale),
        (np.float64(one.scaling.clip), np.float64(other.scaling.clip)),
    ]
    for a, b in zip(one.layers, other.layers, strict=True):
        plain = ("activation", "slope", "dropout", "init")
        if a.topology != b.topology or any(getattr(a, k) != getattr(b, k) for k in plain):
            return False
        if len(a.state) != len(b.state) or len(a.bias_state) != len(b.bias_state):
            return False
        pairs += [(a.weights, b.weights), (a.bias, b.bias)]
        pairs += zip(a.state + a.bias_state, b.state + b.bias_state, strict=True)
    return all(
        (a is None and b is None) or (a.dtype == b.dtype and a.tobytes() == b.tobytes())
        for a, b in pairs
    )


def network_hash(network):
    seen = hashlib.sha256()
    for layer in network.layers:
        seen.update(layer.topology.content_hash().encode())
        for values in (layer.weights, layer.bias, *layer.state, *layer.bias_state):
            seen.update(values.tobytes())
    return seen.hexdigest()


def a_training(*, callbacks=(), n_epochs=6, n_samples=40, adam=False, stopping=None, seed=0, **how):
    """A training with all that must survive: rewiring, dropout, momentum, early stopping."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_samples, 30)).astype(np.float32)
    targets = np.eye(3, dtype=np.float32)[rng.integers(3, size=n_samples)]
    network = a_network((30, 20, 3), n_states=0)
    plan = TrainingPlan(
        **{
            "optimizer": Adam() if adam else SGD(momentum=0.9),
            "learning_rate": 0.01,
            "batch_size": 8,
            "n_epochs": n_epochs,
            "evolution": SET(zeta=0.3),
            "seed": 7,
            **how,
        }
    )
    validation = None
    if stopping is not None:
        validation = TrainingData.of(x[:10] + 0.1, targets[:10], np.float32)
    return Training(
        network,
        TrainingData.of(x, targets, np.float32),
        plan,
        validation=validation,
        stopping=stopping,
        callbacks=callbacks,
    )


def patient(patience=100):
    return EarlyStopping(patience=patience)

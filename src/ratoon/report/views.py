"""Samples as points and as rows of a heat map: which are shown, and where."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from ratoon.arrays import Array
from ratoon.datasets import Dataset
from ratoon.report.context import HELD_OUT, ReportContext, sample_names
from ratoon.rng import derive_generator
from ratoon.samples.in_memory import wrap

MOST_POINTS = 2000
MOST_VALUES = 30_000_000
"""Values of samples or activations that a map is computed from: 120 MB."""


@dataclass(frozen=True, eq=False)
class Shown:
    """Samples that a view shows.

    Parameters
    ----------
    X : ndarray or CSR matrix
        Features of the samples.
    y : ndarray, optional
        Class codes among ``classes``, or numbers.
    classes : tuple of str
        Names of the classes; empty for numbers and without labels.
    names : tuple of str
        Names of the samples.
    keys : ndarray of int
        Row of each sample in the data of the page; -1 for samples that are not in it.
    is_training : ndarray of bool
        Whether the model was trained on each sample.
    wrong : ndarray of bool
        Whether each was misclassified, where that is known.
    n_total : int
        Number of samples there are.
    """

    X: Any
    y: Array | None
    classes: tuple[str, ...]
    names: tuple[str, ...]
    keys: NDArray[np.int64]
    is_training: NDArray[np.bool_]
    wrong: NDArray[np.bool_]
    n_total: int

    @property
    def n(self) -> int:
        """Number of samples shown."""
        return len(self.names)

    @property
    def has_both(self) -> bool:
        """Whether there are training samples and others."""
        return bool(self.is_training.any() and not self.is_training.all())


def shown_samples(context: ReportContext, most: int) -> Shown | None:
    """Return up to ``most`` samples: those of the page, and training samples in addition to them.

    If there are more, some are drawn at random, always the same ones.
    """
    data = context.data
    if data is None or data.n_samples == 0:
        return None
    parts: list[tuple[Dataset, bool]] = [(data, True)]
    if context.training is not None and context.basis == HELD_OUT:
        parts.append((context.training, False))
    n_total = sum(part.n_samples for part, _ in parts)
    rng = derive_generator(0, "samples shown")
    chosen = []
    for part, _ in parts:
        n = part.n_samples
        quota = n if n_total <= most else max(1, most * n // n_total)
        chosen.append(np.sort(rng.permutation(n)[:quota]))
    found = [
        _part(context, part, rows, own) for (part, own), rows in zip(parts, chosen, strict=True)
    ]
    return _joined(found, _classes(context), n_total)


def _classes(context: ReportContext) -> tuple[str, ...]:
    if context.predictions is not None:
        return context.predictions.classes
    if context.data is not None and context.data.class_names is not None:
        return context.data.class_names
    return ()


def _part(context: ReportContext, data: Dataset, rows: Array, own: bool) -> dict[str, Any]:
    names = sample_names(data)
    predictions = context.predictions if own else None
    wrong = np.zeros(rows.size, dtype=bool)
    if predictions is not None and predictions.is_of_classes:
        wrong = predictions.consensus()[rows] != predictions.truth[rows]
    if not own:
        training = np.ones(rows.size, dtype=bool)
    elif context.trained_on is not None:
        training = context.trained_on[rows]
    else:
        training = np.zeros(rows.size, dtype=bool)
    return {
        "X": _features(context.estimator, data, rows),
        "y": None if data.y is None else _codes(data, rows, _classes(context)),
        "names": [names[row] for row in rows.tolist()],
        "keys": rows if own else np.full(rows.size, -1),
        "is_training": training,
        "wrong": wrong,
    }


def _features(estimator: Any, data: Dataset, rows: Array) -> Any:
    """Return the features of rows as the network gets them: after the model's preparation."""
    if estimator.preparation_ is None:
        return data.X[rows]
    x = estimator._read_prepared(data, rows)
    return x.values() if x.is_sparse else x.dense()


def _codes(data: Dataset, rows: Array, classes: tuple[str, ...]) -> Array:
    """Return the targets of rows: codes among ``classes``, numbers, or times of survival."""
    assert data.y is not None
    if data.is_survival:
        return np.asarray(data.y["time"][rows])
    if data.class_names is None or not classes:
        return data.y[rows]
    place = {name: code for code, name in enumerate(classes)}
    codes = np.array([place.get(str(name), 0) for name in data.class_names], dtype=np.int64)
    return np.asarray(codes[data.y[rows]])


def _joined(parts: list[dict[str, Any]], classes: tuple[str, ...], n_total: int) -> Shown:
    import scipy.sparse

    matrices = [part["X"] for part in parts]
    if len(matrices) == 1:
        x = matrices[0]
    elif scipy.sparse.issparse(matrices[0]):
        x = scipy.sparse.vstack(matrices, format="csr")
    else:
        x = np.vstack(matrices)
    has_y = all(part["y"] is not None for part in parts)
    return Shown(
        x,
        np.concatenate([part["y"] for part in parts]) if has_y else None,
        classes,
        tuple(name for part in parts for name in part["names"]),
        np.concatenate([part["keys"] for part in parts]),
        np.concatenate([part["is_training"] for part in parts]),
        np.concatenate([part["wrong"] for part in parts]),
        n_total,
    )


@dataclass(frozen=True, eq=False)
class Plane:
    """Places of samples in two principal components."""

    places: Array
    explained: tuple[float, float]


def principal_plane(x: Any, fit_on: NDArray[np.bool_] | None = None) -> Plane | None:
    """Return the first two principal components of samples; None if there are not two.

    The cost is in proportion to the stored values; sparse samples are centred implicitly.

    Parameters
    ----------
    x : ndarray or CSR matrix
        Samples in rows.
    fit_on : ndarray of bool, optional
        Samples that determine the components; by default all.

    Examples
    --------
    >>> plane = principal_plane(np.array([[0.0, 0, 1], [2, 0, 1], [4, 1, 1], [6, 0, 1]]))
    >>> plane.places.shape, round(plane.explained[0], 2)
    ((4, 2), 0.97)
    """
    import scipy.sparse

    rows = slice(None) if fit_on is None else np.flatnonzero(fit_on)
    fitted = x[rows]
    # Features with one value only, of which a sparse solver would find too few components.
    if min(fitted.shape) < 3 or x.shape[0] < 3:
        return None
    solver = "arpack" if scipy.sparse.issparse(x) else "randomized"
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore")
        model = PCA(2, svd_solver=solver, random_state=0).fit(fitted)
        places = model.transform(x)
    shares = np.asarray(model.explained_variance_ratio_, dtype=np.float64)
    if not np.isfinite(places).all() or not np.isfinite(shares).all():
        return None
    return Plane(np.asarray(places, dtype=np.float64), (float(shares[0]), float(shares[1])))


def scaled_inputs(network: Any, x: Any) -> Any:
    """Return samples as the network reads them: standardised, and clipped if they are dense."""
    import scipy.sparse

    scaling = network.scaling
    if scipy.sparse.issparse(x):
        factors = scaling.scale
        return x if factors is None else x.multiply(np.asarray(factors)[None, :]).tocsr()
    z = np.array(wrap(x).dense(), dtype=np.float32)
    if scaling.shift is not None:
        z -= np.asarray(scaling.shift, dtype=np.float32)
    if scaling.scale is not None:
        z *= np.asarray(scaling.scale, dtype=np.float32)
    return np.clip(z, -scaling.clip, scaling.clip) if scaling.clip > 0 else z


def hidden_activations(network: Any, x: Any) -> Array | None:
    """Return the activations of the last hidden layer; None without a hidden layer.

    Each neuron is multiplied by the root of the sum of squares of its outgoing weights: a neuron
    that the outputs do not use does not count.
    """
    n_layers = len(network.layers)
    if n_layers < 2:
        return None
    samples = wrap(x)
    if samples.is_sparse and network.scaling.shift is not None:
        samples = wrap(samples.dense())
    z = np.asarray(network.outputs(samples, layer=n_layers - 2), dtype=np.float32)
    last = network.layers[-1]
    inputs, _ = last.topology.pairs()
    squares = np.square(np.asarray(last.weights, dtype=np.float64))
    z *= np.sqrt(np.bincount(inputs, squares, minlength=last.shape[0])).astype(np.float32)
    return z

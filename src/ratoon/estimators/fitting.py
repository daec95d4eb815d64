"""What `fit` prepares before the epoch loop: the scaling of samples and the first network."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.estimators.presets import Shape
from ratoon.estimators.settings import Settings
from ratoon.estimators.sklearn_callbacks import CALLS_OF_FIT
from ratoon.initialise import connections_wanted, guided
from ratoon.kernels import Scaling
from ratoon.network import SparseMLP
from ratoon.samples.in_memory import wrap
from ratoon.samples.statistics import (
    ConstantFeatureWarning,
    FeatureStatistics,
    feature_statistics,
)
from ratoon.topology import Topology, Within


def learn_scaling(
    x: Any, weights: Array | None, *, scale: str | None, clip: float, dtype: str
) -> tuple[Scaling, str | None]:
    """Compute the scaling of samples from the training rows, and return it with its name.

    Constant features become 0.
    """
    found = feature_statistics(x, weights)
    if dtype == "float32" and found.largest > float(np.finfo(np.float32).max):
        raise InvalidInputError(
            f"X holds values up to {found.largest:.3g}, too large for float32.\n"
            f'  Scale them down, or set `dtype="float64"`.'
        )
    samples = wrap(x)
    if scale == "auto":
        scale = "global" if have_one_unit(found, is_sparse=samples.is_sparse) else "standard"
    if scale is None:
        return Scaling(None, None, clip), None
    if n_constant := int(found.constant.sum()):
        warnings.warn(
            f"{n_constant} of {found.constant.size} features have the same value in all training"
            f" samples and are ignored.",
            ConstantFeatureWarning,
            stacklevel=6 + CALLS_OF_FIT,
        )
    # Centring would make every zero of a sparse matrix non-zero.
    shift = None if samples.is_sparse else found.mean
    factors = (
        found.factors() if scale == "standard" else _one_factor(found, is_sparse=samples.is_sparse)
    )
    # Larger factors would become infinite in float32.
    factors = np.minimum(factors, 1e37) if dtype != "float64" else factors
    return Scaling(shift, factors, clip), scale


SHARE_OF_ONE_UNIT = 0.5
SPREAD_OF_ONE_UNIT = 1000.0


def have_one_unit(found: FeatureStatistics, *, is_sparse: bool) -> bool:
    """Return whether features seem to be measured in the same unit, such as pixels or counts.

    Dense features are if half of them have the same smallest and the same largest value; sparse
    ones unless their largest values differ a thousandfold.

    Examples
    --------
    >>> pixels = np.array([[0.0, 255.0, 3.0], [255.0, 0.0, 0.0]])
    >>> have_one_unit(feature_statistics(pixels), is_sparse=False)
    True
    """
    low, high = found.low[~found.constant], found.high[~found.constant]
    if not low.size:
        return False
    if is_sparse:
        largest = np.maximum(np.abs(low), np.abs(high))
        few, many = np.quantile(largest, (0.01, 0.99))
        return bool(many <= SPREAD_OF_ONE_UNIT * few)
    same = (low == low.min()) & (high == high.max())
    return bool(same.mean() >= SHARE_OF_ONE_UNIT)


def _one_factor(found: FeatureStatistics, *, is_sparse: bool) -> Array:
    """Return the same factor for every feature, and 0 for constant ones.

    It makes the mean variance 1 or, of sparse samples, the mean square of the stored values.
    """
    varies = ~found.constant
    factors = np.zeros_like(found.std)
    if is_sparse:
        size = (np.square(found.std) + np.square(found.mean)).sum() / found.per_row
    else:
        size = np.square(found.std[varies]).mean() if varies.any() else 1.0
    factors[varies] = 1.0 / np.sqrt(size)
    return factors


def start_network(
    settings: Settings,
    shape: Shape,
    *,
    scaling: Scaling,
    topology: Sequence[Any] | None,
    seed: int,
    n_threads: int,
    guide: Array | None = None,
) -> SparseMLP:
    """Draw the first network; ``guide`` holds the strengths that guide its first connections."""
    widths = settings.widths(shape)
    topologies = None if topology is None else checked_topologies(topology, widths)
    if guide is not None and (topologies is None or topologies[0] is None):
        first = (widths[0], widths[1])
        wanted = connections_wanted(first, epsilon=settings.epsilon, density=settings.density)
        drawn = guided(first, wanted, guide, seed=seed, n_threads=n_threads)
        topologies = [drawn, *(topologies or [None] * (len(widths) - 1))[1:]]
    return SparseMLP.start(
        widths,
        seed=seed,
        epsilon=settings.epsilon,
        density=settings.density,
        start="exact" if guide is not None else settings.start,
        init=settings.init,
        output_init=settings.output_init,
        activation=settings.activation,
        slope=settings.slope,
        dropout=settings.dropout,
        topologies=topologies,
        scaling=scaling,
        dtype=settings.dtype,
        n_threads=n_threads,
    )


def checked_topologies(
    given: Sequence[Any], widths: Sequence[int]
) -> list[Topology | Within | None]:
    """Return one topology, limit or None per layer; None for layers that are not given.

    Examples
    --------
    >>> pathways = scipy.sparse.eye_array(4, 3)
    >>> checked_topologies([pathways], (4, 3, 2))
    [Topology(4 -> 3, 3 connections, density 0.25), None]
    """
    shapes = list(pairwise(widths))
    if len(given) > len(shapes):
        raise InvalidParameterError(
            f"`topology` names {len(given)} layers, the network has {len(shapes)}."
        )
    found: list[Topology | Within | None] = []
    for index, layer in enumerate(given):
        if scipy.sparse.issparse(layer):
            layer = Topology.from_scipy(layer)[0]
        if layer is not None and layer.shape != shapes[index]:
            raise InvalidParameterError(
                f"`topology[{index}]` is {layer.shape[0]} -> {layer.shape[1]}, but layer {index} of"
                f" this network is {shapes[index][0]} -> {shapes[index][1]}.\n"
                f'  Give the widths of the layers as `hidden_layer_sizes`, or leave it at "auto".'
            )
        found.append(layer)
    return found + [None] * (len(shapes) - len(given))

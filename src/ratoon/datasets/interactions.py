"""Labels that depend on products of a few features among many: no feature helps alone.

A linear model sees nothing here, and a network has to bring the right inputs together first, which
makes these sets good for watching a topology evolve.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ratoon.datasets.dataset import Dataset
from ratoon.errors import InvalidParameterError


def make_interactions(
    n_samples: int = 600,
    n_features: int = 500,
    n_interactions: int = 1,
    *,
    order: int = 2,
    kind: Literal["product", "xor"] = "product",
    noise: float = 0.0,
    label_noise: float = 0.0,
    random_state: int | np.random.Generator = 0,
) -> tuple[Dataset, NDArray[np.int64]]:
    """Generate two classes that only combinations of features tell apart.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X.
    n_interactions : int
        Groups of features; the class is the sign of the sum of their products.
    order : int
        Features in a group.  Order 1 gives an ordinary linear problem.
    kind : {"product", "xor"}
        With ``"product"`` features are normal; with ``"xor"`` they lie near -1 and 1, so that
        one group is the parity of its signs, as in the Madelon set.
    noise : float
        Standard deviation of what is added to the informative features after the class is set.
    label_noise : float in [0, 0.5)
        Share of the labels turned round, chosen at random.
    random_state : int or Generator
        The same seed gives the same data.

    Returns
    -------
    data : Dataset
        float32, standardised but for the noise.
    informative : ndarray of int64
        Columns of the features that matter, increasing.

    Examples
    --------
    >>> data, informative = make_interactions(200, 50, order=3, random_state=1)
    >>> product = data.X[:, informative].prod(axis=1)
    >>> np.array_equal(product > 0, data.y == 1)
    True
    """
    n_informative = n_interactions * order
    if not 1 <= n_informative <= n_features:
        raise InvalidParameterError(
            f"make_interactions: {n_interactions} groups of {order} features do not fit"
            f" {n_features} features."
        )
    if not 0.0 <= label_noise < 0.5:
        raise InvalidParameterError(
            f"make_interactions: `label_noise` must be in [0, 0.5), got {label_noise!r}."
        )
    if kind not in ("product", "xor"):
        raise InvalidParameterError(
            f"make_interactions: `kind` must be 'product' or 'xor', got {kind!r}."
        )
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n_samples, n_features), dtype=np.float32)
    chosen = rng.choice(n_features, n_informative, replace=False)
    if kind == "xor":
        signs = rng.choice(np.array([-1, 1], dtype=np.float32), (n_samples, n_informative))
        X[:, chosen] = signs + np.float32(0.25) * X[:, chosen]
    groups = X[:, chosen].reshape(n_samples, n_interactions, order)
    parts = np.sign(groups) if kind == "xor" else groups
    y = (parts.prod(axis=2).sum(axis=1) > 0).astype(np.int64)
    turned = rng.choice(n_samples, round(label_noise * n_samples), replace=False)
    y[turned] = 1 - y[turned]
    X[:, chosen] += np.float32(noise) * rng.standard_normal(
        (n_samples, n_informative), dtype=np.float32
    )
    width = len(str(n_features - 1))
    return (
        Dataset(
            X,
            y,
            feature_names=tuple(f"x{j:0{width}d}" for j in range(n_features)),
            class_names=("negative", "positive"),
            source=f"make_interactions({n_samples}, {n_features}, {n_interactions}, {order=})",
            notes=("generated data, not measurements",),
        ),
        np.sort(chosen),
    )

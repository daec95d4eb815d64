"""Generated data sets: `make_microarray` and `make_interactions`.

They make examples, tests and demonstrations possible without a network connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ratoon.datasets.dataset import Dataset
from ratoon.errors import InvalidParameterError

_GENES_AT_ONCE = 4096
_BACKGROUND = 2.0**4


def make_microarray(
    n_samples: int = 85,
    n_features: int = 22_283,
    n_classes: int = 2,
    n_informative: int = 300,
    *,
    effect: float = 3.3,
    n_blocks: int = 200,
    correlation: float = 0.4,
    n_batches: int = 3,
    batch_effect: float = 0.3,
    class_weights: Sequence[float] | None = None,
    noise: float = 1.0,
    random_state: int | np.random.Generator = 0,
) -> tuple[Dataset, NDArray[np.int64]]:
    """Generate data like gene expression, and return the columns of the informative genes.

    The model, on the log2 scale in which expression data are analysed:

    * each gene has its own base level and spread (few genes are high, most are low);
    * genes form blocks that rise and fall together (co-expression);
    * each class activates a *programme*: all informative genes of that class follow one hidden
      activity, which differs from sample to sample.  Because the genes of a programme share it,
      300 informative genes are not 300 independent predictors, and no method is perfect;
    * each processing batch shifts every gene a little;
    * a background keeps low levels from going to zero, as on a real chip.

    Parameters
    ----------
    n_samples, n_features, n_classes : int
        Shape of the data; the defaults are those of GLI-85.
    n_informative : int
        Number of genes whose level depends on the class, divided evenly among the classes.
    effect : float
        Difference between the activity of a programme in its own class and in the others, in
        standard deviations of the activity.  With the default, a linear model reaches 85 to 95 %
        on the default shape; with 0 the labels are independent of the data.
    n_blocks : int
        Groups of genes that vary together; 0 for independent genes.
    correlation : float in [0, 1)
        Correlation of two genes of one block (before its sign, which is random).
    n_batches : int
        Number of processing batches; samples are assigned to them independently of the class.
    batch_effect : float
        Standard deviation of the shift of a gene in a batch, in units of the spread of the gene.
    class_weights : sequence of float, optional
        Fraction of the samples in each class; equal by default.  Each class gets at least one.
    noise : float
        Factor on the variation that neither programmes nor batches explain.
    random_state : int or Generator
        The same seed gives the same data.

    Returns
    -------
    data : Dataset
        float32, on the log2 scale.
    informative : ndarray of int64
        Columns of the informative genes, in increasing order.

    Examples
    --------
    >>> data, informative = make_microarray(20, 500, n_informative=10, random_state=1)
    >>> data.X.shape, informative.size, data.class_counts
    ((20, 500), 10, {'class 0': 10, 'class 1': 10})
    """
    _check_sizes(n_samples, n_features, n_classes, n_informative)
    if not 0.0 <= correlation < 1.0:
        raise InvalidParameterError(
            f"make_microarray: `correlation` must be in [0, 1), got {correlation!r}."
        )
    rng = np.random.default_rng(random_state)
    y = draw_classes(n_samples, n_classes, class_weights, rng)
    batch = rng.permutation(np.arange(n_samples) % max(1, n_batches))
    activity = rng.standard_normal((n_samples, n_classes))
    activity[np.arange(n_samples), y] += effect

    informative = np.sort(rng.choice(n_features, n_informative, replace=False))
    programme = np.full(n_features, -1)
    programme[informative] = rng.permutation(np.arange(n_informative) % n_classes)
    loading = rng.choice([-1.0, 1.0], n_features) * rng.uniform(0.3, 1.0, n_features)
    factors = rng.standard_normal((n_samples, max(1, n_blocks)))
    block = rng.integers(0, max(1, n_blocks), n_features)
    shared = np.sqrt(correlation) if n_blocks else 0.0

    X = np.empty((n_samples, n_features), dtype=np.float32)
    for first in range(0, n_features, _GENES_AT_ONCE):
        genes = slice(first, min(first + _GENES_AT_ONCE, n_features))
        count = genes.stop - first
        base = 3.0 + 9.0 * rng.beta(1.5, 3.0, count)
        spread = 0.2 + rng.gamma(2.0, 0.15, count)
        own = rng.standard_normal((n_samples, count))
        sign = rng.choice([-1.0, 1.0], count)
        unexplained = shared * sign * factors[:, block[genes]] + np.sqrt(1 - shared**2) * own
        shift = rng.normal(0.0, batch_effect, (max(1, n_batches), count))
        level = noise * unexplained + shift[batch]
        follows = np.flatnonzero(programme[genes] >= 0)
        level[:, follows] += (loading[genes] * activity[:, programme[genes]])[:, follows]
        X[:, genes] = np.log2(np.exp2(base + spread * level) + _BACKGROUND)

    width, sample_width = len(str(n_features - 1)), len(str(n_samples - 1))
    return (
        Dataset(
            X,
            y,
            feature_names=tuple(f"gene{j:0{width}d}" for j in range(n_features)),
            sample_names=tuple(f"sample{i:0{sample_width}d}" for i in range(n_samples)),
            class_names=tuple(f"class {k}" for k in range(n_classes)),
            source=_call_text("make_microarray", n_samples, n_features, n_classes, n_informative),
            notes=("generated data, not measurements",),
        ),
        informative,
    )


def draw_classes(
    n_samples: int,
    n_classes: int,
    weights: Sequence[float] | None,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return class codes in random order, with counts proportional to ``weights`` after rounding.

    Examples
    --------
    >>> np.bincount(draw_classes(10, 2, (0.7, 0.3), np.random.default_rng(0)))
    array([7, 3])
    """
    share = np.ones(n_classes) if weights is None else np.asarray(weights, dtype=np.float64)
    if share.shape != (n_classes,) or not np.all(share > 0) or not np.all(np.isfinite(share)):
        raise InvalidParameterError(
            f"`class_weights` must be {n_classes} positive numbers, got {weights!r}."
        )
    exact = share / share.sum() * n_samples
    counts = np.maximum(1, np.floor(exact).astype(np.int64))
    while counts.sum() > n_samples:  # the minimum of one sample each made too many
        counts[np.argmax(np.where(counts > 1, counts - exact, -np.inf))] -= 1
    while counts.sum() < n_samples:
        counts[np.argmax(exact - counts)] += 1
    return rng.permutation(np.repeat(np.arange(n_classes), counts))


def _check_sizes(n_samples: int, n_features: int, n_classes: int, n_informative: int) -> None:
    sizes = {"n_samples": n_samples, "n_features": n_features, "n_classes": n_classes}
    for name, size in {**sizes, "n_informative": n_informative}.items():
        if isinstance(size, bool | np.bool_) or not isinstance(size, int | np.integer):
            raise InvalidParameterError(f"`{name}` must be a whole number, got {size!r}.")
    if n_classes < 2:
        raise InvalidParameterError(f"`n_classes` must be at least 2, got {n_classes!r}.")
    if n_samples < n_classes:
        raise InvalidParameterError(
            f"`n_samples` must be at least `n_classes`, so that each class has a sample; got"
            f" n_samples={n_samples} and n_classes={n_classes}."
        )
    if not 0 <= n_informative <= n_features:
        raise InvalidParameterError(
            f"`n_informative` must be between 0 and n_features={n_features}, got {n_informative}."
        )


def _call_text(name: str, *sizes: Any) -> str:
    return f"{name}({', '.join(map(str, sizes))})"


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
    """Generate two classes that depend on products of features, never on one feature alone.

    A linear model cannot learn them, and a sparse network must first connect the right inputs to
    the same neuron, so these sets show how well a topology evolves.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of the data.
    n_interactions : int
        Number of groups of features; the class is the sign of the sum of their products.
    order : int
        Number of features in a group.  Order 1 gives an ordinary linear problem.
    kind : {"product", "xor"}
        With ``"product"`` features are normally distributed; with ``"xor"`` they are near -1 and
        1, so the class of one group is the parity of its signs, as in the Madelon set.
    noise : float
        Standard deviation of the noise added to the informative features after the class is set.
    label_noise : float in [0, 0.5)
        Fraction of the labels to invert, chosen at random.
    random_state : int or Generator
        The same seed gives the same data.

    Returns
    -------
    data : Dataset
        float32, standardised before noise is added.
    informative : ndarray of int64
        Columns of the informative features, in increasing order.

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
            f"make_interactions: `n_interactions` * `order` must be between 1 and n_features="
            f"{n_features}, got {n_interactions} * {order}."
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
    inverted = rng.choice(n_samples, round(label_noise * n_samples), replace=False)
    y[inverted] = 1 - y[inverted]
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

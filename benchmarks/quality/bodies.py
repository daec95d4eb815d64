"""Other bodies in the place of the sparse hidden layer: kernels, and both paths in one.

A kernel is a layer of as many neurons as there are training rows: what is similar to them, along
the directions of the kernel's own spectrum.  Ridge on those is ridge with the kernel, exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.committee.hidden import HiddenLayer

Array = NDArray[Any]
Kernel = Callable[[Array, Array, Array], Array]
"""From products of rows (n, m) and squared lengths of both, (n,) and (m,), to the kernel (n, m)."""

SMALLEST = 1e-6  # of the largest eigenvalue; products are those of float32


def plain(products: Array, first: Array, second: Array) -> Array:
    """Return the products: a linear path."""
    del first, second
    return products


def cosine(products: Array, first: Array, second: Array) -> Array:
    """Return cosines of the angles between rows."""
    return np.clip(products / np.sqrt(np.maximum(np.outer(first, second), 1e-300)), -1.0, 1.0)


def wide(products: Array, first: Array, second: Array) -> Array:
    """Return the kernel of infinitely many rectified neurons (Cho and Saul, NIPS 2009).

    >>> at_right_angles = wide(np.zeros((1, 1)), np.ones(1), np.ones(1))
    >>> (at_right_angles * np.pi).tolist(), wide(np.ones((1, 1)), np.ones(1), np.ones(1)).tolist()
    ([[1.0]], [[1.0]])
    """
    c = cosine(products, first, second)
    bend = np.sqrt(1.0 - c**2) + (np.pi - np.arccos(c)) * c
    return np.asarray(np.sqrt(np.outer(first, second)) * bend / np.pi)


def deep(products: Array, first: Array, second: Array) -> Array:
    """Return the kernel of two such layers; lengths are the same after one as before."""
    return wide(wide(products, first, second), first, second)


def gaussian(products: Array, first: Array, second: Array) -> Array:
    """Return a Gaussian that has fallen to 1/e at the usual distance of two training rows."""
    distances = first[:, None] + second - 2.0 * products
    return np.asarray(np.exp(-distances / max(2.0 * float(second.mean()), 1e-300)))


@dataclass(frozen=True, eq=False)
class KernelLayer:
    """What samples have in common with training rows, along the kernel's own directions."""

    kernel: Kernel
    prior: Array
    rows: Array
    directions: Array

    def respond(self, z: Array) -> Array:
        """Return (samples, directions)."""
        return np.asarray(similarity(self.kernel, self.prior, z, self.rows) @ self.directions)


@dataclass(frozen=True)
class KernelBody:
    """Stands in the place of `HiddenLayer`; ``power`` is that of the spectrum, 1 leaves it."""

    kernel: Kernel
    power: float = 1.0

    def draw(self, prior: Array, z: Array, rng: Any, **how: Any) -> KernelLayer:
        """Return the layer for these training rows; nothing is drawn."""
        del rng, how
        values, vectors = np.linalg.eigh(similarity(self.kernel, prior, z, z))
        kept = values > SMALLEST * values[-1]
        directions = vectors[:, kept] * values[kept] ** (self.power / 2 - 1)
        return KernelLayer(self.kernel, prior, z, directions)


def similarity(kernel: Kernel, prior: Array, z: Array, rows: Array) -> Array:
    """Return the kernel (samples, training rows), features weighed by their prior variance."""
    root = np.sqrt(prior).astype(np.float32)
    first, second = z * root, rows * root
    lengths = (np.einsum("nf,nf->n", x, x).astype(np.float64) for x in (first, second))
    return kernel((first @ second.T).astype(np.float64), *lengths)


@dataclass(frozen=True, eq=False)
class JointLayer:
    """Features and hidden neurons side by side, with the same variance in all: one kernel."""

    hidden: HiddenLayer
    factors: Array
    scale: float

    @classmethod
    def draw(cls, prior: Array, z: Array, rng: Any, **how: Any) -> JointLayer:
        """Draw the neurons, and see how much they vary beside the features."""
        hidden = HiddenLayer.draw(prior, z, rng, **how)
        factors = np.sqrt(prior).astype(np.float32)
        linear = float((z * factors).var(axis=0).sum())
        bent = float(hidden.respond(z).var(axis=0).sum())
        return cls(hidden, factors, np.sqrt(linear / max(bent, 1e-300)))

    def respond(self, z: Array) -> Array:
        """Return (samples, features and neurons)."""
        return np.hstack((z * self.factors, np.float32(self.scale) * self.hidden.respond(z)))

"""Members of a committee: one way to weigh the features, one body, solved for all penalties.

A member's prior gives feature j the variance ``F_j^q * spread_j^(2r)``: q says how much the
feature's strength counts, r how much its natural scale does.  In a mixed prior only a quarter of
the variance goes by strength, and the rest to all features alike: strong features lead, and weak
ones may add up.  The body is linear, or a sparse hidden layer of rectified neurons.  For
continuous targets there are linear members with few features besides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.recipe.dual import dual_coefficients
from ratoon.recipe.few import N_GENERATIONS, generations, lasso_path
from ratoon.recipe.hidden import HiddenLayer
from ratoon.recipe.problem import Problem
from ratoon.recipe.strength import f_statistic, pair_strength
from ratoon.recipe.views import View

Array = NDArray[Any]

PAIR = -1
"""In place of q: the prior is the root of the pair strength."""

MIXED = 0.25
"""Share of the variance that goes by strength in a mixed prior."""

_MOST_FEATURES_FOR_PAIRS = 5000


@dataclass(frozen=True)
class MemberKind:
    """What distinguishes members: strength exponent, scale exponent, body, whether mixed."""

    q: int
    r: float
    body: str  # "linear", "hidden", or linear with few features: "lasso", "generation"
    generation: int = 0
    mixed: bool = False


@dataclass(frozen=True, eq=False)
class Member:
    """A fitted member: its output weights are combinations of the (weighed) training samples.

    Outputs are ``(features(z) - centre) @ basis.T @ duals[a] + mean`` for penalty number a.
    """

    kind: MemberKind
    hidden: HiddenLayer | None
    centre: Array
    basis: Array  # (samples, features or neurons)
    duals: Array  # (penalties, samples, outputs)
    mean: Array

    def features(self, z: Array) -> Array:
        """Return what the output weights apply to."""
        return z if self.hidden is None else self.hidden.respond(z)

    def outputs(self, z: Array) -> Array:
        """Return decisions (penalties, samples, outputs)."""
        similarity = ((self.features(z) - self.centre) @ self.basis.T).astype(np.float64)
        return np.asarray(similarity @ self.duals + self.mean)

    def weights(self, shares: Array) -> Array:
        """Return output weights (features or neurons, outputs), mixed over the penalties."""
        return np.asarray(
            self.basis.T.astype(np.float64) @ np.tensordot(shares, self.duals, axes=1)
        )


def kinds_for(problem: Problem) -> list[MemberKind]:
    """Return the members worth trying for a problem of this size."""
    by_strength = [(0, False), (1, False), (2, False)]
    if not problem.has_many_samples:
        by_strength += [(3, False), (2, True), (3, True)]
    kinds = [
        MemberKind(q, r, body, mixed=mixed)
        for r in (0.0, 0.5)
        for q, mixed in by_strength
        for body in ("linear", "hidden")
    ]
    if problem.has_many_samples and problem.x.shape[1] <= _MOST_FEATURES_FOR_PAIRS:
        kinds.append(MemberKind(PAIR, 0.0, "hidden"))
    if problem.kind == "squared":
        kinds.append(MemberKind(0, 0.0, "lasso"))
        kinds += [MemberKind(1, 0.0, "generation", g + 1) for g in range(N_GENERATIONS)]
    return kinds


def penalties_for(problem: Problem) -> NDArray[np.float64]:
    """Return the ridge penalties to try, relative to the mean of the kernel's diagonal."""
    if problem.has_many_samples:
        return np.logspace(-3, 1, 5)
    return np.logspace(-3, 1.5, 10)


def fit_members(
    problem: Problem,
    view: View,
    z: Array,
    kinds: list[MemberKind],
    penalties: NDArray[np.float64],
    rng: np.random.Generator,
) -> Iterator[Member]:
    """Fit one member after another on z-scores of the problem's samples."""
    strength = f_statistic(z, problem.targets, problem.weights)
    usual = np.median(view.spread[view.spread > 0]) if np.any(view.spread > 0) else 1.0
    spread = view.spread / max(float(usual), 1e-12)
    pairs: Array | None = None
    bred: Array | None = None
    for kind in kinds:
        if kind.body == "lasso":
            x, targets, _, _ = _centred(problem, z)
            yield _with_few(problem, z, kind, lasso_path(x, targets, penalties.size))
            continue
        if kind.body == "generation":
            if bred is None:
                x, targets, _, _ = _centred(problem, z)
                bred = generations(x, targets, strength, penalties)
            yield _with_few(problem, z, kind, bred[kind.generation - 1])
            continue
        if kind.q == PAIR:
            if pairs is None:
                pairs = np.sqrt(pair_strength(z, problem.targets, problem.weights))
            prior = pairs if np.count_nonzero(pairs) >= 2 else strength
        else:
            prior = _prior(kind, strength, spread)
        yield _fit_member(problem, z, kind, _with_mean_1(prior), penalties, rng)


def _prior(kind: MemberKind, strength: Array, spread: Array) -> Array:
    scale = spread ** (2 * kind.r)
    prior = strength**kind.q * scale
    if not kind.mixed:
        return prior
    return MIXED * _with_mean_1(prior) + (1 - MIXED) * _with_mean_1(scale)


def _with_mean_1(prior: Array) -> Array:
    return prior / max(float(prior.mean()), 1e-300)


def _fit_member(
    problem: Problem,
    z: Array,
    kind: MemberKind,
    prior: Array,
    penalties: NDArray[np.float64],
    rng: np.random.Generator,
) -> Member:
    hidden = None
    if kind.body == "hidden":
        hidden = HiddenLayer.draw(prior, z, rng, with_bias=problem.has_many_samples)
    features = z if hidden is None else hidden.respond(z)
    centred, targets, centre, mean = _centred(problem, features)
    weighed = centred * prior.astype(np.float32) if hidden is None else centred
    kernel = (weighed @ centred.T).astype(np.float64)
    duals = dual_coefficients(kernel, targets, penalties)
    return Member(kind, hidden, centre, weighed, duals, mean)


def _centred(problem: Problem, features: Array) -> tuple[Array, Array, Array, Array]:
    """Return features and targets less their means, times the root of sample weights; the means."""
    weights = problem.weights / problem.weights.mean()
    root = np.sqrt(weights)[:, None]
    centre = np.average(features, axis=0, weights=weights).astype(np.float32)
    mean = np.average(problem.targets, axis=0, weights=weights)
    centred = ((features - centre) * root).astype(np.float32)
    return centred, (problem.targets - mean) * root, centre, mean


def _with_few(problem: Problem, z: Array, kind: MemberKind, weights: Array) -> Member:
    """Return a member whose weights (penalties, features, outputs) are known, most of them 0."""
    _, _, centre, mean = _centred(problem, z)
    used = np.flatnonzero(weights.any(axis=(0, 2)))
    basis = np.zeros((used.size, z.shape[1]), dtype=np.float32)
    basis[np.arange(used.size), used] = 1.0
    return Member(kind, None, centre, basis, weights[:, used], mean)

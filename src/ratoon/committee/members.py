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
import scipy.sparse
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.committee.centred import Centred
from ratoon.committee.dual import dual_coefficients
from ratoon.committee.hidden import HiddenLayer
from ratoon.committee.linear import N_GENERATIONS, generations, lasso_path
from ratoon.committee.priors import f_statistic, pair_strength
from ratoon.committee.problem import Problem
from ratoon.committee.views import View

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

    @property
    def prefers_features(self) -> bool:
        """Whether features count by how strongly they are tied to the target."""
        return self.q != 0 or self.body == "lasso"


@dataclass(frozen=True, eq=False)
class Member:
    """A fitted member: its output weights are combinations of the (weighed) training samples.

    Outputs are ``(features(z) - centre) @ basis.T @ duals[a] + mean`` for penalty number a.
    """

    kind: MemberKind
    hidden: HiddenLayer | None
    centre: Array
    basis: Any  # (samples, features or neurons), dense or sparse
    duals: Array  # (penalties, samples, outputs)
    mean: Array

    def features(self, z: Any) -> Any:
        """Return what the output weights apply to."""
        return z if self.hidden is None else self.hidden.respond(z)

    def outputs(self, z: Any) -> Array:
        """Return decisions (penalties, samples, outputs)."""
        features = self.features(z)
        if scipy.sparse.issparse(features):
            similarity = (features @ self.basis.T).toarray() - self.centre @ self.basis.T
        else:
            similarity = (features - self.centre) @ self.basis.T
        return np.asarray(similarity.astype(np.float64) @ self.duals + self.mean)

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
    z: Any,
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
            x = Centred.of(z, problem.weights)
            path = lasso_path(x, _centred_targets(problem)[0], penalties.size)
            yield _with_few(problem, x.centre, kind, path)
            continue
        if kind.body == "generation":
            x = Centred.of(z, problem.weights)
            if bred is None:
                bred = generations(x, _centred_targets(problem)[0], strength, penalties)
            yield _with_few(problem, x.centre, kind, bred[kind.generation - 1])
            continue
        if kind.q == PAIR:
            if pairs is None:
                # Looks at all pairs of at most 5,000 features, for which sparse is no quicker.
                whole = z.toarray() if scipy.sparse.issparse(z) else z
                pairs = np.sqrt(pair_strength(whole, problem.targets, problem.weights))
            prior = pairs if np.count_nonzero(pairs) >= 2 else strength
        else:
            prior = _prior(kind, strength, spread)
        yield _fit_member(problem, view, z, kind, _with_mean_1(prior), penalties, rng)


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
    view: View,
    z: Any,
    kind: MemberKind,
    prior: Array,
    penalties: NDArray[np.float64],
    rng: np.random.Generator,
) -> Member:
    targets, mean = _centred_targets(problem)
    if kind.body == "hidden":
        hidden = HiddenLayer.draw(
            prior, z, rng, with_bias=problem.has_many_samples, origin=view.origin
        )
        x = Centred.of(hidden.respond(z), problem.weights)
        duals = dual_coefficients(x.kernel(), targets, penalties)
        return Member(kind, hidden, x.centre, x.rows, duals, mean)
    x = Centred.of(z, problem.weights)
    duals = dual_coefficients(x.kernel(prior), targets, penalties)
    # Duals sum to 0 over (weighed) samples, so rows that are centred in thought only will do.
    return Member(kind, None, x.centre, x.weighed(prior), duals, mean)


def _centred_targets(problem: Problem) -> tuple[Array, Array]:
    """Return targets less their means, times the root of sample weights; and the means."""
    weights = problem.weights / problem.weights.mean()
    mean = np.average(problem.targets, axis=0, weights=weights)
    return (problem.targets - mean) * np.sqrt(weights)[:, None], mean


def _with_few(problem: Problem, centre: Array, kind: MemberKind, weights: Array) -> Member:
    """Return a member whose weights (penalties, features, outputs) are known, most of them 0."""
    used = np.flatnonzero(weights.any(axis=(0, 2)))
    ones = np.ones(used.size, dtype=np.float32)
    basis = scipy.sparse.csr_array(
        (ones, (np.arange(used.size), used)), shape=(used.size, weights.shape[1])
    )
    return Member(kind, None, centre, basis, weights[:, used], _centred_targets(problem)[1])

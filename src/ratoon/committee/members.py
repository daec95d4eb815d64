"""Members of a committee: ridge regression on standardised features or on a random hidden layer.

The prior of a member gives feature j the variance ``F_j^q * std_j^(2r)``: q says how much the
strength of a feature counts, r how much its standard deviation does.  In a mixed prior a quarter of
the variance is assigned by strength and the rest evenly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.committee.linear import N_ITERATIONS, iterated_ridge, lasso_path, ridge_duals
from ratoon.committee.priors import f_statistic, pair_strength
from ratoon.committee.problem import CentredRows, Problem, Standardisation

N_NEURONS, FAN_IN = 4000, 10

PAIR = -1
"""Replaces q: the prior is the root of the pair strength."""

MIXED = 0.25
"""Proportion of the variance that a mixed prior assigns by strength."""

_MAX_FEATURES_FOR_PAIRS = 5000


@dataclass(frozen=True)
class MemberKind:
    """What distinguishes members: exponents of the prior, model, whether the prior is mixed."""

    q: int
    r: float
    model: str  # "linear", "hidden", "lasso" or "iterated"
    iteration: int = 0
    mixed: bool = False

    @property
    def selects_features(self) -> bool:
        """Whether the strength of a feature counts."""
        return self.q != 0 or self.model == "lasso"

    @property
    def name(self) -> str:
        """Readable name."""
        if self.model in ("lasso", "iterated"):
            return f"few features, {self.model} {self.iteration or ''}".rstrip()
        prior = "pairs" if self.q < 0 else f"strength^{self.q}" + (" mixed" if self.mixed else "")
        return f"{self.model}, {prior}" + (", natural scale" if self.r else "")


@dataclass(frozen=True, eq=False)
class HiddenLayer:
    """Sparse layer of rectified neurons with random, fixed weights (features x neurons)."""

    weights: Any  # SciPy CSC array
    bias: Array

    @classmethod
    def draw(
        cls,
        prior: Array,
        z: Any,
        rng: np.random.Generator,
        *,
        with_bias: bool,
        remaining_mean: Array | None = None,
    ) -> HiddenLayer:
        """Draw `FAN_IN` inputs per neuron with probability proportional to the root of the prior.

        Weights are normal, scaled so that the variance a feature contributes is proportional to its
        prior, as in a dense layer whose weights have the prior as their variance.  A connection
        drawn twice is merged.  With ``with_bias`` neurons have random thresholds, which products of
        features need and small samples do not support.  Biases compensate for ``remaining_mean``,
        the mean of features that are not centred.
        """
        n_features = prior.size
        probability = np.sqrt(prior)
        probability = probability / probability.sum()
        # Stratified sampling: one draw from each of n_draws equal parts of [0, 1].
        n_draws = N_NEURONS * FAN_IN
        levels = (np.arange(n_draws) + rng.random(n_draws)) / n_draws
        inputs = np.minimum(np.searchsorted(np.cumsum(probability), levels), n_features - 1)
        inputs = rng.permutation(inputs)
        scale = np.sqrt(prior[inputs] / (probability[inputs] * n_features) / FAN_IN)
        values = rng.standard_normal(inputs.size) * scale
        neurons = np.repeat(np.arange(N_NEURONS), FAN_IN)
        weights = scipy.sparse.csc_array(
            (values.astype(np.float32), (inputs, neurons)), shape=(n_features, N_NEURONS)
        )
        weights.sum_duplicates()
        bias = np.zeros(N_NEURONS) if remaining_mean is None else -(remaining_mean @ weights)
        if with_bias:
            size = np.sqrt(np.mean(np.square(_product(z, weights) + bias)))
            bias = bias + rng.standard_normal(N_NEURONS) * size
        return cls(weights, bias.astype(np.float32))

    def activations(self, z: Any) -> Array:
        """Return the activations of the neurons, (samples, neurons)."""
        return np.asarray(np.maximum(_product(z, self.weights) + self.bias, 0.0))


def _product(z: Any, weights: Any) -> Array:
    if scipy.sparse.issparse(z):
        return np.asarray((z @ weights).toarray())
    return np.asarray((weights.T @ z.T).T)


@dataclass(frozen=True, eq=False)
class Member:
    """A fitted member: its output weights are combinations of the training samples.

    Outputs are ``(features(z) - feature_mean) @ basis.T @ duals[a] + mean`` for penalty number a.
    """

    kind: MemberKind
    hidden: HiddenLayer | None
    feature_mean: Array
    basis: Any  # (samples, features or neurons), dense or sparse
    duals: Array  # (penalties, samples, outputs)
    mean: Array

    def features(self, z: Any) -> Any:
        """Return what the output weights are applied to: features or activations."""
        return z if self.hidden is None else self.hidden.activations(z)

    def outputs(self, z: Any) -> Array:
        """Return outputs (penalties, samples, outputs)."""
        features = self.features(z)
        if scipy.sparse.issparse(features):
            similarity = (features @ self.basis.T).toarray() - self.feature_mean @ self.basis.T
        else:
            similarity = (features - self.feature_mean) @ self.basis.T
        return np.asarray(similarity.astype(np.float64) @ self.duals + self.mean)

    def weights(self, shares: Array) -> Array:
        """Return output weights (features or neurons, outputs), averaged over the penalties."""
        return np.asarray(
            self.basis.T.astype(np.float64) @ np.tensordot(shares, self.duals, axes=1)
        )


def member_kinds(problem: Problem) -> list[MemberKind]:
    """Return the members to fit to a problem of this size."""
    by_strength = [(0, False), (1, False), (2, False)]
    if not problem.has_many_samples:
        by_strength += [(3, False), (2, True), (3, True)]
    kinds = [
        MemberKind(q, r, model, mixed=mixed)
        for r in (0.0, 0.5)
        for q, mixed in by_strength
        for model in ("linear", "hidden")
    ]
    if problem.has_many_samples and problem.x.shape[1] <= _MAX_FEATURES_FOR_PAIRS:
        kinds.append(MemberKind(PAIR, 0.0, "hidden"))
    if problem.kind == "squared":
        kinds.append(MemberKind(0, 0.0, "lasso"))
        kinds += [MemberKind(1, 0.0, "iterated", i + 1) for i in range(N_ITERATIONS)]
    return kinds


def ridge_penalties(problem: Problem) -> NDArray[np.float64]:
    """Return the ridge penalties to try, relative to the mean of the kernel's diagonal."""
    if problem.has_many_samples:
        return np.logspace(-3, 1, 5)
    return np.logspace(-3, 1.5, 10)


def fit_members(
    problem: Problem,
    standardisation: Standardisation,
    z: Any,
    kinds: list[MemberKind],
    penalties: NDArray[np.float64],
    rng: np.random.Generator,
) -> Iterator[Member]:
    """Fit one member after another to the standardised features ``z`` of the problem."""
    strength = f_statistic(z, problem.targets, problem.weights)
    std = standardisation.std
    typical = np.median(std[std > 0]) if np.any(std > 0) else 1.0
    std = std / max(float(typical), 1e-12)
    pairs: Array | None = None
    iterated: Array | None = None
    for kind in kinds:
        if kind.model == "lasso":
            x = CentredRows.of(z, problem.weights)
            path = lasso_path(x, problem.centred_targets()[0], penalties.size)
            yield _from_weights(problem, x.mean, kind, path)
            continue
        if kind.model == "iterated":
            x = CentredRows.of(z, problem.weights)
            if iterated is None:
                iterated = iterated_ridge(x, problem.centred_targets()[0], strength, penalties)
            yield _from_weights(problem, x.mean, kind, iterated[kind.iteration - 1])
            continue
        if kind.q == PAIR:
            if pairs is None:
                # All pairs of at most 5,000 features: a sparse matrix would be no faster.
                dense = z.toarray() if scipy.sparse.issparse(z) else z
                pairs = np.sqrt(pair_strength(dense, problem.targets, problem.weights))
            prior = pairs if np.count_nonzero(pairs) >= 2 else strength
        else:
            prior = _prior(kind, strength, std)
        yield _fit_member(problem, standardisation, z, kind, _with_mean_1(prior), penalties, rng)


def _prior(kind: MemberKind, strength: Array, std: Array) -> Array:
    scale = std ** (2 * kind.r)
    prior = strength**kind.q * scale
    if not kind.mixed:
        return prior
    return MIXED * _with_mean_1(prior) + (1 - MIXED) * _with_mean_1(scale)


def _with_mean_1(prior: Array) -> Array:
    return prior / max(float(prior.mean()), 1e-300)


def _fit_member(
    problem: Problem,
    standardisation: Standardisation,
    z: Any,
    kind: MemberKind,
    prior: Array,
    penalties: NDArray[np.float64],
    rng: np.random.Generator,
) -> Member:
    targets, mean = problem.centred_targets()
    if kind.model == "hidden":
        hidden = HiddenLayer.draw(
            prior,
            z,
            rng,
            with_bias=problem.has_many_samples,
            remaining_mean=standardisation.remaining_mean,
        )
        x = CentredRows.of(hidden.activations(z), problem.weights)
        duals = ridge_duals(x.kernel(), targets, penalties)
        return Member(kind, hidden, x.mean, x.rows, duals, mean)
    x = CentredRows.of(z, problem.weights)
    duals = ridge_duals(x.kernel(prior), targets, penalties)
    # Weighted duals sum to 0, so implicitly centred rows give the same output weights.
    return Member(kind, None, x.mean, x.times(prior), duals, mean)


def _from_weights(
    problem: Problem, feature_mean: Array, kind: MemberKind, weights: Array
) -> Member:
    """Return a member with given weights (penalties, features, outputs), most of which are 0."""
    used = np.flatnonzero(weights.any(axis=(0, 2)))
    ones = np.ones(used.size, dtype=np.float32)
    basis = scipy.sparse.csr_array(
        (ones, (np.arange(used.size), used)), shape=(used.size, weights.shape[1])
    )
    return Member(kind, None, feature_mean, basis, weights[:, used], problem.centred_targets()[1])

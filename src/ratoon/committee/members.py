"""Members of a committee: ridge regression on standardised features or on a random hidden layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.committee.linear import N_ITERATIONS, iterated_ridge, lasso_path, ridge_duals
from ratoon.committee.priors import f_of_rows, pair_strength
from ratoon.committee.problem import CentredRows, Problem, Standardisation, scale_csr

LINEAR = ((0, 0.0), (0, 0.5), (1, 0.5), (2, 0.5))
HIDDEN = ((0, 0.5), (1, 0.5), (2, 0.5))
"""Exponents q and r of the prior variance ``F_j^q * std_j^(2r)``, one pair for each member."""

NEURONS_PER_SAMPLE, MIN_NEURONS, MAX_NEURONS, FAN_IN = 20, 1000, 4000, 10
MAX_FEATURES_FOR_PAIRS, MAX_PRODUCTS, MIN_SAMPLES_FOR_PAIRS = 5000, 50_000_000, 400
"""Limits of pair strength: features, pairs of features times classes, and samples."""

MAX_TARGETS_FOR_SELECTION = 10
"""With more continuous targets no member selects features: each target has its own."""


@dataclass(frozen=True)
class MemberKind:
    """What distinguishes the members of a committee.

    The model is ridge regression on features ("linear") or on a hidden layer ("hidden"), whose
    prior may be pair strength ("pairs"), the lasso ("lasso") or iterated ridge ("iterated").
    """

    model: str
    exponent: int = 0  # q in the prior variance; the number of iterations of "iterated"
    scale: float = 0.0  # r in the prior variance F_j^q * std_j^(2r)

    @property
    def selects_features(self) -> bool:
        """Whether the strength of a feature counts."""
        return self.exponent != 0 or self.model in ("pairs", "lasso")

    def __str__(self) -> str:
        """Return a readable name.

        Examples
        --------
        >>> str(MemberKind("linear", 2)), str(MemberKind("hidden", 2, 0.5))
        ('linear, F^2', 'hidden, F^2 std')
        """
        if self.model in ("linear", "hidden"):
            return f"{self.model}, F^{self.exponent}" + (" std" if self.scale else "")
        return f"iterated ridge {self.exponent}" if self.model == "iterated" else self.model


@dataclass(frozen=True, eq=False)
class Design:
    """Which members are fitted, and how large they are; the same in every fold."""

    kinds: tuple[MemberKind, ...]
    penalties: NDArray[np.float64]  # relative to the mean of the kernel's diagonal
    n_neurons: int  # of a hidden member
    has_thresholds: bool  # whether hidden neurons have random biases

    @classmethod
    def for_problem(cls, problem: Problem) -> Design:
        """Return the default design for a problem of this size and kind."""
        n_features, n_outputs = problem.x.shape[1], problem.targets.shape[1]
        selects = problem.kind != "squared" or n_outputs <= MAX_TARGETS_FOR_SELECTION
        kinds = [MemberKind("linear", q, r) for q, r in LINEAR if selects or q == 0]
        kinds += [MemberKind("hidden", q, r) for q, r in HIDDEN if selects or q == 0]
        if (
            selects
            and problem.n_samples > MIN_SAMPLES_FOR_PAIRS
            and n_features <= MAX_FEATURES_FOR_PAIRS
            and n_features**2 * n_outputs <= MAX_PRODUCTS
        ):
            kinds.append(MemberKind("pairs"))
        if selects and problem.kind == "squared":
            kinds.append(MemberKind("lasso"))
            kinds += [MemberKind("iterated", i + 1) for i in range(N_ITERATIONS)]
        return cls(
            tuple(kinds),
            np.logspace(-3, 1, 5) if problem.has_many_samples else np.logspace(-3, 1.5, 10),
            int(np.clip(NEURONS_PER_SAMPLE * problem.n_samples, MIN_NEURONS, MAX_NEURONS)),
            problem.has_many_samples,
        )


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
        n_neurons: int,
        *,
        has_thresholds: bool,
        remaining_mean: Array | None = None,
    ) -> HiddenLayer:
        """Draw `FAN_IN` inputs per neuron with probability proportional to the root of the prior.

        Weights are normal, scaled so that the variance a feature contributes is proportional to its
        prior, as in a dense layer whose weights have the prior as their variance.  A connection
        drawn twice is merged.  Random thresholds let neurons approximate products of features,
        which small samples do not support.  Biases compensate for ``remaining_mean``, the mean of
        features that are not centred.
        """
        n_features = prior.size
        probability = np.sqrt(prior)
        probability = probability / probability.sum()
        # Stratified sampling: one draw from each of n_draws equal parts of [0, 1].
        n_draws = n_neurons * FAN_IN
        levels = (np.arange(n_draws) + rng.random(n_draws)) / n_draws
        inputs = np.minimum(np.searchsorted(np.cumsum(probability), levels), n_features - 1)
        inputs = rng.permutation(inputs)
        scale = np.sqrt(prior[inputs] / (probability[inputs] * n_features) / FAN_IN)
        values = rng.standard_normal(inputs.size) * scale
        neurons = np.repeat(np.arange(n_neurons), FAN_IN)
        weights = scipy.sparse.csc_array(
            (values.astype(np.float32), (inputs, neurons)), shape=(n_features, n_neurons)
        )
        weights.sum_duplicates()
        bias = np.zeros(n_neurons) if remaining_mean is None else -(remaining_mean @ weights)
        if has_thresholds:
            size = np.sqrt(np.mean(np.square(_product(z, weights) + bias)))
            bias = bias + rng.standard_normal(n_neurons) * size
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

    Outputs are ``((features(z) - x.mean) * prior) @ x.rows.T @ duals[a] + mean`` for penalty
    number a.
    """

    kind: MemberKind
    hidden: HiddenLayer | None
    x: CentredRows  # features or activations of the training samples
    prior: Array | None  # None for equal variances
    duals: Array  # (penalties, samples, outputs)
    mean: Array

    def features(self, z: Any) -> Any:
        """Return what the output weights are applied to: features or activations."""
        return z if self.hidden is None else self.hidden.activations(z)

    def outputs(self, z: Any) -> Array:
        """Return outputs (penalties, samples, outputs)."""
        features, prior = self.features(z), self.prior
        if scipy.sparse.issparse(features):
            scaled = features if prior is None else scale_csr(features, None, prior)
            mean = self.x.mean if prior is None else self.x.mean * prior
            similarity = (scaled @ self.x.rows.T).toarray() - mean @ self.x.rows.T
        else:
            scaled = features - self.x.mean
            if prior is not None:
                scaled *= prior.astype(scaled.dtype)
            # The rows are sparse if they only name the features that have a weight.
            similarity = scaled @ self.x.rows.T
        return np.asarray(similarity.astype(np.float64) @ self.duals + self.mean)

    def weights(self, shares: Array) -> Array:
        """Return output weights (features or neurons, outputs), averaged over the penalties."""
        # Weighted duals sum to 0, so implicitly centred rows give the same output weights.
        combined = np.tensordot(shares, self.duals, axes=1)
        weights = np.asarray(self.x.rows.T @ combined.astype(self.x.rows.dtype))
        return weights if self.prior is None else weights * self.prior[:, None]


def fit_members(
    problem: Problem,
    standardisation: Standardisation,
    z: Any,
    design: Design,
    rng: np.random.Generator,
) -> Iterator[Member]:
    """Fit one member after another to the standardised features ``z`` of the problem."""
    x = CentredRows.of(z, problem.weights)
    targets, mean = problem.centred_targets()
    strength = f_of_rows(x, problem.targets, problem.weights)
    std = standardisation.std
    typical = np.median(std[std > 0]) if np.any(std > 0) else 1.0
    std = std / max(float(typical), 1e-12)
    iterated: Array | None = None
    for kind in design.kinds:
        if kind.model == "lasso":
            yield _from_weights(kind, x, lasso_path(x, targets, design.penalties.size), mean)
        elif kind.model == "iterated":
            if iterated is None:
                iterated = iterated_ridge(x, targets, strength, design.penalties)
            yield _from_weights(kind, x, iterated[kind.exponent - 1], mean)
        else:
            prior = strength**kind.exponent * std ** (2 * kind.scale)
            if kind.model == "pairs":
                # All pairs of at most 5,000 features: a sparse matrix would be no faster.
                dense = z.toarray() if scipy.sparse.issparse(z) else z
                pairs = np.sqrt(pair_strength(dense, problem.targets, problem.weights))
                prior = pairs if np.count_nonzero(pairs) >= 2 else strength
            prior = with_mean_1(prior)
            if kind.model == "linear":
                duals = ridge_duals(x.kernel(prior), targets, design.penalties)
                yield Member(kind, None, x, prior, duals, mean)
                continue
            hidden = HiddenLayer.draw(
                prior,
                z,
                rng,
                design.n_neurons,
                has_thresholds=design.has_thresholds,
                remaining_mean=standardisation.remaining_mean,
            )
            active = CentredRows.of(hidden.activations(z), problem.weights)
            duals = ridge_duals(active.kernel(), targets, design.penalties)
            yield Member(kind, hidden, active, None, duals, mean)


def with_mean_1(prior: Array) -> Array:
    """Return prior variances with a mean of 1, all equal where no feature has any."""
    if not prior.any():
        return np.ones_like(prior)
    return prior / max(float(prior.mean()), 1e-300)


def _from_weights(kind: MemberKind, x: CentredRows, weights: Array, mean: Array) -> Member:
    """Return a member with given weights (penalties, features, outputs), most of which are 0."""
    used = np.flatnonzero(weights.any(axis=(0, 2)))
    ones = np.ones(used.size, dtype=np.float32)
    names = scipy.sparse.csr_array(
        (ones, (np.arange(used.size), used)), shape=(used.size, weights.shape[1])
    )
    return Member(kind, None, CentredRows(names, x.mean, x.root), None, weights[:, used], mean)

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
from ratoon.committee.priors import f_statistic, pair_strength
from ratoon.committee.problem import CentredRows, Problem, Standardisation

STRENGTH_EXPONENTS, SCALE_EXPONENTS = (0, 1, 2), (0.0, 0.5)
NEURONS_PER_SAMPLE, MIN_NEURONS, MAX_NEURONS, FAN_IN = 20, 1000, 4000, 10
MAX_FEATURES_FOR_PAIRS = 5000


@dataclass(frozen=True)
class MemberKind:
    """What distinguishes the members of a committee.

    Parameters
    ----------
    model : {"linear", "hidden", "pairs", "lasso", "iterated"}
        Ridge regression on features or on a hidden layer; a hidden layer with a prior by pair
        strength; the lasso; iterated ridge regression.
    exponent : int
        q in the prior variance ``F_j^q * std_j^(2r)``; for "iterated" the number of iterations.
    scale : float
        r in the same formula.
    """

    model: str
    exponent: int = 0
    scale: float = 0.0

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
    """Which members are fitted, and how large they are; the same in every fold.

    Parameters
    ----------
    kinds : tuple of MemberKind
        The members.
    penalties : ndarray
        Ridge penalties, relative to the mean of the kernel's diagonal.
    n_neurons : int
        Number of hidden neurons of a member.
    has_thresholds : bool
        Whether hidden neurons have random biases.
    """

    kinds: tuple[MemberKind, ...]
    penalties: NDArray[np.float64]
    n_neurons: int
    has_thresholds: bool

    @classmethod
    def for_problem(cls, problem: Problem) -> Design:
        """Return the default design for a problem of this size and kind."""
        kinds = [
            MemberKind(model, q, r)
            for r in SCALE_EXPONENTS
            for q in STRENGTH_EXPONENTS
            for model in ("linear", "hidden")
        ]
        if problem.has_many_samples and problem.x.shape[1] <= MAX_FEATURES_FOR_PAIRS:
            kinds.append(MemberKind("pairs"))
        if problem.kind == "squared":
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


def fit_members(
    problem: Problem,
    standardisation: Standardisation,
    z: Any,
    design: Design,
    rng: np.random.Generator,
) -> Iterator[Member]:
    """Fit one member after another to the standardised features ``z`` of the problem."""
    strength = f_statistic(z, problem.targets, problem.weights)
    std = standardisation.std
    typical = np.median(std[std > 0]) if np.any(std > 0) else 1.0
    std = std / max(float(typical), 1e-12)
    iterated: Array | None = None
    for kind in design.kinds:
        if kind.model == "lasso":
            x = CentredRows.of(z, problem.weights)
            path = lasso_path(x, problem.centred_targets()[0], design.penalties.size)
            yield _from_weights(problem, x.mean, kind, path)
        elif kind.model == "iterated":
            x = CentredRows.of(z, problem.weights)
            if iterated is None:
                targets = problem.centred_targets()[0]
                iterated = iterated_ridge(x, targets, strength, design.penalties)
            yield _from_weights(problem, x.mean, kind, iterated[kind.exponent - 1])
        else:
            if kind.model == "pairs":
                # All pairs of at most 5,000 features: a sparse matrix would be no faster.
                dense = z.toarray() if scipy.sparse.issparse(z) else z
                pairs = np.sqrt(pair_strength(dense, problem.targets, problem.weights))
                prior = pairs if np.count_nonzero(pairs) >= 2 else strength
            else:
                prior = strength**kind.exponent * std ** (2 * kind.scale)
            yield _fit_ridge(problem, standardisation, z, kind, with_mean_1(prior), design, rng)


def with_mean_1(prior: Array) -> Array:
    """Return prior variances with a mean of 1, all equal where no feature has any."""
    if not prior.any():
        return np.ones_like(prior)
    return prior / max(float(prior.mean()), 1e-300)


def _fit_ridge(
    problem: Problem,
    standardisation: Standardisation,
    z: Any,
    kind: MemberKind,
    prior: Array,
    design: Design,
    rng: np.random.Generator,
) -> Member:
    targets, mean = problem.centred_targets()
    if kind.model != "linear":
        hidden = HiddenLayer.draw(
            prior,
            z,
            rng,
            design.n_neurons,
            has_thresholds=design.has_thresholds,
            remaining_mean=standardisation.remaining_mean,
        )
        x = CentredRows.of(hidden.activations(z), problem.weights)
        duals = ridge_duals(x.kernel(), targets, design.penalties)
        return Member(kind, hidden, x.mean, x.rows, duals, mean)
    x = CentredRows.of(z, problem.weights)
    duals = ridge_duals(x.kernel(prior), targets, design.penalties)
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

"""Fit a committee: cross-validate its members, compute their shares, merge them into a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.special import log_softmax

from ratoon.arrays import Array
from ratoon.committee.calibration import best_temperature, boundary_shift
from ratoon.committee.members import (
    Design,
    Member,
    MemberKind,
    fit_members,
)
from ratoon.committee.problem import Problem, Standardisation, take_rows
from ratoon.kernels import Scaling
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.rng import derive_generator
from ratoon.samples.groups import grouped_folds
from ratoon.topology import Topology

N_FOLDS, N_FOLDS_OF_MANY = 10, 4
"""With many samples only the first fold is used for validation."""

MIN_SHARE, MIN_PENALTY_SHARE = 0.01, 0.001
"""Smaller shares of a member, or of a penalty within a member, become 0."""

MAX_EFFECTIVE_SAMPLES = 200
MAX_VALIDATED_OUTPUTS = 100
"""With more continuous targets or labels, shares come from so many of them, evenly spaced."""

SHARPNESS = {True: 0.5, False: 1.0}
"""Factor of the error in the objective of shares, for classes and for continuous targets.

With 1 this is the likelihood of normal errors of unknown variance.  Errors of targets of -1 and 1
are not normal, and carry less evidence.
"""

SELECTION_PRIOR, HIDDEN_PRIOR = {True: 1.0, False: 0.01}, {True: 1 / 4, False: 1.0}
"""Prior share of a member that selects features or has a hidden layer, relative to plain ridge.

Of the many members that select features for a continuous target some are good at random.
"""


@dataclass(frozen=True, eq=False)
class Committee:
    """A fitted committee, merged into one network with one hidden layer."""

    network: SparseMLP
    shares: dict[str, float]  # of each kind of member, by a readable name; they sum to 1
    cross_validated: Array
    """Outputs for the training samples (samples, outputs) from members fitted without them.

    NaN for samples that were in no validation set, and outputs that were not validated.
    """
    temperature: float  # the factor that turns outputs into logits; already in the network


def fit_committee(
    problem: Problem,
    seed: int,
    *,
    scaling: Scaling | None = None,
    candidates: Callable[[MemberKind], bool] | None = None,
) -> Committee:
    """Cross-validate all members, refit those with a large enough share, merge them.

    A ``scaling`` replaces the standardisation by the samples; ``candidates`` says which members are
    fitted at all.

    The strength of features is recomputed in every fold: validation errors would be too small
    for features selected with the help of the validation samples.
    """
    design = Design.for_problem(problem)
    if candidates is not None:
        design = replace(design, kinds=tuple(filter(candidates, design.kinds)))
    if scaling is None:
        standardisation = Standardisation.fit(problem.x, problem.weights)
    else:
        standardisation = Standardisation.of_scaling(scaling, problem.x, problem.weights)
    z = standardisation.transform(problem.x)
    z = z if scipy.sparse.issparse(z) else np.asfortranarray(z)
    validated = _validated_outputs(problem)
    part = replace(problem, targets=problem.targets[:, validated])
    outputs, seen = _cross_validate(part, standardisation, z, design, seed)
    given = (part.targets[seen], part.weights[seen], part.kind)
    shares = _shares(design, outputs[:, :, seen], *given)
    mixture = np.einsum("mp,mpno->no", shares, outputs)
    shift = boundary_shift(mixture[seen], *given)
    mixture -= shift
    temperature = best_temperature(mixture[seen], *given)
    mixture[~seen] = np.nan
    cross_validated = np.full(problem.targets.shape, np.nan)
    cross_validated[:, validated] = temperature * mixture
    kept, used = shares.sum(axis=1) > 0, shares.sum(axis=0) > 0
    if any(kind.model == "lasso" for kind in design.kinds):
        used = np.ones_like(used)  # levels of the lasso's path are numbered like penalties
    members = fit_members(
        problem,
        standardisation,
        z,
        replace(
            design,
            kinds=tuple(compress(design.kinds, kept)),
            penalties=design.penalties[used],
        ),
        derive_generator(seed, "committee"),
    )
    bias = np.zeros(problem.targets.shape[1])
    bias[validated] = -temperature * shift
    network = merge_members(
        members, list(temperature * shares[kept][:, used]), standardisation, bias
    )
    by_name = {
        str(kind): float(share.sum()) for kind, share in zip(design.kinds, shares, strict=True)
    }
    return Committee(network, by_name, cross_validated, temperature)


# ------------------------------------------------------------------------------ cross-validation


def _validated_outputs(problem: Problem) -> NDArray[np.intp]:
    """Return the outputs that are cross-validated: all of them unless there are very many."""
    n_outputs = problem.targets.shape[1]
    if problem.kind == "softmax" or n_outputs <= MAX_VALIDATED_OUTPUTS:
        return np.arange(n_outputs)
    return np.linspace(0, n_outputs - 1, MAX_VALIDATED_OUTPUTS).astype(np.intp)


def _cross_validate(
    problem: Problem, standardisation: Standardisation, z: Array, design: Design, seed: int
) -> tuple[Array, NDArray[np.bool_]]:
    """Return validation outputs (members, penalties, samples, outputs), which samples have any."""
    n_folds = N_FOLDS_OF_MANY if problem.has_many_samples else N_FOLDS
    folds = assign_folds(problem, n_folds, seed)
    seen = (folds == 0) | (not problem.has_many_samples)
    outputs = np.zeros((len(design.kinds), design.penalties.size, *problem.targets.shape))
    for fold in np.unique(folds[seen]):
        validation, training = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        part, unseen = problem.take(training), take_rows(z, validation)
        rng = derive_generator(seed, "fold", 0, int(fold))
        fitted = fit_members(part, standardisation, take_rows(z, training), design, rng)
        for number, member in enumerate(fitted):
            outputs[number][:, validation] = member.outputs(unseen)
    return outputs, seen


def assign_folds(problem: Problem, n_folds: int, seed: int) -> NDArray[np.int64]:
    """Assign samples to folds, stratified by class where there are classes."""
    rng = derive_generator(seed, "folds", 0)
    if problem.together is not None:
        codes = np.unique(problem.together, return_inverse=True)[1].astype(np.int64)
        if codes.max() > 0:
            return grouped_folds(codes, problem.groups, n_folds, rng)
    groups = np.zeros(problem.n_samples, np.int64) if problem.groups is None else problem.groups
    order = np.concatenate(
        [rng.permutation(np.flatnonzero(groups == g)) for g in rng.permutation(np.unique(groups))]
    )
    folds = np.empty(problem.n_samples, dtype=np.int64)
    folds[order] = np.arange(problem.n_samples) % n_folds
    return folds


def _shares(design: Design, outputs: Array, targets: Array, weights: Array, kind: str) -> Array:
    """Return the share of every member and penalty, without those that hardly count."""
    is_class = kind != "squared"
    proportion = weights / weights.sum()
    residuals = (outputs - targets) * np.sqrt(proportion / targets.shape[1])[:, None]
    residuals = residuals.reshape(-1, targets.size)
    prior = [
        (SELECTION_PRIOR[is_class] if member.selects_features else 1.0)
        * (HIDDEN_PRIOR[is_class] if member.model in ("hidden", "pairs") else 1.0)
        for member in design.kinds
    ]
    strength = SHARPNESS[is_class] * min(len(targets), MAX_EFFECTIVE_SAMPLES) / 2
    cells = np.repeat(prior, design.penalties.size)
    shares = mixture_shares(residuals @ residuals.T, cells, strength).reshape(outputs.shape[:2])
    shares[shares < MIN_PENALTY_SHARE * shares.max()] = 0.0
    by_member = shares.sum(axis=1)
    shares[by_member < min(MIN_SHARE, float(by_member.max()) / 2)] = 0.0
    return np.asarray(shares / shares.sum())


def mixture_shares(products: Array, prior: Array, strength: float) -> Array:
    """Return the shares s that minimise ``strength * error(s) / e + KL(s, prior)``.

    ``error(s) = s @ products @ s`` is the squared error of the mixture, where ``products`` has the
    products of the candidates' residuals; e is the error of the best candidate.  Candidates with
    independent errors are worth more together than alone.  Where validation cannot distinguish
    candidates, the shares stay close to the prior.

    Examples
    --------
    >>> mixture_shares(np.diag([1.0, 1.0, 9.0]), np.ones(3), 100.0).round(2).tolist()
    [0.47, 0.47, 0.06]
    """
    log_prior = log_softmax(np.log(prior))
    scaled = strength / max(float(products.diagonal().min()), 1e-300) * products
    log_shares, rate, least = log_prior, 0.5, np.inf
    for _ in range(200):
        shares = np.exp(log_shares)
        objective = float(shares @ (scaled @ shares + log_shares - log_prior))
        if np.isnan(objective) and least == np.inf:
            raise np.linalg.LinAlgError("the errors of the candidates are not finite")
        if objective <= least:
            found, least, rate = log_shares, objective, min(1.2 * rate, 0.9)
            # At the minimum, these equal the goal.  Damped steps converge to it.
            goal = log_softmax(log_prior - 2 * scaled @ shares)
        else:
            rate /= 2
        log_shares = log_softmax((1 - rate) * found + rate * goal)
    return np.asarray(np.exp(found))


# ------------------------------------------------------------------------------ merge


def merge_members(
    members: Iterable[Member],
    shares: Sequence[Array],
    standardisation: Standardisation,
    bias: Array,
) -> SparseMLP:
    """Return one network whose outputs are those of the members, times their shares, plus a bias.

    Hidden neurons are put side by side.  Linear members are added up, and the sum u of each output
    becomes two rectified neurons: max(u, 0) - max(-u, 0) = u.
    """
    linear: Array | None = None
    connections, neuron_biases, output_weights = [], [], []
    for member, share in zip(members, shares, strict=True):
        weights = member.weights(share)
        bias = bias + share.sum() * member.mean - member.x.mean @ weights
        if member.hidden is None:
            linear = weights if linear is None else linear + weights
        else:
            connections.append(member.hidden.weights)
            neuron_biases.append(member.hidden.bias)
            output_weights.append(scipy.sparse.coo_array(weights))
    if linear is not None:
        n_outputs = linear.shape[1]
        connections.append(scipy.sparse.csc_array(np.hstack((linear, -linear))))
        neuron_biases.append(np.zeros(2 * n_outputs))
        one_each = scipy.sparse.eye_array(n_outputs)
        output_weights.append(scipy.sparse.vstack((one_each, -one_each)))
    gains = scipy.sparse.diags_array(standardisation.gains)
    layers = (
        _layer(gains @ scipy.sparse.hstack(connections), np.concatenate(neuron_biases), "relu"),
        _layer(scipy.sparse.vstack(output_weights), bias, "identity"),
    )
    return SparseMLP(list(layers), standardisation.scaling.of_type(np.float32))


def _layer(weights: Any, bias: Array, activation: str) -> SparseLayer:
    topology, values = Topology.from_scipy(weights.tocoo())
    return SparseLayer(
        topology, values.astype(np.float32), bias.astype(np.float32), activation=activation
    )

"""Fit a committee: cross-validate its members, compute their shares, merge them into a network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.committee.calibration import best_temperature, boundary_shift
from ratoon.committee.members import (
    Design,
    Member,
    fit_members,
)
from ratoon.committee.problem import Problem, Standardisation
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.rng import derive_generator
from ratoon.samples.groups import grouped_folds
from ratoon.topology import Topology

N_FOLDS, N_FOLDS_OF_MANY = 10, 4
"""With many samples only the first fold is used for validation."""

MIN_SHARE = 0.01
MAX_EFFECTIVE_SAMPLES = 200

SHARPNESS = {"softmax": 0.25, "sigmoid": 0.25, "squared": 1.0}
"""Factor s of the exponent in a share, ``error^(-s n / 2)``.

With s = 1 this is the likelihood of normal errors of unknown variance.  Errors of targets of -1 and
1 are not normal, and carry less evidence.
"""

SELECTION_PRIOR = 0.01
"""Prior weight, in regression, of a member that selects features, relative to one that does not.

Of the many members that select features some are good at random, and together they would outweigh
the others.
"""


@dataclass(frozen=True, eq=False)
class Committee:
    """A fitted committee, merged into one network.

    Parameters
    ----------
    network : SparseMLP
        One hidden layer: the neurons of all members side by side, and two neurons per output for
        the sum of the linear members.
    shares : dict
        Share of each kind of member, by a readable name; the shares sum to 1.
    cross_validated : ndarray of shape (n_samples, n_outputs)
        Outputs for the training samples from members fitted without them; NaN for samples that
        were in no validation set.
    temperature : float
        Factor that turns outputs into logits; already in the network.
    """

    network: SparseMLP
    shares: dict[str, float]
    cross_validated: Array
    temperature: float


def fit_committee(problem: Problem, seed: int) -> Committee:
    """Cross-validate all members, refit those with a large enough share, merge them.

    The strength of features is recomputed in every fold: validation errors would be too small
    for features selected with the help of the validation samples.
    """
    design = Design.for_problem(problem)
    standardisation = Standardisation.fit(problem.x, problem.weights)
    z = standardisation.transform(problem.x)
    errors, outputs, seen = _cross_validate(problem, standardisation, z, design, seed)
    shares = _shares(problem, design, errors, int(seen.sum()))
    mixture = np.einsum("mp,mpno->no", shares, outputs)
    given = (problem.targets[seen], problem.weights[seen], problem.kind)
    shift = boundary_shift(mixture[seen], *given)
    mixture -= shift
    temperature = best_temperature(mixture[seen], *given)
    mixture[~seen] = np.nan
    kept = shares.sum(axis=1) > 0
    members = fit_members(
        problem,
        standardisation,
        z,
        replace(design, kinds=tuple(compress(design.kinds, kept))),
        derive_generator(seed, "committee"),
    )
    network = merge_members(
        members, list(temperature * shares[kept]), standardisation, -temperature * shift
    )
    by_name = {
        str(kind): float(share.sum()) for kind, share in zip(design.kinds, shares, strict=True)
    }
    return Committee(network, by_name, temperature * mixture, temperature)


# ------------------------------------------------------------------------------ cross-validation


def _cross_validate(
    problem: Problem,
    standardisation: Standardisation,
    z: Array,
    design: Design,
    seed: int,
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return squared errors (members, penalties), validation outputs, which samples have any."""
    n, n_outputs = problem.targets.shape
    shape = (len(design.kinds), design.penalties.size)
    outputs = np.zeros((*shape, n, n_outputs))
    total = np.zeros(shape)
    seen = np.zeros(n, dtype=bool)
    folds = assign_folds(problem, N_FOLDS_OF_MANY if problem.has_many_samples else N_FOLDS, seed)
    for fold in range(1 if problem.has_many_samples else int(folds.max()) + 1):
        validation, training = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        rng = derive_generator(seed, "fold", 0, fold)
        part = problem.take(training)
        fitted = fit_members(part, standardisation, z[training], design, rng)
        for number, member in enumerate(fitted):
            found = member.outputs(z[validation])
            outputs[number][:, validation] = found
            errors = np.square(found - problem.targets[validation]).mean(axis=2)
            total[number] += errors @ problem.weights[validation]
        seen[validation] = True
    return total / float((seen * problem.weights).sum()), outputs, seen


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


def _shares(problem: Problem, design: Design, errors: Array, n_validated: int) -> Array:
    """Turn errors into shares that sum to 1, and drop members with a small share."""
    exponent = SHARPNESS[problem.kind] * min(n_validated, MAX_EFFECTIVE_SAMPLES) / 2
    shares = np.exp(-exponent * np.log(errors / max(float(errors.min()), 1e-300)))
    if problem.kind == "squared":
        shares *= np.array(
            [[SELECTION_PRIOR if kind.selects_features else 1.0] for kind in design.kinds]
        )
    shares /= shares.sum()
    by_member = shares.sum(axis=1)
    kept = by_member > min(MIN_SHARE, float(by_member.max()) / 2)
    shares = shares * kept[:, None]
    return np.asarray(shares / shares.sum())


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
        bias = bias + share.sum() * member.mean - member.feature_mean @ weights
        if member.hidden is None:
            linear = weights if linear is None else linear + weights
        else:
            connections.append(member.hidden.weights)
            neuron_biases.append(member.hidden.bias)
            output_weights.append(weights)
    if linear is not None:
        n_outputs = linear.shape[1]
        connections.append(scipy.sparse.csc_array(np.hstack((linear, -linear))))
        neuron_biases.append(np.zeros(2 * n_outputs))
        output_weights.append(np.vstack((np.eye(n_outputs), -np.eye(n_outputs))))
    topology, values = Topology.from_scipy(scipy.sparse.hstack(connections, format="coo"))
    hidden = SparseLayer(
        topology,
        values.astype(np.float32),
        np.concatenate(neuron_biases).astype(np.float32),
        activation="relu",
    )
    output = _full_layer(np.vstack(output_weights), bias)
    return SparseMLP([hidden, output], standardisation.scaling.of_type(np.float32))


def _full_layer(matrix: Array, bias: Array) -> SparseLayer:
    topology = Topology.full((matrix.shape[0], matrix.shape[1]))
    inputs, outputs = topology.pairs()
    weights = matrix[inputs, outputs].astype(np.float32)
    return SparseLayer(topology, weights, bias.astype(np.float32))

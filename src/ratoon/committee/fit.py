"""A committee: members weighed by cross-validation, and melted into one sparse network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.committee.calibration import best_temperature, boundary_shift
from ratoon.committee.members import Member, MemberKind, fit_members, kinds_for, penalties_for
from ratoon.committee.problem import Problem
from ratoon.committee.views import View
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.rng import derive_generator
from ratoon.topology import Topology

N_FOLDS, N_REPEATS, FOLDS_OF_MANY = 10, 1, 4
MOST_EVIDENCE = 200
SMALLEST_SHARE, MOST_MEMBERS_OF_MANY = 0.01, 4

SHARPNESS = {"squared": 1.0}
SHARPNESS_OF_CLASSES = 0.25
"""How far squared errors are believed; 1 is the likelihood of normal errors, of which classes,
whose targets are -1 and 1, have none."""

PREFERENCE = 0.01
"""What a member that prefers some features is believed beforehand, next to one that does not.

For continuous targets, where little may be known: of the many members that prefer features some
look good by chance, and together would outvote the few that do not.
"""


@dataclass(frozen=True, eq=False)
class Committee:
    """What the members have become.

    Parameters
    ----------
    network : SparseMLP
        One hidden layer: the neurons of all members side by side, and for the linear path two
        neurons per output, one for each sign, that see every feature.
    shares : dict
        What share each kind of member has, by a readable name.
    cross_validated : ndarray of shape (n_samples, n_outputs)
        Outputs for the training samples from members that had not seen them; not-a-number where
        there are none.
    temperature : float
        Factor that makes outputs into logits; already in the network.
    """

    network: SparseMLP
    shares: dict[str, float]
    cross_validated: Array
    temperature: float


def fit_committee(problem: Problem, seed: int) -> Committee:
    """Fit all members, weigh them by cross-validation, refit on all samples, melt them together.

    Strengths are computed anew inside every fold: a feature chosen with the help of the rows that
    judge it would always look good.
    """
    kinds, penalties = kinds_for(problem), penalties_for(problem)
    view = View.of(problem.x, problem.weights)
    z = view.read(problem.x)
    errors, held_out, seen = _cross_validate(problem, view, z, kinds, penalties, seed)
    sharpness = SHARPNESS.get(problem.kind, SHARPNESS_OF_CLASSES)
    shares = _shares(errors, int(seen.sum()), sharpness, _beliefs(problem, kinds))
    shares = _without_small(shares, problem)
    judged = np.einsum("mp,mpno->no", shares, held_out)
    shift = boundary_shift(judged[seen], problem.targets[seen], problem.weights[seen], problem.kind)
    judged -= shift
    temperature = best_temperature(
        judged[seen], problem.targets[seen], problem.weights[seen], problem.kind
    )
    judged[~seen] = np.nan
    in_use = shares.sum(axis=1) > 0
    kept = [kind for kind, used in zip(kinds, in_use, strict=True) if used]
    rng = derive_generator(seed, "committee")
    members = fit_members(problem, view, z, kept, penalties, rng)
    network = _melted(members, list(temperature * shares[in_use]), view, -temperature * shift)
    names = {_name(kind): float(share.sum()) for kind, share in zip(kinds, shares, strict=True)}
    return Committee(network, names, temperature * judged, temperature)


# ------------------------------------------------------------------------------ cross-validation


def _cross_validate(
    problem: Problem,
    view: View,
    z: Array,
    kinds: list[MemberKind],
    penalties: NDArray[np.float64],
    seed: int,
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return squared errors (members, penalties), held-out outputs, and which rows have any."""
    many = problem.has_many_samples
    n, n_outputs = problem.targets.shape
    held_out = np.zeros((len(kinds), penalties.size, n, n_outputs))
    counted = np.zeros(n)
    total = np.zeros((len(kinds), penalties.size))
    n_repeats = 1 if many else N_REPEATS
    for repeat in range(n_repeats):
        folds = _folds(problem, FOLDS_OF_MANY if many else N_FOLDS, seed, repeat)
        for fold in range(1 if many else int(folds.max()) + 1):
            judges, jury = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            if judges.size == 0:
                continue
            rng = derive_generator(seed, "fold", repeat, fold)
            part = problem.take(jury)
            for number, member in enumerate(
                fit_members(part, view, z[jury], kinds, penalties, rng)
            ):
                outputs = member.outputs(z[judges])
                held_out[number][:, judges] += outputs
                errors = np.square(outputs - problem.targets[judges]).mean(axis=2)
                total[number] += errors @ problem.weights[judges]
            counted[judges] += 1
    seen = counted > 0
    held_out[:, :, seen] /= counted[seen][:, None]
    return total / float((counted * problem.weights).sum()), held_out, seen


def _folds(problem: Problem, n_folds: int, seed: int, repeat: int) -> NDArray[np.int64]:
    """Deal samples out to folds, class by class where there are classes."""
    rng = derive_generator(seed, "folds", repeat)
    groups = np.zeros(problem.n_samples, np.int64) if problem.groups is None else problem.groups
    order = np.concatenate(
        [rng.permutation(np.flatnonzero(groups == g)) for g in rng.permutation(np.unique(groups))]
    )
    folds = np.empty(problem.n_samples, dtype=np.int64)
    folds[order] = np.arange(problem.n_samples) % n_folds
    return folds


def _shares(errors: Array, n_judged: int, sharpness: float, beliefs: Array) -> Array:
    """Turn errors into shares that sum to 1: the better, the more, but no one takes all."""
    evidence = sharpness * min(n_judged, MOST_EVIDENCE) / 2
    shares = np.exp(-evidence * np.log(errors / max(float(errors.min()), 1e-300)))
    shares *= beliefs[:, None]
    return np.asarray(shares / shares.sum())


def _beliefs(problem: Problem, kinds: list[MemberKind]) -> Array:
    """Return how far each member is believed before it is judged."""
    if problem.kind != "squared":
        return np.ones(len(kinds))
    return np.array([PREFERENCE if kind.prefers_features else 1.0 for kind in kinds])


def _without_small(shares: Array, problem: Problem) -> Array:
    """Leave out members whose word hardly counts: each costs memory and time."""
    by_member = shares.sum(axis=1)
    kept = by_member > min(SMALLEST_SHARE, float(by_member.max()) / 2)
    if problem.has_many_samples:
        kept &= by_member >= np.sort(by_member)[-MOST_MEMBERS_OF_MANY:].min()
    shares = shares * kept[:, None]
    return np.asarray(shares / shares.sum())


# ------------------------------------------------------------------------------ into one network


def _melted(
    members: Iterable[Member], shares: Sequence[Array], view: View, bias: Array
) -> SparseMLP:
    """Put all hidden neurons side by side, and add up the linear members to one path.

    A linear output u is what is left of two rectified neurons: max(u, 0) - max(-u, 0) = u.
    """
    linear: Array | None = None
    connections, neuron_biases, output_weights = [], [], []
    for member, share in zip(members, shares, strict=True):
        weights = member.weights(share)
        bias = bias + share.sum() * member.mean - member.centre @ weights
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
    return SparseMLP([hidden, output], view.scaling.of_type(np.float32))


def _full_layer(matrix: Array, bias: Array) -> SparseLayer:
    topology = Topology.full((matrix.shape[0], matrix.shape[1]))
    inputs, outputs = topology.pairs()
    weights = matrix[inputs, outputs].astype(np.float32)
    return SparseLayer(topology, weights, bias.astype(np.float32))


def _name(kind: MemberKind) -> str:
    if kind.body in ("lasso", "generation"):
        return f"few features, {kind.body} {kind.generation or ''}".rstrip()
    prior = "pairs" if kind.q < 0 else f"strength^{kind.q}" + (" mixed" if kind.mixed else "")
    return f"{kind.body}, {prior}" + (", natural scale" if kind.r else "")

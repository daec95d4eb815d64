"""A committee: members weighed by cross-validation, melted into one or two sparse networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.kernels import Scaling
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.recipe.calibration import best_temperature
from ratoon.recipe.members import Member, MemberKind, fit_members, kinds_for, penalties_for
from ratoon.recipe.problem import Problem, dense
from ratoon.recipe.views import View, looks_like_text, standardised_rows
from ratoon.rng import derive_generator
from ratoon.topology import Topology

Array = NDArray[Any]

N_FOLDS, N_REPEATS, FOLDS_OF_MANY = 10, 3, 4
SHARPNESS, MOST_EVIDENCE = 0.25, 200
SMALLEST_SHARE, MOST_MEMBERS_OF_MANY = 0.01, 4

_ROWS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Committee:
    """Sparse networks whose outputs are added; what the members have become.

    Parameters
    ----------
    networks : list of SparseMLP
        The linear path, and the hidden layers of all members side by side.
    by_row : bool
        Whether samples are standardised over their features first.
    shares : dict
        What share each kind of member has, by a readable name.
    cross_validated : ndarray
        Outputs for the training samples from members that had not seen them, before `temperature`.
    temperature : float
        Factor that makes outputs into logits.
    """

    networks: list[SparseMLP]
    by_row: bool
    shares: dict[str, float]
    cross_validated: Array
    temperature: float

    def outputs(self, x: Any, *, n_threads: int = 1) -> Array:
        """Return raw outputs (samples, outputs) as float64."""
        if not self.by_row and not scipy.sparse.issparse(x):
            return self._add(x, n_threads)
        parts = [
            self._add(self._rows(x[first : first + _ROWS_AT_ONCE]), n_threads)
            for first in range(0, x.shape[0], _ROWS_AT_ONCE)
        ]
        return np.vstack(parts) if parts else self._add(np.empty(x.shape, np.float32), n_threads)

    def _rows(self, x: Any) -> Array:
        rows = dense(x)
        return standardised_rows(rows) if self.by_row else rows

    def _add(self, x: Array, n_threads: int) -> Array:
        outputs = [network.outputs(x, n_threads=n_threads) for network in self.networks]
        return np.asarray(np.sum(outputs, axis=0, dtype=np.float64))


def fit_committee(problem: Problem, seed: int) -> Committee:
    """Fit all members, weigh them by cross-validation, refit on all samples, melt them together.

    Strengths are computed anew inside every fold: a feature chosen with the help of the rows that
    judge it would always look good.
    """
    kinds, penalties = kinds_for(problem), penalties_for(problem)
    by_row = looks_like_text(problem.x)
    errors, held_out, seen = _cross_validate(problem, kinds, penalties, by_row, seed)
    shares = _shares(errors, int(seen.sum()))
    shares = _without_small(shares, problem)
    kept = [kind for kind, share in zip(kinds, shares, strict=True) if share.sum() > 0]
    view = View.of(problem.x, problem.weights, by_row=by_row)
    z = view.read(problem.x)
    rng = derive_generator(seed, "committee")
    members = fit_members(problem, view, z, kept, penalties, rng)
    weighed = [share for share in shares if share.sum() > 0]
    judged = np.einsum("mp,mpno->no", shares, held_out)
    temperature = best_temperature(
        judged[seen], problem.targets[seen], problem.weights[seen], problem.kind
    )
    networks = _melted(members, weighed, view, temperature)
    names = {_name(kind): float(share.sum()) for kind, share in zip(kinds, shares, strict=True)}
    return Committee(networks, by_row, names, judged, temperature)


# ------------------------------------------------------------------------------ cross-validation


def _cross_validate(
    problem: Problem,
    kinds: list[MemberKind],
    penalties: NDArray[np.float64],
    by_row: bool,
    seed: int,
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return squared errors (members, penalties), held-out outputs, and which rows have any."""
    many = problem.has_many_samples
    n, n_outputs = problem.targets.shape
    # As in single rows, the spread of features is that of all training rows: it knows no targets.
    held_out = np.zeros((len(kinds), penalties.size, n, n_outputs))
    counted = np.zeros(n)
    total = np.zeros((len(kinds), penalties.size))
    view = View.of(problem.x, problem.weights, by_row=by_row)
    z = view.read(problem.x)
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


def _shares(errors: Array, n_judged: int) -> Array:
    """Turn errors into shares that sum to 1: the better, the more, but no one takes all."""
    evidence = SHARPNESS * min(n_judged, MOST_EVIDENCE) / 2
    shares = np.exp(-evidence * np.log(errors / max(float(errors.min()), 1e-300)))
    return np.asarray(shares / shares.sum())


def _without_small(shares: Array, problem: Problem) -> Array:
    """Leave out members whose word hardly counts: each costs memory and time."""
    by_member = shares.sum(axis=1)
    kept = by_member > min(SMALLEST_SHARE, float(by_member.max()) / 2)
    if problem.has_many_samples:
        kept &= by_member >= np.sort(by_member)[-MOST_MEMBERS_OF_MANY:].min()
    shares = shares * kept[:, None]
    return np.asarray(shares / shares.sum())


# ----------------------------------------------------------------------------------- into networks


def _melted(
    members: Any, shares: Sequence[Array], view: View, temperature: float
) -> list[SparseMLP]:
    """Add up all linear members to one layer, and put hidden ones side by side in one network."""
    linear: Array | None = None
    bias: Array | float = 0.0
    hidden: list[tuple[Member, Array]] = []
    for member, share in zip(members, shares, strict=True):
        weights = temperature * member.weights(share)
        bias = bias + temperature * share.sum() * member.mean - member.centre @ weights
        if member.hidden is None:
            linear = weights if linear is None else linear + weights
        else:
            hidden.append((member, weights))
    scaling = view.scaling.of_type(np.float32)
    networks = []
    if linear is not None or not hidden:
        n_outputs = np.size(bias)
        matrix = np.zeros((view.mean.size, n_outputs)) if linear is None else linear
        networks.append(SparseMLP([_full_layer(matrix, np.asarray(bias))], scaling))
        bias = np.zeros_like(np.asarray(bias))
    if hidden:
        networks.append(_side_by_side(hidden, np.asarray(bias), scaling))
    return networks


def _side_by_side(hidden: list[tuple[Member, Array]], bias: Array, scaling: Scaling) -> SparseMLP:
    layers = [member.hidden for member, _ in hidden if member.hidden is not None]
    connections = scipy.sparse.hstack([layer.weights for layer in layers], format="coo")
    topology, values = Topology.from_scipy(connections)
    first = SparseLayer(
        topology,
        values.astype(np.float32),
        np.concatenate([layer.bias for layer in layers]).astype(np.float32),
        activation="relu",
    )
    return SparseMLP([first, _full_layer(np.vstack([w for _, w in hidden]), bias)], scaling)


def _full_layer(matrix: Array, bias: Array) -> SparseLayer:
    topology = Topology.full((matrix.shape[0], matrix.shape[1]))
    inputs, outputs = topology.pairs()
    return SparseLayer(
        topology, matrix[inputs, outputs].astype(np.float32), bias.astype(np.float32)
    )


def _name(kind: MemberKind) -> str:
    prior = "pairs" if kind.q < 0 else f"strength^{kind.q}"
    return f"{kind.body}, {prior}" + (", natural scale" if kind.r else "")

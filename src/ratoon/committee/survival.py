"""A committee for survival: ridge-penalised Cox regression in the dual.

Members are those of `ratoon.committee` that are linear in a kernel: on the features, and on random
sparse hidden layers, with prior variances by the strength of a feature.  That is its F statistic
against the martingale residuals of a model without features, which orders features as the score
test of Cox regression does.  Each member maximises the partial likelihood with a ridge penalty over
one coefficient per sample.  Shares come from the cross-validated partial likelihood of Verweij and
van Houwelingen (Statistics in Medicine 12:2305-2314, 1993): what the samples left out add to the
likelihood of those fitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import compress

import numpy as np
import scipy.optimize
import scipy.sparse
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.committee.fit import Committee, assign_folds, merge_members
from ratoon.committee.members import (
    NEURONS_PER_SAMPLE,
    Design,
    HiddenLayer,
    Member,
    MemberKind,
    with_mean_1,
)
from ratoon.committee.priors import f_statistic
from ratoon.committee.problem import CentredRows, Problem, Standardisation, take_rows
from ratoon.rng import derive_generator
from ratoon.survival import CoxLoss, martingale_residuals

N_FOLDS, N_FOLDS_OF_MANY = 10, 4
PENALTIES = np.logspace(-1.5, 2.5, 7)
"""Ridge penalties, relative to the mean of the kernel's diagonal times the fraction of events."""

SHARPNESS = 0.5
"""Factor of the cross-validated log likelihood in the exponent of a share."""

MIN_SHARE = 0.01
FACTORS = np.concatenate([np.linspace(0.1, 1.5, 15), [1.75, 2.0, 2.5, 3.0]])
_MAX_NEURONS, _MAX_STEPS = 2000, 60


def fit_survival_committee(
    problem: Problem, event: Array, rank: Array, ties: str, seed: int
) -> Committee:
    """Cross-validate all members, refit those with a large enough share, merge them.

    Parameters
    ----------
    problem : Problem
        Samples, weights and folds; its targets are the martingale residuals.
    event, rank : ndarray of shape (n_samples,)
        Whether each sample has the event, and the order of the times.
    ties : {"efron", "breslow"}
        How events at the same time count.
    seed : int
        Draws folds and hidden layers.
    """
    standardisation = Standardisation.fit(problem.x, problem.weights)
    z = standardisation.transform(problem.x)
    z = z if scipy.sparse.issparse(z) else np.asfortranarray(z)
    design = _design(problem)
    losses, outputs, seen = _cross_validate(
        problem, event, rank, ties, standardisation, z, design, seed
    )
    shares = np.exp(-SHARPNESS * (losses - losses.min()))
    shares /= shares.sum()
    by_member = shares.sum(axis=1)
    kept = by_member > min(MIN_SHARE, float(by_member.max()) / 2)
    shares = shares * kept[:, None] / (shares * kept[:, None]).sum()
    mixture = np.einsum("mp,mpno->no", shares, outputs)
    factor = _best_factor(
        CoxLoss(event[seen], rank[seen], problem.weights[seen], ties=ties), mixture[seen, 0]
    )
    mixture[~seen] = np.nan
    members = fit_cox_members(
        problem,
        event,
        rank,
        ties,
        standardisation,
        z,
        replace(design, kinds=tuple(compress(design.kinds, kept))),
        derive_generator(seed, "committee"),
    )
    network = merge_members(members, list(factor * shares[kept]), standardisation, np.zeros(1))
    by_name = {
        str(kind): float(share.sum()) for kind, share in zip(design.kinds, shares, strict=True)
    }
    return Committee(network, by_name, factor * mixture, factor)


def fit_cox_members(
    problem: Problem,
    event: Array,
    rank: Array,
    ties: str,
    standardisation: Standardisation,
    z: Array,
    design: Design,
    rng: np.random.Generator,
) -> Iterator[Member]:
    """Fit one member after another to the standardised features ``z`` of the problem."""
    residuals = martingale_residuals(event, rank, problem.weights)[:, None]
    strength = f_statistic(z, residuals, problem.weights)
    loss = CoxLoss(event, rank, problem.weights, ties=ties)
    for kind in design.kinds:
        prior = with_mean_1(strength**kind.exponent)
        if kind.model == "linear":
            x, hidden = CentredRows.of(z, problem.weights), None
            kernel = x.kernel(prior)
        else:
            hidden = HiddenLayer.draw(
                prior,
                z,
                rng,
                design.n_neurons,
                has_thresholds=design.has_thresholds,
                remaining_mean=standardisation.remaining_mean,
            )
            x = CentredRows.of(hidden.activations(z), problem.weights)
            kernel = x.kernel()
        duals = cox_duals(kernel, loss, x.root, design.penalties)
        yield Member(kind, hidden, x, prior if hidden is None else None, duals, np.zeros(1))


def cox_duals(kernel: Array, loss: CoxLoss, root: Array, penalties: Array) -> Array:
    """Minimise the loss of the scores ``K a / root`` plus ``penalty a' K a / 2``.

    Penalties are relative to the mean of the kernel's diagonal times the fraction of events.  The
    strongest is solved first, and every solution is the start of the next.

    Returns an array of shape (penalties, samples, 1).

    Examples
    --------
    >>> event, rank = np.ones(3, bool), np.array([0.0, 1.0, 2.0])
    >>> x = np.array([[1.0], [0.0], [-1.0]])
    >>> duals = cox_duals(x @ x.T, CoxLoss(event, rank), np.ones(3), np.array([0.5]))
    >>> bool((x.T @ duals[0])[0, 0] > 0)  # the sample with the largest x has the event first
    True
    """
    n = kernel.shape[0]
    values, vectors = np.linalg.eigh(kernel)
    used = values > 1e-9 * max(float(values[-1]), 1e-300)
    size = np.sqrt(values[used])
    basis = vectors[:, used] * size
    scores = basis / root[:, None]
    scale = max(float(np.trace(kernel)) / n, 1e-12) * max(loss.n_events / n, 1e-12)
    found = np.zeros((len(penalties), n, 1))
    start = np.zeros(size.size)
    for place in np.argsort(-penalties):
        ridge = float(penalties[place]) * scale

        def objective(b: Array, ridge: float = ridge) -> tuple[float, Array]:
            value, gradient = loss(scores @ b)
            return value + 0.5 * ridge * float(b @ b), scores.T @ gradient + ridge * b

        solved = scipy.optimize.minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _MAX_STEPS, "ftol": 1e-8, "gtol": 1e-4 * max(loss.n_events, 1.0)},
        )
        start = solved.x
        found[place, :, 0] = vectors[:, used] @ (start / size)
    return found


def _design(problem: Problem) -> Design:
    kinds = tuple(MemberKind(model, q) for q in (0, 1, 2) for model in ("linear", "hidden"))
    neurons = int(np.clip(NEURONS_PER_SAMPLE * problem.n_samples, 500, _MAX_NEURONS))
    return Design(kinds, PENALTIES, neurons, problem.has_many_samples)


def _cross_validate(
    problem: Problem,
    event: Array,
    rank: Array,
    ties: str,
    standardisation: Standardisation,
    z: Array,
    design: Design,
    seed: int,
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return losses (members, penalties), scores of left-out samples, and which have any."""
    n = problem.n_samples
    shape = (len(design.kinds), design.penalties.size)
    outputs, total = np.zeros((*shape, n, 1)), np.zeros(shape)
    seen = np.zeros(n, dtype=bool)
    whole = CoxLoss(event, rank, problem.weights, ties=ties)
    many = problem.has_many_samples
    folds = assign_folds(problem, N_FOLDS_OF_MANY if many else N_FOLDS, seed)
    for fold in range(1 if many else int(folds.max()) + 1):
        validation, training = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        rng = derive_generator(seed, "fold", 0, fold)
        part = CoxLoss(event[training], rank[training], problem.weights[training], ties=ties)
        if part.n_events == 0:
            continue
        fitted = fit_cox_members(
            problem.take(training),
            event[training],
            rank[training],
            ties,
            standardisation,
            take_rows(z, training),
            design,
            rng,
        )
        for number, member in enumerate(fitted):
            scores = member.outputs(z)
            for place, one in enumerate(scores):
                total[number, place] += whole(one[:, 0])[0] - part(one[training, 0])[0]
            # Scores of different folds are compared: each fold gets a mean of 0 on its samples.
            outputs[number][:, validation] = scores[:, validation] - np.mean(
                scores[:, training], axis=1, keepdims=True
            )
        seen[validation] = True
    return total, outputs, seen


def _best_factor(loss: CoxLoss, scores: Array) -> float:
    """Return the factor for which left-out scores have the smallest loss."""
    if loss.n_events == 0:
        return 1.0
    return float(FACTORS[int(np.argmin([loss(factor * scores)[0] for factor in FACTORS]))])

"""The default recipe taken apart: members are judged and fitted once, then weighed in many ways.

Most of the time goes into fitting members inside folds.  What is done with them afterwards costs
next to nothing, so one fit serves every study of shares, boundaries and left-out members.  Weighed
as the default does, the parts predict what `SparseMLPClassifier()` predicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from quality.rivals import Answer
from quality.sets import Split
from ratoon.committee import Problem, calibration
from ratoon.committee import fit as committee
from ratoon.committee.members import Member, MemberKind, fit_members, kinds_for, penalties_for
from ratoon.committee.views import View
from ratoon.rng import derive_generator, draw_root

Array = NDArray[Any]
Kinds = Callable[[Problem], list[MemberKind]]


@contextmanager
def replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    """Put something else in the place of a module's constant or function, for a while."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


@dataclass(frozen=True, eq=False)
class Apart:
    """All members with what they say: of held-out training rows, and of test rows.

    ``held_out``, ``test`` and ``by_folds`` hold outputs (members, penalties, samples, outputs); the
    last those of the models of the folds for the test rows, averaged.
    """

    problem: Problem
    kinds: list[MemberKind]
    errors: Array
    held_out: Array
    test: Array
    by_folds: Array
    z: Array
    z_test: Array


@dataclass(frozen=True)
class Weighing:
    """How members become one: which are there, how sharply errors count, where classes meet.

    ``belief`` is how far a member is believed before it is judged, 0 leaves it out.  ``boundary``
    is how much the frequencies of classes count, None leaves outputs where least squares puts them.
    ``shares`` is "soft", "best" for the one best member, "equal" for members or "exponents" for
    exponents that count alike, "inside" for members whose penalties are mixed before they are
    compared.  With ``from_folds`` the models of the folds speak, not those of all rows.
    """

    belief: Callable[[MemberKind], float] = lambda kind: 1.0
    sharpness: float = committee.SHARPNESS_OF_CLASSES
    boundary: float | None = calibration.PRIOR_WEIGHT
    shares: str = "soft"
    from_folds: bool = False


def problem_of(parts: Split) -> Problem:
    """Return what `SparseMLPClassifier().fit` hands to the committee."""
    targets = 2.0 * np.eye(int(parts.y.max()) + 1)[parts.y] - 1.0
    x = parts.x.astype(np.float32)
    return Problem(x, targets, np.ones(len(parts.y)), parts.y, "softmax")


def take_apart(
    parts: Split, seed: int, *, with_folds: bool = False, kinds_of: Kinds = kinds_for
) -> Apart:
    """Judge all members in folds of the training rows and fit them all to all rows."""
    problem, root = problem_of(parts), draw_root(seed)
    kinds, penalties = kinds_of(problem), penalties_for(problem)
    view = View.of(problem.x, problem.weights)
    z, z_test = view.read(problem.x), view.read(parts.x_test.astype(np.float32))
    said: list[list[Array]] = []

    def listening(*given: Any) -> Iterator[Member]:
        said.append([])
        for member in fit_members(*given):
            if with_folds:
                said[-1].append(member.outputs(z_test))
            yield member

    with replaced(committee, "fit_members", listening):
        errors, held_out, seen = committee._cross_validate(problem, view, z, kinds, penalties, root)
    assert seen.all(), "small sets are judged row by row"
    by_folds = np.mean([np.array(fold) for fold in said], axis=0) if with_folds else np.empty(0)
    # The default fits only members it keeps; those come first, so that they are the very same.
    whole = Apart(problem, kinds, errors, held_out, np.empty(0), by_folds, z, z_test)
    kept = shares_of(whole).sum(axis=1) > 0
    order = [*np.flatnonzero(kept), *np.flatnonzero(~kept)]
    rng = derive_generator(root, "committee")
    members = fit_members(problem, view, z, [kinds[i] for i in order], penalties, rng)
    test = np.empty((len(kinds), penalties.size, len(z_test), problem.targets.shape[1]))
    for number, member in zip(order, members, strict=True):
        test[number] = member.outputs(z_test)
    return replace(whole, test=test)


def shares_of(apart: Apart, how: Weighing = Weighing()) -> NDArray[np.float64]:  # noqa: B008
    """Return shares (members, penalties) that sum to 1."""
    problem, kinds = apart.problem, apart.kinds
    beliefs = np.array([how.belief(kind) for kind in kinds])
    errors = np.where(beliefs[:, None] > 0, apart.errors, np.inf)
    if how.shares == "best":
        return np.asarray(errors == errors.min(), dtype=np.float64)
    shares = committee._shares(errors, problem.n_samples, how.sharpness, beliefs)
    if how.shares in ("equal", "exponents"):
        by_q = how.shares == "exponents"
        groups = np.array([kind.q for kind in kinds]) if by_q else np.arange(len(kinds))
        sums = np.array([shares[groups == group].sum() for group in groups])[:, None]
        shares = np.divide(shares, sums, out=np.zeros_like(shares), where=sums > 0)
        return np.asarray(shares / shares.sum())
    if how.shares == "inside":
        inside = shares / shares.sum(axis=1, keepdims=True)
        judged = np.einsum("mp,mpno->mno", inside, apart.held_out)
        left = np.square(judged - problem.targets).mean(axis=(1, 2))[:, None]
        shares = inside * committee._shares(left, problem.n_samples, how.sharpness, beliefs)
    return np.asarray(committee._without_small(shares, problem))


def beside(first: Apart, second: Apart, stays: Callable[[MemberKind], bool]) -> Apart:
    """Put other members, judged on the same folds, beside those of the first that stay."""
    kept = [number for number, kind in enumerate(first.kinds) if stays(kind)]
    joined = {
        name: np.concatenate((getattr(first, name)[kept], getattr(second, name)))
        for name in ("errors", "held_out", "test")
    }
    return replace(first, kinds=[first.kinds[k] for k in kept] + second.kinds, **joined)


def weigh(apart: Apart, how: Weighing = Weighing()) -> tuple[Array, Array, float]:  # noqa: B008
    """Return outputs for held-out training rows and for test rows, and the temperature."""
    problem = apart.problem
    shares = shares_of(apart, how)
    said = apart.by_folds if how.from_folds else apart.test
    judged, test = (np.einsum("mp,mpno->no", shares, part) for part in (apart.held_out, said))
    given = (problem.targets, problem.weights, problem.kind)
    if how.boundary is not None:
        with replaced(calibration, "PRIOR_WEIGHT", how.boundary):
            shift = calibration.boundary_shift(judged, *given)
        judged, test = judged - shift, test - shift
    return judged, test, calibration.best_temperature(judged, *given)


def answer(test: Array, temperature: float) -> Answer:
    """Return predicted classes and probabilities."""
    return test.argmax(axis=1), softmax(temperature * test, axis=1)

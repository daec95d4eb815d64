"""Which other members there are to study: priors, strengths, bodies, views of the samples."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quality import apart, bodies, measures
from quality.changes import CHANGES, Change
from quality.further import Others, Variant, answers_with
from quality.rivals import Answer
from quality.sets import Split
from ratoon.committee import Problem, members
from ratoon.committee.members import Member, MemberKind, fit_members, kinds_for

Array = NDArray[Any]


def all_stay(kind: MemberKind) -> bool:
    """Leave the default's members all in place."""
    del kind
    return True


def none_stay(kind: MemberKind) -> bool:
    """Leave none."""
    del kind
    return False


def linear_stay(kind: MemberKind) -> bool:
    """Leave those without a hidden layer."""
    return kind.body == "linear"


def hidden_kinds(problem: Problem) -> list[MemberKind]:
    """Return every prior once, for a body in the place of the hidden layer."""
    return [kind for kind in kinds_for(problem) if kind.body == "hidden"]


def linear_kinds(problem: Problem) -> list[MemberKind]:
    """Return every prior once, without a hidden layer."""
    return [kind for kind in kinds_for(problem) if kind.body == "linear"]


def strong_kinds(problem: Problem) -> list[MemberKind]:
    """Return those that look at strength."""
    return [kind for kind in kinds_for(problem) if kind.q]


def mixed_kinds(problem: Problem) -> list[MemberKind]:
    """Return those with mixed priors."""
    return [kind for kind in kinds_for(problem) if kind.mixed]


def whole_scale_kinds(problem: Problem) -> list[MemberKind]:
    """Return those with half the natural scale, with all of it."""
    return [replace(kind, r=1.0) for kind in kinds_for(problem) if kind.r]


def generation_kinds(problem: Problem) -> list[MemberKind]:
    """Return generations of ridge, which the recipe has for continuous targets only."""
    return kinds_for(replace(problem, kind="squared"))[-members.N_GENERATIONS :]


@dataclass(frozen=True)
class Together:
    """Members for one class each, as one for all."""

    each: tuple[Member, ...]

    def outputs(self, z: Array) -> Array:
        """Return decisions (penalties, samples, classes)."""
        return np.concatenate([member.outputs(z) for member in self.each], axis=2)


def class_by_class(
    problem: Problem, view: Any, z: Array, kinds: list[MemberKind], penalties: Array, rng: Any
) -> Iterator[Any]:
    """Fit members to every class against the rest, with strengths of its own.

    Two classes are one question.  Neurons of a member draw alike for all classes, as far as
    strengths allow.
    """
    if problem.targets.shape[1] == 2:
        yield from fit_members(problem, view, z, kinds, penalties, rng)
        return
    each = [
        fit_members(replace(problem, targets=column), view, z, kinds, penalties, deepcopy(rng))
        for column in np.hsplit(problem.targets, problem.targets.shape[1])
    ]
    for same in zip(*each, strict=True):
        yield Together(same)


def _bodies(body: Any, variants: dict[str, Variant]) -> Others:
    change = Change(replacements=((members, "HiddenLayer", body),))
    return Others(variants, change, hidden_kinds)


def _kernel(name: str, label: str, kernel: bodies.Kernel) -> Others:
    return _bodies(bodies.KernelBody(kernel), {name: Variant(label, linear_stay)})


def _spectrum(name: str, label: str, power: float) -> Others:
    body = bodies.KernelBody(bodies.plain, power)
    return _bodies(body, {name: Variant(label, all_stay)})


def _too(name: str, label: str) -> Others:
    return Others({f"{name} too": Variant(label, all_stay)}, CHANGES[name], linear_kinds)


def _strength(name: str, label: str, measure: Any) -> Others:
    instead = Variant(label, lambda kind: kind.q == 0)
    variants = {name: instead, f"{name} too": Variant(f"{label}, too", all_stay)}
    return Others(variants, Change(replacements=((members, "f_statistic", measure),)), strong_kinds)


def _mixed(share: float) -> Others:
    variant = Variant(f"mixed priors with {share} by strength", lambda kind: not kind.mixed)
    change = Change(replacements=((members, "MIXED", share),))
    return Others({f"mixed {share}": variant}, change, mixed_kinds)


OTHERS: tuple[Others, ...] = (
    _mixed(0.1),
    _mixed(0.5),
    Others(
        {"r 1": Variant("natural scale r = 1 instead of ½", lambda kind: kind.r == 0)},
        kinds_of=whole_scale_kinds,
    ),
    _bodies(
        bodies.KernelBody(bodies.wide),
        {
            "wide": Variant("infinitely wide hidden layers", linear_stay),
            "wide folds": Variant("infinitely wide ones in the folds only", linear_stay, True),
        },
    ),
    _kernel("deep", "two infinitely wide layers", bodies.deep),
    _kernel("gaussian", "Gaussian kernels instead of hidden layers", bodies.gaussian),
    _kernel("cosine", "cosine kernels", bodies.cosine),
    _bodies(
        bodies.JointLayer,
        {"joint": Variant("linear and hidden path in one kernel", none_stay)},
    ),
    _strength("less chance", "strength less what chance gives", measures.less_chance),
    _strength("shared", "strength shared among correlated features", measures.shared),
    Others(
        {"per class": Variant("one strength per class against the rest", none_stay)},
        Change(replacements=((apart, "fit_members", class_by_class),)),
    ),
    Others(
        {"generations": Variant("generations of ridge, too", all_stay)},
        kinds_of=generation_kinds,
    ),
    _spectrum("flatter", "linear members with flatter spectra, too", 0.5),
    _spectrum("steeper", "linear members with steeper spectra, too", 2.0),
    _too("ranks", "linear members on ranks, too"),
    _too("rows", "linear members on standardised samples, too"),
    _too("clip 10", "linear members on z-scores clipped at 10, too"),
)

FURTHER = {name: it.label for others in OTHERS for name, it in others.variants.items()}


def further_answers(parts: Split, seed: int, wanted: Collection[str]) -> dict[str, Answer]:
    """Return what the default says with other members."""
    return answers_with(OTHERS, parts, seed, wanted)

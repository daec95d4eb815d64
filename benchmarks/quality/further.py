"""Members other than the default's: beside them, or in the place of some of them.

Others are judged on the same folds as the default's, whose fit all of these share; then all are
weighed together, as the default weighs its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from quality.apart import Kinds, answer, beside, take_apart, weigh
from quality.changes import Change
from quality.rivals import Answer
from quality.sets import Split
from ratoon.committee.members import MemberKind, kinds_for

Stays = Callable[[MemberKind], bool]

UNCHANGED = Change()


@dataclass(frozen=True)
class Variant:
    """Which of the default's members stay beside the others.

    With ``only_judged`` the others only say how much the default's in their place count.
    """

    label: str
    stays: Stays
    only_judged: bool = False


@dataclass(frozen=True)
class Others:
    """Other members: how they come about, and the variants with them."""

    variants: dict[str, Variant]
    change: Change = UNCHANGED
    kinds_of: Kinds = kinds_for


def answers_with(
    all_others: Iterable[Others], parts: Split, seed: int, wanted: Collection[str]
) -> dict[str, Answer]:
    """Fit the default's members once, and the other ones that are wanted beside them."""
    default = take_apart(parts, seed)
    found = {}
    for others in all_others:
        if others.variants.keys().isdisjoint(wanted):
            continue
        with others.change.made():
            second = take_apart(others.change.of(parts), seed, kinds_of=others.kinds_of)
        for name, variant in others.variants.items():
            gone = [not variant.stays(kind) for kind in default.kinds]
            these = replace(second, test=default.test[gone]) if variant.only_judged else second
            found[name] = answer(*weigh(beside(default, these, variant.stays))[1:])
    return found

"""Ways to make one of the default's members: who has a say, how much, and where classes meet.

All share one fit (`quality.apart`), so each costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.linear_model import LogisticRegression

from quality.after import with_residual
from quality.apart import Apart, Weighing, answer, weigh
from quality.rivals import Answer
from ratoon.committee.members import MemberKind

Way = Callable[[Apart, int], Answer]


def weighed(**how: Any) -> Way:
    """Return a way to weigh members."""

    def way(apart: Apart, seed: int) -> Answer:
        del seed
        return answer(*weigh(apart, Weighing(**how))[1:])

    return way


def only_q(q: int) -> Way:
    """Leave members of one exponent, both bodies and both scales, not mixed."""
    return weighed(belief=lambda kind: kind.q == q and not kind.mixed)


def chosen_q(apart: Apart, seed: int) -> Answer:
    """Leave members of the exponent that the best of them has in the folds."""
    plain = [number for number, kind in enumerate(apart.kinds) if not kind.mixed]
    best = plain[int(apart.errors[plain].min(axis=1).argmin())]
    return only_q(apart.kinds[best].q)(apart, seed)


def hidden_by(factor: float) -> Way:
    """Give hidden members less say than the folds do."""

    def belief(kind: MemberKind) -> float:
        return factor if kind.body == "hidden" else 1.0

    return weighed(belief=belief)


def by_logistic_regression(apart: Apart, seed: int) -> Answer:
    """Let logistic regression on the outputs of the folds say which class test outputs mean."""
    del seed
    judged, test, _ = weigh(apart, Weighing(boundary=None))
    model = LogisticRegression(max_iter=1000).fit(judged, apart.problem.groups)
    return model.predict(test), model.predict_proba(test)


SHARES: dict[str, tuple[str, Way]] = {
    "default": ("**the default**", weighed()),
    "linear": ("only linear members", weighed(belief=lambda kind: kind.body == "linear")),
    "hidden": ("only hidden members", weighed(belief=lambda kind: kind.body == "hidden")),
    "hidden 0.5": ("hidden members with half their say", hidden_by(0.5)),
    "hidden 0.25": ("hidden members with a quarter of it", hidden_by(0.25)),
    "hidden 0.1": ("hidden members with a tenth of it", hidden_by(0.1)),
    "unmixed": ("no mixed priors", weighed(belief=lambda kind: not kind.mixed)),
    "mixed": ("only mixed priors", weighed(belief=lambda kind: kind.mixed)),
    "q 0": ("exponent 0: all features alike", only_q(0)),
    "q 1": ("exponent 1", only_q(1)),
    "q 2": ("exponent 2", only_q(2)),
    "q 3": ("exponent 3", only_q(3)),
    "q chosen": ("the exponent that the folds choose", chosen_q),
    "q alike": ("exponents 0 to 3 with equal shares", weighed(shares="exponents")),
    "r 0": ("no natural scale, r = 0", weighed(belief=lambda kind: kind.r == 0)),
    "r half": ("natural scale only, r = ½", weighed(belief=lambda kind: kind.r > 0)),
    "sharper": ("shares twice as sharp", weighed(sharpness=0.5)),
    "softer": ("shares half as sharp", weighed(sharpness=0.125)),
    "best": ("the best member alone", weighed(shares="best")),
    "equal": ("equal shares of all members", weighed(shares="equal")),
    "inside": ("penalties mixed inside members first", weighed(shares="inside")),
    "unshifted": ("boundary of least squares", weighed(boundary=None)),
    "shift 1": ("boundary, frequencies 1.0", weighed(boundary=1.0)),
    "shift 0.5": ("boundary, frequencies 0.5", weighed(boundary=0.5)),
    "shift 0": ("boundary, frequencies 0", weighed(boundary=0.0)),
    "logistic": ("boundary by logistic regression", by_logistic_regression),
    "by folds": ("average of the folds' models", weighed(from_folds=True)),
    "residual": ("a trained network on what is left over", with_residual),
}
"""By name, with what they are called."""

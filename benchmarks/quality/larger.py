"""Changes that are for larger sets: text with its rare words, and madelon, where only pairs tell.

Above 500 samples the default holds one fourth out instead of going through folds, so it is not
taken apart here but fitted as it is, with the change made.  The default itself has its rows in the
study of quality (`quality.rows`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from quality import networks
from quality.ablation import Answers, Fit
from quality.changes import CHANGES, Change
from quality.rivals import Answer
from quality.sets import MANY, Split
from ratoon import SparseMLPClassifier
from ratoon.committee import Problem
from ratoon.committee import fit as committee
from ratoon.committee.members import PAIR, MemberKind, kinds_for

TEXT = ("PCMAC", "BASEHOCK")
N_NEURONS, N_EPOCHS = 2000, 100

GENERATIONS = {
    "generation 1": "a network trained by descent, inputs drawn by strength",
    "generation 2": "one more, inputs drawn by what the first made of them",
    "generation 3": "a third, by what the second did",
    "generation 4": "a fourth",
}


def only_linear(problem: Problem) -> list[MemberKind]:
    """Return members without hidden neurons."""
    return [kind for kind in kinds_for(problem) if kind.body == "linear"]


def without_pairs(problem: Problem) -> list[MemberKind]:
    """Return all members but those that look for pairs."""
    return [kind for kind in kinds_for(problem) if kind.q != PAIR]


def changed(name: str, change: Change) -> Answers:
    """Fit the default with a change."""

    def answers(parts: Split, seed: int, wanted: Collection[str]) -> dict[str, Answer]:
        del wanted
        with change.made():
            return {name: networks.default(change.of(parts), seed)}

    return answers


def generations(parts: Split, seed: int, wanted: Collection[str]) -> dict[str, Answer]:
    """Train networks one after the other, each drawn by the importance its parent gave inputs."""
    del wanted
    found: dict[str, Answer] = {}
    start: Any = "f"
    for name in GENERATIONS:
        model = SparseMLPClassifier(
            (N_NEURONS,),
            epsilon=5,
            start=start,
            evolution="static",
            output_init="zero",
            solver="adam",
            learning_rate_init=1e-3,
            learning_rate="cosine",
            max_iter=N_EPOCHS,
            batch_size=32,
            random_state=seed,
            n_jobs=1,
        ).fit(parts.x, parts.y)
        found[name] = (model.predict(parts.x_test), model.predict_proba(parts.x_test))
        start = model.feature_strength(propagate=True)
    return found


def fits() -> dict[str, Fit]:
    """Return all fits in the order in which they are run."""
    linear = Change("only linear members", ((committee, "kinds_for", only_linear),))
    unpaired = Change("no member by pair strength", ((committee, "kinds_for", without_pairs),))
    studied = {
        "clip 10": (CHANGES["clip 10"], TEXT),
        "rows": (CHANGES["rows"], TEXT),
        "linear": (linear, MANY),
        "no pairs": (unpaired, MANY),
    }
    found = {
        name: Fit(changed(name, change), {name: change.label}, sets=sets)
        for name, (change, sets) in studied.items()
    }
    found["generations"] = Fit(generations, GENERATIONS, sets=("madelon",))
    return found

"""Forms of SET by their names, which say what they are.

First comes what inputs of the first layer are drawn by, then first weights of new connections
there, when to rewire, and how much; zeta goes to 0 along a cosine.  Layers behind grow anywhere
from 0 at the same moments, with the same zeta unless the name says otherwise, and with 0.3 where
rewiring is after epochs.  "anywhere" is SET, with all layers alike.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifierCV

from quality.growth import Growth
from quality.rivals import PENALTIES
from quality.sets import Split, standardised
from ratoon.committee.priors import f_statistic
from ratoon.estimators.strengths import strengths
from ratoon.evolution import SET, RigL, Static, Strategy, annealed_set

Strengths = dict[str, NDArray[np.float64]]

BATCH, ZETA_AFTER_EPOCHS = 5, 0.3
"""Samples per step in `quality.networks.paper`; zeta of layers behind."""

BY: dict[str, dict[str, Any]] = {
    "anywhere": {"anywhere": 1.0},
    "root of F": {"power": 0.5},
    "F": {"power": 1.0},
    "F^2": {"power": 2.0},
    "F^3": {"power": 3.0},
    "half F half anywhere": {"power": 1.0, "anywhere": 0.5},
    "three quarters F^2 rest anywhere": {"power": 2.0, "anywhere": 0.25},
    "half F^2 half anywhere": {"power": 2.0, "anywhere": 0.5},
    "quarter F^2 rest anywhere": {"power": 2.0, "anywhere": 0.75},
    "largest F of a class against the rest": {"power": 1.0, "measure": "class"},
    "squared ridge weights": {"power": 1.0, "measure": "ridge"},
}
FIRST_WEIGHTS: dict[str, dict[str, Any]] = {
    "zero": {"grown": "zero"},
    "init": {"grown": "init"},
    "half of init": {"grown": "init", "spread": 0.5},
}
MOMENTS: dict[str, dict[str, Any]] = {
    "10 times": {"every": 5, "unit": "permille"},
    "every 2 steps": {"every": 2, "unit": "step"},
    "every 5 steps": {"every": 5, "unit": "step"},
    "each epoch": {"every": 1, "unit": "epoch"},
}

GUIDED = (
    "F^2; zero; 10 times to 5 %; zeta 0.9 (GuidedSET)",
    "F^2; zero; 10 times to 5 %; zeta 0.9; layers behind zeta 0.3",
    "F^2; zero; 10 times to 5 %; zeta 0.7",
    "three quarters F^2 rest anywhere; zero; 10 times to 5 %; zeta 0.9; layers behind zeta 0.3",
    "F^2; zero; every 2 steps to 5 %; zeta 0.9",
    "F^2; zero; every 2 steps to 5 %; zeta 0.9; layers behind zeta 0.3",
    "F^2; zero; every 2 steps to 5 %; zeta 0.7",
    "F^2; zero; every 2 steps to 5 %; zeta 0.7; layers behind left",
    "F^2; zero; every 2 steps to 10 %; zeta 0.7",
    "F^2; zero; every 5 steps to 5 %; zeta 0.7",
    "F^2; zero; every 2 steps to 5 %; zeta 0.5",
    "F^2; zero; every 2 steps to 15 %; zeta 0.5",
    "F^2; zero; every 2 steps to 5 %; zeta 0.3",
    "F^2; init; every 2 steps to 5 %; zeta 0.3",
    "F^2; init; every 2 steps to 2.5 %; zeta 0.3",
    "F^2; half of init; every 2 steps to 5 %; zeta 0.3",
    "half F^2 half anywhere; zero; every 2 steps to 5 %; zeta 0.7",
    "half F^2 half anywhere; init; every 2 steps to 5 %; zeta 0.3",
    "F^3; zero; every 2 steps to 5 %; zeta 0.5",
    "F; zero; every 2 steps to 5 %; zeta 0.7",
    "F; zero; every 2 steps to 5 %; zeta 0.5",
    "F; init; every 2 steps to 5 %; zeta 0.3",
    "anywhere; zero; every 2 steps to 5 %; zeta 0.5",
    "anywhere; zero; each epoch to 25 %; zeta 0.5",
    "F; zero; each epoch to 50 %; zeta 0.3; layers behind left",
    "root of F; init; each epoch to 50 %; zeta 0.3; layers behind left",
    "F; init; each epoch to 50 %; zeta 0.3; layers behind left",
    "F; init; each epoch to 25 %; zeta 0.3; layers behind left",
    "F; init; each epoch to 25 %; zeta 0.3; layers behind zeta 0.5",
    "F; init; each epoch to 25 %; zeta 0.3",
    "F; half of init; each epoch to 25 %; zeta 0.3",
    "half F half anywhere; init; each epoch to 25 %; zeta 0.3",
    "largest F of a class against the rest; init; each epoch to 25 %; zeta 0.3",
    "squared ridge weights; init; each epoch to 25 %; zeta 0.3",
    "F^2; init; each epoch to 25 %; zeta 0.3",
    "F^2; init; each epoch to 25 %; zeta 0.1",
    "F^2; init; each epoch to 5 % constant; zeta 0.3",
    "half F^2 half anywhere; init; each epoch to 25 %; zeta 0.3",
    "quarter F^2 rest anywhere; init; each epoch to 25 %; zeta 0.3",
)
"""Forms whose first layer grows by strength, or early, or both."""

SETTLING: dict[str, SET] = {
    "SET that settles": annealed_set(0.3),
    "SET that settles; until 90 %": SET(0.3, grown="zero", until=0.9, anneal="cosine"),
    "SET that settles; until 25 %": SET(0.3, grown="zero", until=0.25, anneal="cosine"),
    "SET that settles; every second epoch until 70 %": SET(
        0.3, grown="zero", every=2, until=0.7, anneal="cosine"
    ),
    "SET that settles; zeta 0.5": annealed_set(0.5),
    "SET that settles; weights drawn": SET(0.3, grown="init", until=0.5, anneal="cosine"),
}
RIGL = "by gradient (RigL); each epoch to 50 %; zeta 0.3"
FORMS = ("static", *GUIDED, *SETTLING, RIGL)


def growth(form: str, known: Strengths) -> Growth:
    """Return what the name of a guided form says.

    >>> growth("F^3; zero; every 2 steps to 5 %; zeta 0.5", {"f": np.ones(3)}).power
    3.0
    """
    by, weights, moments, *shares = form.removesuffix(" (GuidedSET)").split("; ")
    measure = {"measure": "f", **BY[by]}
    when, _, limit = moments.partition(" to ")
    percent, _, anneal = limit.partition(" % ")
    given: dict[str, Any] = {
        **measure,
        **FIRST_WEIGHTS[weights],
        **MOMENTS[when],
        "until": float(percent.removesuffix(" %")) / 100,
        "anneal": anneal or "cosine",
        "zeta": float(shares[0].removeprefix("zeta ")),
        "behind": ZETA_AFTER_EPOCHS if when == "each epoch" and by != "anywhere" else None,
    }
    for words in shares[1:]:
        last = words.removeprefix("layers behind ").removeprefix("zeta ")
        given["behind"] = 0.0 if last == "left" else float(last)
    return Growth(known[given.pop("measure")], **given)


def strategy(form: str, known: Strengths, n_samples: int) -> Strategy:
    """Return the strategy of any form."""
    if form == "static":
        return Static()
    if form == RIGL:
        return RigL(0.3, every=math.ceil(n_samples / BATCH), until=0.5)
    return SETTLING[form] if form in SETTLING else growth(form, known)


def known_beforehand(parts: Split) -> Strengths:
    """Return how strong features are by several measures, from training rows."""
    z = standardised(parts)
    one_hot = np.eye(int(z.y.max()) + 1)[z.y]
    each = [f_statistic(z.x, column[:, None], np.ones(len(z.y))) for column in one_hot.T]
    ridge = RidgeClassifierCV(alphas=PENALTIES).fit(z.x, z.y)
    return {
        "f": strengths("f", z.x, one_hot, None, has_classes=True),
        "class": strengths(np.max(each, axis=0), z.x, one_hot, None, has_classes=True),
        "ridge": np.square(np.atleast_2d(ridge.coef_)).sum(axis=0),
    }

"""Networks trained by descent at the exponent of strength that the folds choose, changed one way.

Trained as recipe G is, without its linear path and without rewiring.  How far strength counts is
not fixed, but what linear members find best in folds of the training rows.  As in the recipe's
hidden layers inputs are drawn by the root of the prior and weighed so that together their variance
follows it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from quality.apart import Apart, take_apart
from quality.networks import EPSILON
from quality.rivals import Answer
from quality.sets import Split
from ratoon.committee import Problem
from ratoon.committee.members import MemberKind, kinds_for
from ratoon.committee.priors import f_statistic
from ratoon.initialise import connections_wanted, guided
from ratoon.network import SparseMLP
from ratoon.optimizers import Adam, make_schedule
from ratoon.topology import Topology
from ratoon.training import Training, TrainingData, TrainingPlan

Array = NDArray[Any]

N_COPIES = 5
"""How often a row is there with noise of its own, or mixed with another; epochs are as many fewer
so that the steps are the same."""


@dataclass(frozen=True)
class How:
    """What a network is trained with; inputs are drawn by this ``power`` of the prior."""

    label: str
    n_neurons: int = 2000
    n_epochs: int = 30
    dropout: float = 0.0
    decay: float = 0.0
    noise: float = 0.0
    mixup: float = 0.0
    power: float = 0.5


WAYS = {
    "descent": How("trained by descent at the chosen exponent"),
    "descent dropout": How("with dropout of 0.3 in the hidden layer", dropout=0.3),
    "descent mixup": How("with mixup, Beta(0.2, 0.2)", mixup=0.2),
    "descent noise": How("with noise of 0.5 on z-scores", noise=0.5),
    "descent decay": How("with decoupled decay of 1", decay=1.0),
    "descent 500": How("500 neurons instead of 2,000", n_neurons=500),
    "descent 100": How("100 epochs instead of 30", n_epochs=100),
    "descent drawn": How("inputs drawn and weighed by the prior instead of its root", power=1.0),
}
DESCENT = {name: how.label for name, how in WAYS.items()}


def descent_answers(parts: Split, seed: int, wanted: Collection[str]) -> dict[str, Answer]:
    """Choose the exponent once, and train in all ways that are wanted."""
    apart = take_apart(parts, seed, kinds_of=one_per_exponent)
    q = apart.kinds[int(apart.errors.min(axis=1).argmin())].q
    return {name: descended(apart, q, seed, WAYS[name]) for name in wanted}


def one_per_exponent(problem: Problem) -> list[MemberKind]:
    """Return linear members that differ in the exponent only."""
    plain = (kind for kind in kinds_for(problem) if kind.body == "linear" and not kind.mixed)
    return [kind for kind in plain if kind.r == 0]


def descended(apart: Apart, q: int, seed: int, how: How) -> Answer:
    """Train a network whose prior is strength to the power q."""
    problem = apart.problem
    prior = f_statistic(apart.z, problem.targets, problem.weights) ** q
    # With q = 2 as in recipe G: drawn by the strength, weighed by its root.
    chance = prior**how.power
    chance = chance / chance.mean()
    factors = np.sqrt(chance).astype(np.float32)
    z, targets = with_copies(apart.z, problem.targets, how, np.random.default_rng(seed))
    n_features, n_classes = z.shape[1], targets.shape[1]
    shape = (n_features, how.n_neurons)
    first = guided(shape, connections_wanted(shape, epsilon=EPSILON), chance + 1e-3, seed=seed)
    network = SparseMLP.start(
        (*shape, n_classes),
        seed=seed,
        density=1.0,
        topologies=[first, Topology.full((how.n_neurons, n_classes))],
        output_init="zero",
        dropout=how.dropout,
    )
    plan = TrainingPlan(
        loss="squared_error",
        optimizer=Adam(weight_decay=how.decay),
        learning_rate=1e-3,
        schedule=make_schedule("cosine"),
        batch_size=32,
        balance_batches=True,
        n_epochs=how.n_epochs * len(apart.z) // len(z),
        seed=seed,
    )
    data = TrainingData.of(z * factors, targets.astype(np.float32), np.float32)
    Training(network, data, plan).run()
    outputs = network.outputs(apart.z_test * factors).astype(np.float64)
    return outputs.argmax(axis=1), softmax(2.0 * outputs, axis=1)


def with_copies(
    z: Array, targets: Array, how: How, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return rows as they are; or, if noise or mixup is asked for, copies with it."""
    if not (how.noise or how.mixup):
        return z, targets
    z, targets = np.tile(z, (N_COPIES, 1)), np.tile(targets, (N_COPIES, 1))
    if how.noise:
        z = z + how.noise * rng.standard_normal(z.shape, dtype=np.float32)
    if how.mixup:
        other = rng.permutation(len(z))
        share = rng.beta(how.mixup, how.mixup, size=(len(z), 1))
        z = share.astype(np.float32) * z + (1 - share).astype(np.float32) * z[other]
        targets = share * targets + (1 - share) * targets[other]
    return z.astype(np.float32), targets

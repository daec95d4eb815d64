"""The default for many samples: train networks of several kinds, and average them.

Every network holds back another part of the rows.  That part keeps its best epoch, and the parts of
all networks together weigh the kinds: none is wanted that memorises.  The average is merged into
one network.  `ratoon.estimators.recipes` has the kinds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import DivergenceError
from ratoon.estimators.data import Labelled, hold_out
from ratoon.estimators.merging import merge
from ratoon.estimators.presets import Shape
from ratoon.estimators.recipes import (
    WORK,
    Recipe,
    n_networks,
    recipes,
)
from ratoon.estimators.settings import FitCall, Settings, resolve
from ratoon.history import History
from ratoon.kernels import Scaling
from ratoon.losses import mean_loss
from ratoon.network import SparseMLP
from ratoon.rng import derive_generator, derive_seed
from ratoon.samples.base import Rows
from ratoon.samples.groups import grouped_folds, hold_out_groups
from ratoon.training import TrainingState

if TYPE_CHECKING:
    from ratoon.estimators.base import BaseSparseMLP

N_PARTS = 10
"""A network holds back one of so many parts of the rows."""

MANY_HELD = 500
"""From so many held back rows on, their score chooses the epoch; before, their loss."""

ENOUGH_HELD = 3_000
"""A single network holds back at most so many rows."""

TRIAL_ROWS, TRIAL_EPOCHS, TRIAL_EPOCHS_OF_SPARSE = 8_000, 8, 4
"""Size of a trial, which chooses a kind where training all of them would take too long."""

CLEARLY = 0.8
"""Another recipe replaces the first one if it makes less than this fraction of its errors."""

AVERAGED = (
    *("loss", "validation_loss", "validation_score"),
    *("train_seconds", "rewire_seconds", "evaluate_seconds"),
)
"""Quantities of a record whose mean over networks is kept."""

TEMPERATURES = np.geomspace(0.3, 2.0, 12)
SHARES = np.linspace(0.0, 1.0, 11)
MOST_WEIGHED = 5_000


@dataclass
class Kind:
    """Networks of one recipe, with their outputs for the rows that each did not see."""

    recipe: Recipe
    settings: Settings
    networks: list[SparseMLP]
    histories: list[History]
    outputs: Array

    @property
    def is_linear(self) -> bool:
        """Whether there is no hidden layer."""
        return not self.settings.hidden_layer_sizes


@dataclass(frozen=True)
class Average:
    """The merged network, and what is known about its members.

    Parameters
    ----------
    network : SparseMLP
        The average as one network.
    settings : Settings
        Those of the kind with the largest share.
    history : History
        Mean records of the networks of that kind.
    shares : dict
        Share of every kind by name.
    outputs : ndarray of shape (n_samples, n_outputs)
        Outputs for rows from networks that did not see them; NaN for rows that all saw.
    """

    network: SparseMLP
    settings: Settings
    history: History
    shares: dict[str, float]
    outputs: Array


def fit_average(
    estimator: BaseSparseMLP, labelled: Labelled, shape: Shape, call: FitCall, seed: int
) -> Average:
    """Train the networks of all recipes, let held back rows weigh them, and merge them."""
    first = resolve(estimator, shape, replace(call, recipe=recipes(shape)[0]), refuses=False)
    scaling, scale = estimator._learn_scaling(labelled, None, first)
    fit = _Fit(estimator, labelled, shape, call, seed, scaling, scale)
    wanted: Sequence[Recipe] = recipes(shape)
    if sum(recipe.work(shape) for recipe in wanted) > WORK:
        wanted = fit.chosen_by_trial(wanted)
    share = WORK / sum(recipe.work(shape) for recipe in wanted)
    most = min(n_networks(recipe, shape) for recipe in wanted)
    number = max(1, min(most, int(share)))
    parts = _parts(labelled, estimator._strata(labelled.y), number, seed)
    kinds = [kind for recipe in wanted if (kind := fit.kind(recipe, parts)) is not None]
    if not kinds:
        raise DivergenceError(
            "training diverged with every kind of network.\n"
            "  Scale the features, remove outliers, or set `learning_rate_init`."
        )
    seen = np.concatenate(parts)
    shares, temperature = fit.weigh(kinds, seen)
    return _averaged(kinds, shares, temperature, seen, labelled.n_samples)


@dataclass(frozen=True)
class _Fit:
    """What every network of a fit shares: the samples, their scaling and the seed."""

    estimator: BaseSparseMLP
    labelled: Labelled
    shape: Shape
    call: FitCall
    seed: int
    scaling: Scaling
    scale: str | None

    def _settings(self, recipe: Recipe) -> Settings:
        call = replace(self.call, recipe=recipe)
        return resolve(self.estimator, self.shape, call, refuses=False)

    def kind(self, recipe: Recipe, parts: Sequence[Rows]) -> Kind | None:
        """Train one network per part; return None if one diverges."""
        settings = replace(self._settings(recipe), scale=self.scale)
        found = Kind(recipe, settings, [], [], np.empty((0, self.shape.n_outputs)))
        for number, held in enumerate(parts):
            try:
                trained = self._train(self.labelled, settings, held, number)
            except DivergenceError:
                return None
            network, history, outputs, score = trained
            found.networks.append(network)
            found.histories.append(history)
            found.outputs = np.concatenate((found.outputs, outputs))
            if self.estimator.verbose:
                print(
                    f"network {number + 1} of {len(parts)} ({recipe.name}):"
                    f" validation score {score:.4f}",
                    file=sys.stderr,
                    flush=True,
                )
        return found

    def chosen_by_trial(self, wanted: Sequence[Recipe]) -> list[Recipe]:
        """Train on a part of the rows for a few epochs, and return the recipes worth training.

        The first one, unless another is clearly better; and the linear one, if it is as good.
        """
        generator = derive_generator(self.seed, "trial")
        rows = np.arange(self.labelled.n_samples)
        if rows.size > TRIAL_ROWS:
            rows = np.sort(generator.choice(rows, TRIAL_ROWS, replace=False))
        small = self.labelled.take(rows)
        held = hold_out(rows.size, 0.25, generator, self.estimator._strata(small.y))
        most = TRIAL_EPOCHS if self.shape.n_stored is None else TRIAL_EPOCHS_OF_SPARSE
        scores: dict[Recipe, float] = {}
        for recipe in wanted:
            settings = self._settings(recipe)
            settings = replace(settings, max_iter=min(settings.max_iter, most))
            try:
                *_, scores[recipe] = self._train(small, settings, held, 0)
            except DivergenceError:
                continue
        tried = [recipe for recipe in wanted if recipe in scores]
        if not tried:
            return list(wanted)
        best = tried[0]
        for recipe in tried[1:]:
            if 1 - scores[recipe] < CLEARLY * (1 - scores[best]):
                best = recipe
        linear = tried[-1]
        return [best, linear] if best != linear and scores[linear] >= scores[best] else [best]

    def _train(
        self, labelled: Labelled, settings: Settings, held: Rows, number: int
    ) -> tuple[SparseMLP, History, Array, float]:
        """Train a network without the held rows; return it with outputs and score for these.

        The loss chooses the epoch where rows are few: their accuracy would be best at random.
        """
        estimator = self.estimator
        widths = settings.hidden_layer_sizes
        seed = derive_seed(self.seed, "network of an average", len(widths), sum(widths), number)
        settings = estimator._with_strength(settings, labelled, held)
        network = estimator._start(labelled, held, settings, self.shape, seed, self.scaling)
        state = TrainingState(network, seed)
        state.stopping = settings.stopping()
        validation = estimator._validation(labelled, held, None, network)
        assert validation is not None
        training = estimator._training(labelled, held, validation, settings, state, [])
        if held.size < MANY_HELD:
            training.scorer = None
        training.run(restore_best=False)
        outputs = state.best.outputs(labelled.x[held], n_threads=settings.n_threads)
        if not np.isfinite(outputs).all():
            raise DivergenceError("outputs are not finite")
        score = estimator._score(outputs, validation)
        history = state.history
        if training.scorer is None:  # scores in the history are of another kind
            history = History([replace(record, validation_score=None) for record in history])
        return state.best, history, outputs.astype(np.float64), score

    def weigh(self, kinds: Sequence[Kind], seen: Rows) -> tuple[Array, float]:
        """Return the shares of the kinds, and a factor of the outputs, with the smallest loss."""
        estimator, loss = self.estimator, self.estimator._loss()
        rows = derive_generator(self.seed, "weigh").permutation(seen.size)[:MOST_WEIGHED]
        part = self.labelled.take(seen[rows])
        targets, weights = estimator._encode(part.y, 0.0, "y"), estimator._weigh(part)
        outputs = np.stack([kind.outputs[rows] for kind in kinds])
        factors = TEMPERATURES if loss.endswith("cross_entropy") else np.ones(1)
        best = (np.inf, np.ones(len(kinds)), 1.0)
        for shares in product(SHARES, repeat=len(kinds)):
            if not np.isclose(sum(shares), 1.0):
                continue
            mixture = np.tensordot(shares, outputs, axes=1)
            for factor in factors:
                found = mean_loss(loss, factor * mixture, targets, weights)
                if found < best[0]:
                    best = (found, np.array(shares), float(factor))
        return best[1], best[2]


def _parts(labelled: Labelled, codes: Array | None, number: int, seed: int) -> list[Rows]:
    """Return the rows that each network holds back: disjoint parts, stratified by class."""
    generator = derive_generator(seed, "parts")
    n_samples = labelled.n_samples
    if labelled.groups is not None:
        groups = labelled.groups.codes
        if number == 1:
            return [hold_out_groups(groups, codes, 1 / N_PARTS, generator)]
        folds = grouped_folds(groups, codes, max(N_PARTS, number), generator)
        return [np.flatnonzero(folds == fold) for fold in range(min(number, folds.max() + 1))]
    if number == 1:
        fraction = min(1 / N_PARTS, ENOUGH_HELD / n_samples)
        return [hold_out(n_samples, fraction, generator, codes)]
    order = generator.permutation(n_samples)
    if codes is not None:
        order = order[np.argsort(codes[order], kind="stable")]
        alone = np.bincount(codes)[codes[order]] == 1  # held back, their class would be unknown
        order = order[~alone]
    return [np.sort(order[first :: max(N_PARTS, number)]) for first in range(number)]


def _averaged(
    kinds: Sequence[Kind], shares: Array, temperature: float, seen: Rows, n_samples: int
) -> Average:
    kept = [(kind, share) for kind, share in zip(kinds, shares, strict=True) if share > 0]
    networks, factors = [], []
    for kind, share in kept:
        networks += kind.networks
        factors += [temperature * share / len(kind.networks)] * len(kind.networks)
    network = merge(networks, factors)
    outputs = np.full((n_samples, network.widths[-1]), np.nan)
    outputs[seen] = temperature * sum(share * kind.outputs for kind, share in kept)
    main = max(kept, key=lambda one: one[1])[0]
    settings = replace(
        main.settings,
        hidden_layer_sizes=network.widths[1:-1],
        given_topology=(True,) * len(network.layers),
        connections=tuple(layer.n_connections for layer in network.layers),
        n_networks=len(networks),
    )
    names = {kind.recipe.name: float(share) for kind, share in zip(kinds, shares, strict=True)}
    return Average(network, settings, _mean_history(main.histories, network), names, outputs)


def _mean_history(histories: Sequence[History], network: SparseMLP) -> History:
    """Return the mean record of every epoch."""
    mean = History()
    for records in zip(*histories, strict=True):
        found: dict[str, Any] = {}
        for name in AVERAGED:
            values = [getattr(record, name) for record in records]
            found[name] = None if values[0] is None else float(np.mean(values))
        size = {"n_connections": network.n_connections, "density": network.density}
        mean.append(replace(records[0], **found, **size))
    return mean

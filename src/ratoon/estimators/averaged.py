"""The default for many samples: train networks of several kinds, and average them.

Every network holds back another part of the rows.  That part keeps its best epoch, and the parts of
all networks together weigh the kinds: none is wanted that memorises.  A network that is solved for
in closed form on a part of the rows is averaged with them.  The average is merged into one network.
`ratoon.estimators.recipes` has the kinds, `ratoon.estimators.solved` the closed form.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

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
from ratoon.estimators.solved import NAME, Solved, solve_part, suits_part
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


class Trained(NamedTuple):
    """A network, its history, and outputs and score for rows that it did not see."""

    network: SparseMLP
    history: History
    outputs: Array
    score: float
    is_interrupted: bool


@dataclass
class Kind:
    """Networks of one recipe, with their outputs for the rows that each did not see."""

    recipe: Recipe
    settings: Settings
    networks: list[SparseMLP]
    histories: list[History]
    outputs: Array
    is_interrupted: bool = False

    def add(self, trained: Trained) -> None:
        """Add a network."""
        self.networks.append(trained.network)
        self.histories.append(trained.history)
        self.outputs = np.concatenate((self.outputs, trained.outputs))


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
    is_interrupted : bool
        Whether Ctrl-C was pressed before all networks were trained.
    """

    network: SparseMLP
    settings: Settings
    history: History
    shares: dict[str, float]
    outputs: Array
    is_interrupted: bool = False


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
    kinds: list[Kind] = []
    is_interrupted = False
    for recipe in wanted:
        kind = fit.kind(recipe, parts)
        if kind is None:
            continue
        is_interrupted = kind.is_interrupted
        if not is_interrupted:
            kinds.append(kind)
            continue
        if not kinds and kind.networks:
            kinds, parts = [kind], parts[: len(kind.networks)]
        if not kinds:
            raise KeyboardInterrupt
        break
    if not kinds:
        raise DivergenceError(
            "training diverged with every kind of network.\n"
            "  Scale the features, remove outliers, or set `learning_rate_init`."
        )
    seen = np.concatenate(parts)
    shares, temperature = fit.weigh([kind.outputs for kind in kinds], seen)
    solved = None
    if not is_interrupted:
        try:
            solved = fit.solved(parts)
        except KeyboardInterrupt:
            is_interrupted = True
    average = _averaged(kinds, shares, temperature, seen, labelled.n_samples)
    average = average if solved is None else fit.with_solved(average, solved)
    return replace(average, is_interrupted=is_interrupted)


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
            except KeyboardInterrupt:
                found.is_interrupted = True
                return found
            if not (trained.is_interrupted and found.networks):
                found.add(trained)
            if trained.is_interrupted:
                found.is_interrupted = True
                return found
            self._print(f"network {number + 1} of {len(parts)} ({recipe.name})", trained.score)
        return found

    def _print(self, what: str, score: float) -> None:
        if self.estimator.verbose:
            print(f"{what}: validation score {score:.4f}", file=sys.stderr, flush=True)

    def solved(self, parts: Sequence[Rows]) -> Solved | None:
        """Solve for a network, where that suits the data."""
        estimator = self.estimator
        if not suits_part(self.shape, estimator._loss()):
            return None
        found = solve_part(estimator, self.labelled, parts, self.scaling, self.seed)
        if found is not None and estimator.verbose:
            validation = estimator._validation(self.labelled, found.held, None, found.network)
            assert validation is not None
            score = estimator._score(found.outputs, validation)
            self._print(f"{NAME} with {found.n_rows:,} rows", score)
        return found

    def with_solved(self, average: Average, solved: Solved) -> Average:
        """Let the rows that the solved network did not see weigh it against the average."""
        both = [average.outputs[solved.held], solved.outputs]
        (share, of_solved), factor = self.weigh(both, solved.held)
        shares = {name: float(share * old) for name, old in average.shares.items()}
        shares[NAME] = float(of_solved)
        if of_solved == 0:
            return replace(average, shares=shares)
        networks, factors = [solved.network], [factor * of_solved]
        settings = average.settings
        n_trained = settings.n_networks if share > 0 else 0
        if n_trained:
            networks, factors = [average.network, *networks], [factor * share, *factors]
        network = merge(networks, factors)
        outputs = np.full_like(average.outputs, np.nan)
        outputs[solved.held] = factor * (share * both[0] + of_solved * both[1])
        settings = replace(_of_merged(settings, network), n_networks=n_trained + 1, n_solved=1)
        history = History(
            [
                replace(record, n_connections=network.n_connections, density=network.density)
                for record in average.history
            ]
        )
        return Average(network, settings, history, shares, outputs)

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
                trained = self._train(small, settings, held, 0)
            except DivergenceError:
                continue
            if trained.is_interrupted:
                raise KeyboardInterrupt
            scores[recipe] = trained.score
        tried = [recipe for recipe in wanted if recipe in scores]
        if not tried:
            return list(wanted)
        best = tried[0]
        for recipe in tried[1:]:
            if 1 - scores[recipe] < CLEARLY * (1 - scores[best]):
                best = recipe
        linear = tried[-1]
        return [best, linear] if best != linear and scores[linear] >= scores[best] else [best]

    def _train(self, labelled: Labelled, settings: Settings, held: Rows, number: int) -> Trained:
        """Train a network without the held rows; return it with outputs and score for these.

        The loss chooses the epoch where rows are few: their accuracy would be best at random.
        Ctrl-C after the first epoch ends the training.
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
        is_interrupted = False
        try:
            training.run(restore_best=False)
        except KeyboardInterrupt:
            if not len(state.history):
                raise
            is_interrupted = True
        outputs = state.best.outputs(labelled.x[held], n_threads=settings.n_threads)
        if not np.isfinite(outputs).all():
            raise DivergenceError("outputs are not finite")
        score = estimator._score(outputs, validation)
        history = state.history
        if training.scorer is None:  # scores in the history are of another kind
            history = History([replace(record, validation_score=None) for record in history])
        return Trained(state.best, history, outputs.astype(np.float64), score, is_interrupted)

    def weigh(self, candidates: Sequence[Array], seen: Rows) -> tuple[Array, float]:
        """Return the shares of outputs for rows, and a factor, with the smallest loss."""
        estimator, loss = self.estimator, self.estimator._loss()
        rows = derive_generator(self.seed, "weigh").permutation(seen.size)[:MOST_WEIGHED]
        part = self.labelled.take(seen[rows])
        targets, weights = estimator._encode(part.y, 0.0, "y"), estimator._weigh(part)
        outputs = np.stack([candidate[rows] for candidate in candidates])
        factors = TEMPERATURES if loss.endswith("cross_entropy") else np.ones(1)
        best = (np.inf, np.ones(len(candidates)), 1.0)
        for shares in product(SHARES, repeat=len(candidates)):
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
    settings = replace(_of_merged(main.settings, network), n_networks=len(networks))
    names = {kind.recipe.name: float(share) for kind, share in zip(kinds, shares, strict=True)}
    return Average(network, settings, _mean_history(main.histories, network), names, outputs)


def _of_merged(settings: Settings, network: SparseMLP) -> Settings:
    return replace(
        settings,
        hidden_layer_sizes=network.widths[1:-1],
        given_topology=(True,) * len(network.layers),
        connections=tuple(layer.n_connections for layer in network.layers),
    )


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

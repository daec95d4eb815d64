"""Settings: how one fit is done and why, resolved once from parameters and the data's shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ratoon.activations import ACTIVATIONS
from ratoon.committee import suits
from ratoon.errors import InvalidParameterError
from ratoon.estimators.parameters import (
    PARAMETERS,
    changed_parameters,
    defaults_of,
    refuse,
    resolved_augment,
    short,
    unused_parameters,
)
from ratoon.estimators.presets import ALWAYS, PRESETS, Shape, is_open
from ratoon.estimators.recipes import FULL_BATCH, Recipe
from ratoon.estimators.strengths import is_strength
from ratoon.estimators.threads import threads_for
from ratoon.evolution import Strategy, make_strategy, parameters_of
from ratoon.initialise import connections_wanted
from ratoon.optimizers import OPTIMIZERS, Optimizer, Schedule, make_optimizer, make_schedule
from ratoon.preparation import Prepare, as_prepare
from ratoon.samples.augment import Augment
from ratoon.training import EarlyStopping

CLOSED_FORM = "closed form"
"""`Settings.solver` where `fit` solves for the network instead of training it."""

AVERAGE, TRAIN = "average", "train"
"""The other ways: train and average several networks, or train one."""

ROWS_TO_SPARE = 10_000
"""From so many rows on, some are held back by default, as in scikit-learn's boosting."""

SMALL_PROBLEM = 4_000_000
"""Connections times samples up to which networks compute in float64 by default."""


NETWORK = (
    *("hidden_layer_sizes", "epsilon", "density", "activation", "slope", "dropout"),
    *("init", "output_init", "scale", "clip", "dtype", "prepare"),
)
"""Settings that a network keeps for ever."""

CLOSED_FORM_LOSSES = ("softmax_cross_entropy", "sigmoid_cross_entropy", "squared_error")
"""Losses that the closed form can honour."""

PATIENCE = 10
"""Default of `n_iter_no_change` with early stopping."""


@dataclass(frozen=True)
class Settings:
    """How a fit is done: every parameter with its final value, the solver, and the reason.

    After a closed-form fit, the values about training are those `partial_fit` would use.

    Parameters
    ----------
    solver : str
        ``"closed form"``, ``"sgd"``, ``"adam"``, or the class name of an optimizer object.
    reason : str
        Why this solver, as the end of a sentence that begins with "because".
    after_closed_form : bool
        Whether training continues from a network that was solved for.
    strategy_name : str
        Name of the evolution strategy; empty for a strategy object.
    balance_batches : bool
        Whether the minibatches of an epoch are made equally large.
    given_topology : tuple of bool
        For every layer, whether its first connections are given by ``topology``.
    connections : tuple of int
        Expected connections per layer; empty if a layer would have none.
    n_threads : int
        Threads of the training.
    averages : bool
        Whether `fit` tries several kinds of networks and averages them.
    n_networks : int
        Networks that were averaged.
    n_solved : int
        Those of them that were solved for in closed form.

    Other fields have the names and meanings of the estimator's parameters.
    """

    solver: str
    reason: str
    after_closed_form: bool
    hidden_layer_sizes: tuple[int, ...]
    epsilon: float | None
    density: float | None
    evolution: Strategy
    strategy_name: str
    activation: str
    slope: float
    dropout: float
    optimizer: Optimizer
    learning_rate_init: float
    learning_rate: str | Schedule
    learning_rate_min: float
    warm_up: float
    batch_size: int
    balance_batches: bool
    max_iter: int
    shuffle: bool
    init: str
    output_init: str
    start: Any
    scale: str | None
    clip: float
    label_smoothing: float
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int | None
    tol: float
    restore_best: bool
    dtype: str
    n_threads: int
    given_topology: tuple[bool, ...]
    connections: tuple[int, ...]
    augment: Augment | None = None
    averages: bool = False
    n_networks: int = 1
    n_solved: int = 0
    prepare: Prepare | None = None

    @property
    def is_closed_form(self) -> bool:
        """Whether `fit` solves for the network."""
        return self.solver == CLOSED_FORM

    @property
    def is_guided_start(self) -> bool:
        """Whether first connections are drawn by the strength of features."""
        return is_strength(self.start)

    @property
    def schedule(self) -> Schedule:
        """The learning rate over time, as a factor."""
        floor = self.learning_rate_min / self.learning_rate_init
        return make_schedule(self.learning_rate, warm_up=self.warm_up, floor=floor)

    @property
    def n_connections(self) -> int:
        """Connections of all layers; 0 if a layer would have none."""
        return sum(self.connections)

    def stopping(self) -> EarlyStopping | None:
        """Return what stops the training early, if something does."""
        if self.n_iter_no_change is None:
            return None
        keeps_best = self.early_stopping and self.restore_best
        return EarlyStopping(self.n_iter_no_change, self.tol, keeps_best)

    def widths(self, shape: Shape) -> tuple[int, ...]:
        """Return neurons per layer, inputs and outputs included."""
        return (shape.n_features, *self.hidden_layer_sizes, shape.n_outputs)

    def describe(self, n_epochs: int) -> str:
        """Return one sentence that says what was done and why.

        Parameters
        ----------
        n_epochs : int
            Records in the history of the fit.

        Examples
        --------
        >>> from ratoon import SparseMLPClassifier
        >>> resolve(SparseMLPClassifier(max_iter=1), Shape(60, 300, 2)).describe(1)
        'trained for 1 epoch with Adam (learning rate 0.005, batches of 60), because `max_iter` was
        set'
        """
        if self.is_closed_form:
            return f"solved in closed form, because {self.reason}"
        n_epochs -= self.after_closed_form
        before = "solved in closed form, then " if self.after_closed_form else ""
        known = OPTIMIZERS.get(self.solver)
        name = self.solver if known is None else known.__name__
        if self.averages:
            n_trained = self.n_networks - self.n_solved
            parts = [f"trained {count_of(n_trained, 'network')} with {name}"] if n_trained else []
            if self.n_solved:
                parts.append(f"solved for {count_of(self.n_solved, 'network')} in closed form")
            return f"{' and '.join(parts)}, because {self.reason}"
        return (
            f"{before}trained for {epochs(n_epochs)} with {name} (learning rate"
            f" {self.learning_rate_init:g}, batches of {self.batch_size}), because {self.reason}"
        )


def count_of(count: int, word: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> count_of(1, "network"), count_of(2000, "network")
    ('1 network', '2,000 networks')
    """
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def epochs(count: int) -> str:
    """Return a number of epochs in words.

    Examples
    --------
    >>> epochs(1), epochs(2000)
    ('1 epoch', '2,000 epochs')
    """
    return count_of(count, "epoch")


@dataclass(frozen=True)
class FitCall:
    """What decides how to fit, apart from the parameters and the data's shape.

    Parameters
    ----------
    n_stored : int, optional
        Stored entries of a sparse X.
    has_eval_set : bool
        Whether validation data are given.
    needs_epochs : str
        Why the fit needs epochs; empty if it does not.
    continues : Settings, optional
        Settings of the earlier fit whose network is trained further.
    image_shape : tuple of int, optional
        Shape of the images that the samples are, where the data set has one.
    one_epoch : bool
        Whether the call is one of `partial_fit`.
    is_on_disk : bool
        Whether X is read from disk.
    recipe : Recipe, optional
        Source of the values that are left open, instead of the preset.
    """

    n_stored: int | None = None
    has_eval_set: bool = False
    needs_epochs: str = ""
    continues: Settings | None = None
    image_shape: tuple[int, ...] | None = None
    one_epoch: bool = False
    is_on_disk: bool = False
    recipe: Recipe | None = None


# ----------------------------------------------------------------------------------- resolution


def resolve(
    estimator: Any, shape: Shape, call: FitCall | None = None, *, refuses: bool = True
) -> Settings:
    """Return the settings of a fit.

    Parameters
    ----------
    estimator : SparseMLPClassifier or SparseMLPRegressor
        With checked parameters.  None and ``"auto"`` are replaced by the preset's values.
    shape : Shape
        Samples, features and outputs.
    call : FitCall, optional
        Everything else that decides.
    refuses : bool, default=True
        Whether to raise for parameters that would have no effect.

    Raises
    ------
    InvalidParameterError
        If a parameter that was changed from its default would have no effect.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> settings = resolve(SparseMLPClassifier.paper(), Shape(74, 11_340, 3))
    >>> settings.solver, settings.hidden_layer_sizes, settings.batch_size, settings.init
    ('sgd', (9072, 9072), 5, 'set')
    """
    call = call or FitCall()
    owner = type(estimator).__name__
    given: dict[str, Any] = estimator.get_params(deep=False)
    changed = changed_parameters(estimator)
    values = PRESETS[given["preset"]](shape) if call.recipe is None else call.recipe.values
    preset = {**ALWAYS, **values, **estimator._preset_changes(shape)}

    def choice(name: str) -> Any:
        return preset[name] if is_open(given[name]) else given[name]

    hidden = _hidden(choice("hidden_layer_sizes"), given, shape)
    epsilon, density = given["epsilon"], given["density"]
    if epsilon is None and density is None:
        epsilon, density = preset.get("epsilon"), preset.get("density")
    activation = choice("activation")
    solver, optimizer, learning_rate = _optimizer(given, preset, choice)
    evolution = choice("evolution")
    init = choice("init")
    # An explicit `init` holds for the output layer too, unless that has one of its own.
    output_init = choice("output_init") if is_open(given["init"]) else given["output_init"]
    widths = (shape.n_features, *hidden, shape.n_outputs)
    topology = [*(given["topology"] or []), *[None] * len(widths)][: len(widths) - 1]
    connections = _expected_connections(widths, epsilon, density, topology)
    batch_size = max(min(int(choice("batch_size")), shape.n_samples), 1)
    smoothing = preset["label_smoothing"]
    if not is_open(given.get("label_smoothing")):
        smoothing = given["label_smoothing"]
    early_stopping = _stops_early(given, shape, call)
    settings = Settings(
        solver=solver,
        reason="",
        after_closed_form=_after_closed_form(call),
        hidden_layer_sizes=hidden,
        epsilon=None if epsilon is None else float(epsilon),
        density=None if density is None else float(density),
        evolution=_strategy(evolution, given["zeta"]),
        strategy_name=evolution if isinstance(evolution, str) else "",
        activation=activation,
        slope=float(ACTIVATIONS[activation].slope if given["slope"] is None else given["slope"]),
        dropout=float(choice("dropout")) if hidden else 0.0,
        optimizer=optimizer,
        learning_rate_init=learning_rate,
        learning_rate=choice("learning_rate"),
        learning_rate_min=float(given["learning_rate_min"]),
        warm_up=float(given["warm_up"]),
        batch_size=batch_size,
        balance_batches=isinstance(given["batch_size"], str),
        max_iter=int(choice("max_iter")),
        shuffle=bool(given["shuffle"]),
        init=init,
        output_init=init if is_open(output_init) else output_init,
        start=choice("start"),
        scale=preset["scale"] if given["scale"] == "auto" else given["scale"],
        clip=float(choice("clip")),
        label_smoothing=float(smoothing),
        early_stopping=early_stopping,
        validation_fraction=float(given["validation_fraction"]),
        n_iter_no_change=_patience(given, early_stopping=early_stopping),
        tol=float(given["tol"]),
        restore_best=bool(given["restore_best"]),
        dtype=_dtype(given["dtype"], sum(connections) * shape.n_samples),
        n_threads=threads_for(given["n_jobs"], sum(connections) * batch_size),
        given_topology=call.continues.given_topology
        if call.continues is not None
        else tuple(layer is not None for layer in topology),
        connections=connections,
        augment=resolved_augment(owner, given, shape, call.image_shape, refuses=refuses),
        prepare=as_prepare(given["prepare"]),
    )
    how, reason = _way(owner, given, changed, shape, call, can_average=estimator._can_average)
    if how == CLOSED_FORM:
        return replace(settings, solver=CLOSED_FORM, reason=reason)
    if how == AVERAGE:
        # The rows that a network does not see choose its best epoch; it trains to its last.
        return replace(
            settings,
            averages=True,
            reason=reason,
            early_stopping=True,
            n_iter_no_change=settings.max_iter,
        )
    if refuses and call.continues is not None:
        _compare_networks(owner, given, changed, settings, call.continues)
    if refuses:
        for name, unused in unused_parameters(changed, given, settings, call).items():
            refuse(owner, name, given[name], defaults_of(type(estimator))[name], unused)
    return replace(settings, reason=reason)


def _way(
    owner: str,
    given: Mapping[str, Any],
    changed: Sequence[str],
    shape: Shape,
    call: FitCall,
    *,
    can_average: bool,
) -> tuple[str, str]:
    """Return whether to solve in closed form, average networks or train one, and why.

    In closed form always with ``solver="ridge"``.  With ``"auto"`` for few samples of many
    features, if no changed parameter asks for a training; networks are averaged for more samples.
    """
    solver = given["solver"]
    for_training = [name for name in changed if not PARAMETERS[name].in_closed_form]
    solvable = given.get("loss", "auto") in ("auto", *CLOSED_FORM_LOSSES)
    if call.continues is not None:
        return TRAIN, "it continues from the network of an earlier fit"
    if isinstance(solver, str) and solver == "ridge":
        if call.needs_epochs:
            raise InvalidParameterError(
                f'{owner}: `solver="ridge"` solves for the network in closed form, but'
                f" {call.needs_epochs}.\n"
                f'  Set `solver` to "sgd" or "adam", or leave it at "auto".'
            )
        for_training += [] if solvable else ["loss"]
        if for_training:
            values = ", ".join(f"`{name}={short(given[name])}`" for name in for_training)
            raise InvalidParameterError(
                f'{owner}: `solver="ridge"` solves for the network in closed form, where {values}'
                f" would have no effect.\n"
                f"  Leave {'it' if len(for_training) == 1 else 'them'} at the default, or train"
                f' step by step: set `solver` to "sgd" or "adam", or leave it at "auto".'
            )
        return CLOSED_FORM, '`solver="ridge"` was set'
    if not is_open(solver):
        return TRAIN, "`solver` was set"
    if call.needs_epochs:
        return TRAIN, call.needs_epochs
    if for_training:
        return TRAIN, _were_set(for_training)
    if call.has_eval_set:
        return TRAIN, "validation data were given as `eval_set`"
    if solvable and suits(shape.n_samples, shape.n_features, call.n_stored):
        return CLOSED_FORM, (
            f"there are few samples ({shape.n_samples:,}) of many features ({shape.n_features:,})"
            f" and no parameter asks for a training"
        )
    if call.is_on_disk:
        return TRAIN, "the samples are read from disk"
    if not can_average:
        return TRAIN, f"there are {shape.n_samples:,} samples of {shape.n_features:,} features"
    if shape.n_samples <= FULL_BATCH:
        return TRAIN, f"there are only {shape.n_samples:,} samples of {shape.n_features:,} features"
    return AVERAGE, (
        f"there are {shape.n_samples:,} samples of {shape.n_features:,} features and no parameter"
        f" asks for a particular training"
    )


def _compare_networks(
    owner: str,
    given: Mapping[str, Any],
    changed: Sequence[str],
    settings: Settings,
    earlier: Settings,
) -> None:
    """Raise if a parameter asks for another network than the one that is trained further."""
    for name in NETWORK:
        before, now = getattr(earlier, name), getattr(settings, name)
        if name in changed and before != now:
            raise InvalidParameterError(
                f"{owner}: `{name}={short(given[name])}` would have no effect: training continues"
                f" from a network with {name}={short(before)}.\n"
                f"  Either keep the value of the first fit, or fit a new network: `fit` with"
                f" `warm_start=False`."
            )


def _were_set(names: Sequence[str]) -> str:
    listed = [f"`{name}`" for name in names]
    if len(listed) > 4:
        listed = [*listed[:3], f"{len(listed) - 3} more parameters"]
    if len(listed) == 1:
        return f"{listed[0]} was set"
    return f"{', '.join(listed[:-1])} and {listed[-1]} were set"


def _after_closed_form(call: FitCall) -> bool:
    before = call.continues
    return before is not None and (before.is_closed_form or before.after_closed_form)


def _hidden(sizes: Any, given: Mapping[str, Any], shape: Shape) -> tuple[int, ...]:
    hidden = [int(size) for size in (sizes if hasattr(sizes, "__iter__") else [sizes])]
    # Given layers determine the widths of the hidden layers.
    if given["topology"] is not None and is_open(given["hidden_layer_sizes"]):
        known = [None if layer is None else layer.shape[1] for layer in given["topology"]]
        for index, width in enumerate(known):
            if width is None:
                continue
            if index < len(hidden):
                hidden[index] = width
            elif index + 1 < len(known) or width != shape.n_outputs:
                hidden.append(width)
    return tuple(hidden)


def _optimizer(
    given: Mapping[str, Any], preset: Mapping[str, Any], choice: Callable[[str], Any]
) -> tuple[str, Optimizer, float]:
    solver, rate = given["solver"], given["learning_rate_init"]
    if is_open(solver) or (isinstance(solver, str) and solver == "ridge"):
        # The second case matters where training continues from a network solved for.
        # A learning rate makes sense for one rule only, so giving one means plain SGD.
        solver = preset["solver"] if rate is None else "sgd"
    if not isinstance(solver, str):
        known = "adam" if solver.n_states == 2 else "sgd"
        default = getattr(solver, "default_learning_rate", OPTIMIZERS[known].default_learning_rate)
        return type(solver).__name__, solver, float(default if rate is None else rate)
    if rate is None:
        same = solver == preset["solver"]
        rate = preset["learning_rate_init"] if same else OPTIMIZERS[solver].default_learning_rate
    parameters = {
        **given,
        "nesterov": given["nesterovs_momentum"],
        "weight_decay": choice("weight_decay"),
        "decay": choice("decay"),
    }
    return solver, make_optimizer(solver, parameters), float(rate)


def _stops_early(given: Mapping[str, Any], shape: Shape, call: FitCall) -> bool:
    """Return whether validation data choose the epoch.

    By default they do where the number of epochs is open and there are rows to spare.
    """
    if not is_open(given["early_stopping"]):
        return bool(given["early_stopping"])
    is_free = is_open(given["max_iter"]) and given["preset"] is None and not call.one_epoch
    can_hold_out = call.has_eval_set or shape.n_samples >= ROWS_TO_SPARE
    return is_free and can_hold_out and call.continues is None and not call.needs_epochs


def _patience(given: Mapping[str, Any], *, early_stopping: bool) -> int | None:
    if given["n_iter_no_change"] is not None:
        return int(given["n_iter_no_change"])
    return PATIENCE if early_stopping else None


def _strategy(evolution: str | Strategy, zeta: float | None) -> Strategy:
    if zeta is None or not isinstance(evolution, str) or "zeta" not in parameters_of(evolution):
        return make_strategy(evolution)
    return make_strategy(evolution, zeta=zeta)


def _expected_connections(
    widths: tuple[int, ...], epsilon: Any, density: Any, topology: Sequence[Any]
) -> tuple[int, ...]:
    try:
        return tuple(
            connections_wanted(layer, epsilon=epsilon, density=density)
            if given is None
            else int(given.nnz if hasattr(given, "nnz") else given.n_connections)
            for layer, given in zip(pairwise(widths), topology, strict=True)
        )
    except InvalidParameterError:
        return ()  # a layer without connections; making it raises a clearer error


def _dtype(dtype: str, work: int) -> str:
    if not is_open(dtype):
        return dtype
    return "float64" if work <= SMALL_PROBLEM else "float32"

"""The table of constructor parameters: allowed values, and when a value has an effect.

A parameter is honoured or refused, never ignored.  `PARAMETERS` has one row per parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from ratoon.activations import ACTIVATIONS
from ratoon.errors import InvalidParameterError, near
from ratoon.estimators.presets import PRESETS, Shape, is_open
from ratoon.estimators.strengths import MEASURES
from ratoon.evolution import STRATEGIES, is_known, parameters_of, strategy_names
from ratoon.initialise import INITS, STARTS
from ratoon.optimizers import OPTIMIZERS, SCHEDULES
from ratoon.preparation import as_prepare
from ratoon.samples.augment import Augment, as_augment
from ratoon.survival import TIES
from ratoon.topology import Topology, Within
from ratoon.training import Callback

if TYPE_CHECKING:
    from ratoon.estimators.settings import FitCall, Settings

SOLVERS = ("ridge", *OPTIMIZERS)
DECAYS = ("coupled", "released")
DTYPES = ("float32", "float64", "bfloat16")
SCALES = ("standard", "global")
SLOPED = tuple(name for name, activation in ACTIVATIONS.items() if activation.slope)
"""Activations that have a slope, and its default."""

LARGEST_COUNT = 10**15
"""Largest batch size and number of epochs."""

LARGEST_WIDTH = 2**31 - 1
"""Most neurons of a hidden layer."""

Check = Callable[[str, str, Any], None]


def _fail(owner: str, name: str, allowed: str, value: Any, hint: str = "") -> None:
    raise InvalidParameterError(f"{owner}: `{name}` must be {allowed}, got {short(value)}.{hint}")


def _is_number(value: Any) -> bool:
    numbers = int | float | np.integer | np.floating
    if not isinstance(value, numbers) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the largest floating-point number
        return False


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def one_of(names: Collection[str | None], *, also: str = "") -> Check:
    """Return a check that a value is one of some names; ``also`` names further possibilities."""

    def check(owner: str, name: str, value: Any) -> None:
        if (value is None or isinstance(value, str)) and value in names:
            return
        hint = near(value, [name for name in names if name is not None])
        allowed = "one of " + ", ".join(map(repr, names)) + also
        _fail(owner, name, allowed, value, hint)

    return check


def between(low: float, high: float, *, open_low: bool = False, open_high: bool = False) -> Check:
    """Return a check that a value is a number between two others."""
    left, right = "(" if open_low else "[", ")" if open_high else "]"
    interval = f"{left}{low:g}, {high:g}{right}"

    def check(owner: str, name: str, value: Any) -> None:
        if not (
            _is_number(value)
            and (low < value if open_low else low <= value)
            and (value < high if open_high else value <= high)
        ):
            _fail(owner, name, f"a number in {interval}", value)

    return check


def positive(owner: str, name: str, value: Any) -> None:
    """Raise unless the value is a number above 0."""
    if not (_is_number(value) and value > 0):
        _fail(owner, name, "a positive number", value)


def not_negative(owner: str, name: str, value: Any) -> None:
    """Raise unless the value is a number, 0 or above."""
    if not (_is_number(value) and value >= 0):
        _fail(owner, name, "a number, 0 or above", value)


def count(owner: str, name: str, value: Any) -> None:
    """Raise unless the value is a whole number above 0, and at most `LARGEST_COUNT`."""
    if _is_count(value) and value > LARGEST_COUNT:
        _fail(owner, name, f"at most {LARGEST_COUNT:,}", value)
    if not (_is_count(value) and value >= 1):
        hint = ""
        if _is_number(value) and value == int(value) and value >= 1:
            hint = f"\n  Give it as a whole number: {int(value)}."
        _fail(owner, name, "a whole number, at least 1", value, hint)


def boolean(owner: str, name: str, value: Any) -> None:
    """Raise unless the value is True or False."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        _fail(owner, name, "True or False", value)


def _verbose(owner: str, name: str, value: Any) -> None:
    if not isinstance(value, bool):
        not_negative(owner, name, value)


def _hidden(owner: str, name: str, value: Any) -> None:
    is_number = isinstance(value, str) or (isinstance(value, np.ndarray) and value.ndim == 0)
    sizes = [value] if is_number or not hasattr(value, "__iter__") else list(value)
    if any(_is_count(size) and size > LARGEST_WIDTH for size in sizes):
        _fail(owner, name, f"at most {LARGEST_WIDTH:,} per layer", value)
    if not all(_is_count(size) and size >= 1 for size in sizes):
        _fail(
            owner,
            name,
            '"auto" or the widths of the hidden layers, each a whole number of at least 1',
            value,
            "\n  No hidden layer at all is written as ().",
        )


def _epsilon(owner: str, name: str, value: Any) -> None:
    hint = "\n  If you meant Adam's numerical constant, that one is called `adam_eps` here."
    if not (_is_number(value) and value > 0):
        _fail(owner, name, "a positive number; the authors of SET use 10 or 20", value, hint)


def _text(owner: str, name: str, value: Any) -> None:
    if not isinstance(value, str):
        _fail(owner, name, "a string", value)


def _solver(owner: str, name: str, value: Any) -> None:
    if isinstance(value, str):
        one_of(SOLVERS, also=', "auto" or an optimizer')(owner, name, value)
    elif not all(hasattr(value, part) for part in ("rule", "n_states", "step")):
        _fail(
            owner, name, f"one of {tuple(OPTIMIZERS)} or an optimizer of ratoon.optimizers", value
        )


def _schedule(owner: str, name: str, value: Any) -> None:
    if _is_number(value):
        hint = f"\n  The first learning rate is `learning_rate_init={short(value)}`."
        _fail(owner, name, "a schedule, not a number", value, hint)
    if not callable(value):
        one_of(tuple(SCHEDULES), also=" or a function of the progress of training")(
            owner, name, value
        )


def _evolution(owner: str, name: str, value: Any) -> None:
    if isinstance(value, str):
        if not is_known(value):
            one_of(strategy_names(), also=" or a strategy")(owner, name, value)
    elif isinstance(value, type) or not all(
        hasattr(value, part) for part in ("schedule", "rewire")
    ):
        hint = f"\n  Perhaps {value.__name__}() was meant." if isinstance(value, type) else ""
        _fail(owner, name, "the name of a strategy or a strategy object", value, hint)


def _augment(owner: str, name: str, value: Any) -> None:
    del name
    try:
        as_augment(value)
    except InvalidParameterError as error:
        raise InvalidParameterError(f"{owner}: {error}") from None


def _prepare(owner: str, name: str, value: Any) -> None:
    del name
    try:
        as_prepare(value)
    except InvalidParameterError as error:
        raise InvalidParameterError(f"{owner}: {error}") from None


def resolved_augment(
    owner: str,
    given: Mapping[str, Any],
    shape: Shape,
    known: tuple[int, ...] | None,
    *,
    refuses: bool,
) -> Augment | None:
    """Return how images change, with their shape, which is ``known`` from data sets."""
    augment = as_augment(given["augment"])
    try:
        return None if augment is None else augment.for_features(shape.n_features, known)
    except InvalidParameterError as error:
        if not refuses:
            return None  # the data set had the shape
        raise InvalidParameterError(f"{owner}: {error}") from None


def _callbacks(owner: str, name: str, value: Any) -> None:
    for callback in value if isinstance(value, list | tuple) else [value]:
        if not isinstance(callback, Callback):
            hint = "\n  Callbacks of scikit-learn are given to `set_callbacks`."
            _fail(owner, name, "objects of `ratoon.training.Callback`", callback, hint)


def _topology(owner: str, name: str, value: Any) -> None:
    for layer in value if isinstance(value, list | tuple) else [value]:
        is_known = isinstance(layer, Topology | Within) or scipy.sparse.issparse(layer)
        if not (layer is None or is_known):
            allowed = (
                "a list with a Topology, a SciPy matrix (inputs x outputs), a Within or None per"
                " layer"
            )
            _fail(owner, name, allowed, type(layer).__name__)
    if not isinstance(value, list | tuple):
        hint = "\n  For the first layer alone write [topology]."
        _fail(owner, name, "a list with one entry per layer", value, hint)


def _start_value(owner: str, name: str, value: Any) -> None:
    if isinstance(value, str):
        also = ", strengths of the features, or a fitted network"
        one_of((*STARTS, *MEASURES), also=also)(owner, name, value)
    elif not (hasattr(value, "feature_strength") or np.ndim(value) == 1):
        _fail(owner, name, "a way to start, one strength per feature, or a fitted network", value)


# ------------------------------------------------------------------------- effects in training


@dataclass(frozen=True)
class Unused:
    """Why a parameter would have no effect in a training, and how to change that."""

    reason: str
    remedy: str


@dataclass(frozen=True)
class PlannedTraining:
    """A training about to start, for deciding which parameters it uses."""

    given: Mapping[str, Any]
    settings: Settings
    call: FitCall

    def is_object(self, name: str) -> bool:
        """Whether a parameter is an object rather than a name."""
        return not (is_open(self.given[name]) or isinstance(self.given[name], str))

    def drawn_layers(self) -> list[int]:
        """Return the layers whose first connections are drawn by `epsilon` or `density`."""
        return [k for k, given in enumerate(self.settings.given_topology) if not given]


Effect = Callable[[PlannedTraining], Unused | None]


def always(fit: PlannedTraining) -> Unused | None:
    """Return None: the parameter always has an effect."""
    del fit
    return None


def _own_optimizer(fit: PlannedTraining) -> Unused | None:
    if fit.is_object("solver"):
        made = type(fit.given["solver"]).__name__
        return Unused(
            f"`solver` is a {made} object with its own parameters", f"set it in {made}(...)"
        )
    return None


def _of_optimizer(field: str) -> Effect:
    """Return the effect of a parameter that only some of the named optimizers have."""
    having = [name for name, made in OPTIMIZERS.items() if hasattr(made, field)]

    def effect(fit: PlannedTraining) -> Unused | None:
        if fit.settings.solver not in having and not fit.is_object("solver"):
            used = OPTIMIZERS[fit.settings.solver].__name__
            return Unused(
                f"training uses {used}", f"set `solver` to {' or '.join(map(repr, having))}"
            )
        return _own_optimizer(fit)

    return effect


def _nesterov(fit: PlannedTraining) -> Unused | None:
    if (unused := _of_optimizer("nesterov")(fit)) is None and fit.given["momentum"] == 0:
        return Unused("`momentum` is 0", "set a `momentum` above 0")
    return unused


def _decay(fit: PlannedTraining) -> Unused | None:
    if (unused := _of_optimizer("decay")(fit)) is None and getattr(
        fit.settings.optimizer, "weight_decay", 0
    ) == 0:
        return Unused("there is no weight decay", "set a `weight_decay` above 0")
    return unused


def _zeta(fit: PlannedTraining) -> Unused | None:
    if fit.is_object("evolution"):
        made = type(fit.given["evolution"]).__name__
        return Unused(
            f"`evolution` is a {made} object with its own parameters", f"set it in {made}(...)"
        )
    if "zeta" not in parameters_of(fit.settings.strategy_name):
        having = [repr(name) for name in STRATEGIES if "zeta" in parameters_of(name)]
        return Unused(
            f"the strategy {fit.settings.strategy_name!r} has no `zeta`",
            f"set `evolution` to a strategy that has it: {', '.join(having)}",
        )
    return None


def _floor(fit: PlannedTraining) -> Unused | None:
    if fit.settings.learning_rate == "constant":
        return Unused("the learning rate is constant", 'set `learning_rate="cosine"` or `"step"`')
    if fit.settings.learning_rate_min > fit.settings.learning_rate_init:
        return Unused(
            f"training starts at a learning rate of {fit.settings.learning_rate_init:g}, which is"
            f" lower",
            "set a larger `learning_rate_init`",
        )
    return None


def _images(fit: PlannedTraining) -> Unused | None:
    if fit.call.n_stored is not None:
        return Unused("X is sparse, and images are dense", "give X as a dense array")
    return None


def _hidden_layer(fit: PlannedTraining) -> Unused | None:
    if not fit.settings.hidden_layer_sizes:
        return Unused("the network has no hidden layer", "set `hidden_layer_sizes`")
    return None


def _slope(fit: PlannedTraining) -> Unused | None:
    if fit.settings.activation not in SLOPED:
        return Unused(
            f"the activation {fit.settings.activation!r} has no slope",
            f"set `activation` to one of {SLOPED}",
        )
    return _hidden_layer(fit)


def _init(fit: PlannedTraining) -> Unused | None:
    if not fit.settings.hidden_layer_sizes and not is_open(fit.given["output_init"]):
        return Unused("the only layer is the output layer, which has `output_init`", "set that")
    return None


def _drawn(fit: PlannedTraining) -> Unused | None:
    if not fit.drawn_layers():
        return Unused("`topology` gives every layer", "use None for a layer to be drawn")
    return None


def _start(fit: PlannedTraining) -> Unused | None:
    if fit.settings.is_guided_start and 0 not in fit.drawn_layers():
        return Unused(
            "it applies to the first layer, which `topology` gives",
            "use None for the first layer of `topology`",
        )
    return _drawn(fit)


def _stopping(fit: PlannedTraining) -> Unused | None:
    if not fit.settings.early_stopping:
        return Unused("there is no early stopping", "set `early_stopping=True`")
    return None


def _patience(fit: PlannedTraining) -> Unused | None:
    if fit.settings.n_iter_no_change is None:
        return Unused(
            "training does not stop early", "set `early_stopping=True` or `n_iter_no_change`"
        )
    return None


def _held_back(fit: PlannedTraining) -> Unused | None:
    if (unused := _stopping(fit)) is None and fit.call.has_eval_set and not fit.call.continues:
        return Unused("validation data were given as `eval_set`", "leave `eval_set` out")
    return unused


# ----------------------------------------------------------------------------------- the table


@dataclass(frozen=True)
class Parameter:
    """A row of the table of parameters.

    Parameters
    ----------
    check : callable or None
        Raises for a value that is not allowed.  None where the check needs the data.
    effect : callable
        Returns None if a training uses the parameter, else why it does not.
    in_closed_form : bool
        Whether the closed form uses the parameter too.  Any other parameter with a value that is
        not its default asks for a training.
    open_values : tuple
        Values that leave the parameter to the preset, or switch it off: None, ``"auto"`` or both.
    """

    check: Check | None
    effect: Effect = always
    in_closed_form: bool = False
    open_values: tuple[str | None, ...] = ()

    def is_left_open(self, value: Any) -> bool:
        """Whether a value leaves the parameter to the preset."""
        return is_open(value) and value in self.open_values


_BY_PRESET = (None, "auto")
_UNSET = (None,)
_FRACTION = between(0, 1, open_high=True)

PARAMETERS: dict[str, Parameter] = {
    "hidden_layer_sizes": Parameter(_hidden, open_values=_BY_PRESET),
    "epsilon": Parameter(_epsilon, _drawn, open_values=_UNSET),
    "density": Parameter(between(0, 1, open_low=True), _drawn, open_values=_UNSET),
    "zeta": Parameter(_FRACTION, _zeta, open_values=_UNSET),
    "evolution": Parameter(_evolution, open_values=_BY_PRESET),
    "activation": Parameter(
        one_of([*(name for name in ACTIVATIONS if name != "identity"), "identity"]),
        _hidden_layer,
        open_values=_BY_PRESET,
    ),
    "slope": Parameter(
        between(-math.inf, math.inf, open_low=True, open_high=True), _slope, open_values=_UNSET
    ),
    "dropout": Parameter(_FRACTION, _hidden_layer, open_values=_UNSET),
    "loss": Parameter(_text, in_closed_form=True),
    "ties": Parameter(one_of(TIES), in_closed_form=True),
    "solver": Parameter(_solver, in_closed_form=True, open_values=_BY_PRESET),
    "learning_rate_init": Parameter(positive, open_values=_UNSET),
    "learning_rate": Parameter(_schedule, open_values=_BY_PRESET),
    "learning_rate_min": Parameter(not_negative, _floor),
    "warm_up": Parameter(_FRACTION),
    "momentum": Parameter(_FRACTION, _of_optimizer("momentum")),
    "nesterovs_momentum": Parameter(boolean, _nesterov),
    "weight_decay": Parameter(not_negative, _own_optimizer, open_values=_BY_PRESET),
    "decay": Parameter(one_of(DECAYS), _decay, open_values=_BY_PRESET),
    "beta_1": Parameter(_FRACTION, _of_optimizer("beta_1")),
    "beta_2": Parameter(_FRACTION, _of_optimizer("beta_2")),
    "adam_eps": Parameter(positive, _of_optimizer("adam_eps")),
    "batch_size": Parameter(count, open_values=_BY_PRESET),
    "max_iter": Parameter(count, open_values=_BY_PRESET),
    "shuffle": Parameter(boolean),
    "augment": Parameter(_augment, _images, open_values=_UNSET),
    "init": Parameter(one_of(INITS), _init, open_values=_BY_PRESET),
    "output_init": Parameter(one_of(INITS), open_values=_BY_PRESET),
    "start": Parameter(_start_value, _start, open_values=_BY_PRESET),
    "topology": Parameter(_topology, open_values=_UNSET),
    "scale": Parameter(one_of(("auto", *SCALES, None))),
    "clip": Parameter(not_negative, open_values=_BY_PRESET),
    "prepare": Parameter(_prepare, in_closed_form=True, open_values=_UNSET),
    "label_smoothing": Parameter(_FRACTION, open_values=_BY_PRESET),
    "early_stopping": Parameter(boolean, open_values=("auto",)),
    "validation_fraction": Parameter(between(0, 1, open_low=True, open_high=True), _held_back),
    "n_iter_no_change": Parameter(count, open_values=_UNSET),
    "tol": Parameter(not_negative, _patience),
    "restore_best": Parameter(boolean, _stopping),
    "class_weight": Parameter(None, in_closed_form=True),
    "warm_start": Parameter(boolean),
    "preset": Parameter(one_of(tuple(PRESETS))),
    "callbacks": Parameter(_callbacks, open_values=_UNSET),
    "n_jobs": Parameter(None, in_closed_form=True),
    "random_state": Parameter(None, in_closed_form=True),
    "dtype": Parameter(one_of(DTYPES), open_values=_BY_PRESET),
    "verbose": Parameter(_verbose, in_closed_form=True),
}
"""Every constructor parameter of classifier and regressor."""


def checked(name: str) -> Check:
    """Return the check of a parameter, for estimators that share it."""
    check = PARAMETERS[name].check
    assert check is not None, f"{name} is checked elsewhere"
    return check


def check_parameters(given: Mapping[str, Any], *, owner: str) -> None:
    """Raise for the first parameter whose value is not allowed.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> check_parameters(SparseMLPClassifier(decay="couple").get_params(), owner="Demo")
    Traceback (most recent call last):
    ...
    ratoon.errors.InvalidParameterError: Demo: `decay` must be one of 'coupled',
      'released', got 'couple'.
      Did you mean 'coupled'?
    """
    for name, parameter in PARAMETERS.items():
        if name not in given or parameter.check is None:
            continue
        if not parameter.is_left_open(given[name]):
            parameter.check(owner, name, given[name])
    if given["epsilon"] is not None and given["density"] is not None:
        raise InvalidParameterError(
            f"{owner}: give either `epsilon` or `density`, got epsilon={given['epsilon']!r} and"
            f" density={given['density']!r}.\n"
            f"  Both set the number of connections of a layer: about epsilon * (n_in + n_out), or"
            f" density * n_in * n_out."
        )


def defaults_of(kind: type) -> dict[str, Any]:
    """Return the default of every constructor parameter, from the signature."""
    parameters = signature(kind).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters}


def changed_parameters(estimator: Any) -> list[str]:
    """Return the parameters of an estimator whose value differs from the default.

    None and ``"auto"`` are the same where both leave the parameter to the preset.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> changed_parameters(SparseMLPClassifier(hidden_layer_sizes=None, zeta=0.3, tol=1e-4))
    ['zeta']
    """
    defaults = defaults_of(type(estimator))
    given = estimator.get_params(deep=False)
    return [name for name in given if not _is_same(name, given[name], defaults.get(name))]


def _is_same(name: str, value: Any, default: Any) -> bool:
    known = PARAMETERS.get(name)
    if known is not None and known.is_left_open(value):
        return is_open(default)
    if isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating):
        return isinstance(default, bool | int | float) and bool(value == default)
    if isinstance(value, str):
        return isinstance(default, str) and value == default
    return value is default


def unused_parameters(
    changed: Collection[str], given: Mapping[str, Any], settings: Settings, call: FitCall
) -> dict[str, Unused]:
    """Return those of the changed parameters that a training would not use, and why."""
    fit = PlannedTraining(given, settings, call)
    found = {name: PARAMETERS[name].effect(fit) for name in changed if name in PARAMETERS}
    return {name: unused for name, unused in found.items() if unused is not None}


def refuse(owner: str, name: str, value: Any, default: Any, unused: Unused) -> None:
    """Raise for a parameter that would have no effect."""
    raise InvalidParameterError(
        f"{owner}: `{name}={short(value)}` would have no effect: {unused.reason}.\n"
        f"  Either {unused.remedy}, or leave `{name}` at its default, {default!r}."
    )


def short(value: Any) -> str:
    """Return a value as text for a message, at most 60 characters."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."

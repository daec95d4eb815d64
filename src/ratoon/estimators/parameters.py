"""Checks of constructor parameters: what was given, what it may be, what was perhaps meant."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np
import scipy.sparse

from ratoon.errors import InvalidParameterError
from ratoon.estimators.presets import PRESETS, is_open
from ratoon.estimators.strengths import MEASURES
from ratoon.evolution import STRATEGIES
from ratoon.initialise import INITS, STARTS
from ratoon.kernels import ACTIVATIONS
from ratoon.optimizers import OPTIMIZERS, SCHEDULES
from ratoon.topology import Topology, Within
from ratoon.training import Callback

SOLVERS = ("ridge", *OPTIMIZERS)
DECAYS = ("coupled", "released")
DTYPES = ("float32", "float64", "bfloat16")
SCALES = ("standard",)

Check = Callable[[str, str, Any], None]


def _fail(owner: str, name: str, allowed: str, value: Any, hint: str = "") -> None:
    raise InvalidParameterError(f"{owner}: `{name}` must be {allowed}, got {value!r}.{hint}")


def _is_number(value: Any) -> bool:
    numbers = int | float | np.integer | np.floating
    return isinstance(value, numbers) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def one_of(names: Collection[str | None], *, also: str = "") -> Check:
    """Return a check that a value is one of some names; ``also`` says what else is."""

    def check(owner: str, name: str, value: Any) -> None:
        if (value is None or isinstance(value, str)) and value in names:
            return
        near = get_close_matches(str(value), [str(known) for known in names], n=1)
        hint = f"\n  Perhaps {near[0]!r} was meant." if near else ""
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
    """Raise unless the value is a whole number above 0."""
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
    sizes = list(value) if hasattr(value, "__iter__") and not isinstance(value, str) else [value]
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


def _solver(owner: str, name: str, value: Any) -> None:
    if isinstance(value, str):
        one_of(SOLVERS, also=', "auto" or an optimizer')(owner, name, value)
    elif not all(hasattr(value, part) for part in ("rule", "n_states", "step")):
        _fail(
            owner, name, f"one of {tuple(OPTIMIZERS)} or an optimizer of ratoon.optimizers", value
        )


def _schedule(owner: str, name: str, value: Any) -> None:
    if not callable(value):
        one_of(tuple(SCHEDULES), also=" or a function of the progress of training")(
            owner, name, value
        )


def _evolution(owner: str, name: str, value: Any) -> None:
    if isinstance(value, str):
        one_of(tuple(STRATEGIES), also=" or a strategy")(owner, name, value)
    elif isinstance(value, type) or not all(
        hasattr(value, part) for part in ("schedule", "rewire")
    ):
        hint = f"\n  Perhaps {value.__name__}() was meant." if isinstance(value, type) else ""
        _fail(owner, name, "the name of a strategy or a strategy object", value, hint)


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


def _start(owner: str, name: str, value: Any) -> None:
    if isinstance(value, str):
        also = ", strengths of the features, or a fitted network"
        one_of((*STARTS, *MEASURES), also=also)(owner, name, value)
    elif not (hasattr(value, "feature_strength") or np.ndim(value) == 1):
        _fail(owner, name, "a way to start, one strength per feature, or a fitted network", value)


CHECKS: dict[str, Check] = {
    "hidden_layer_sizes": _hidden,
    "epsilon": _epsilon,
    "density": between(0, 1, open_low=True),
    "zeta": between(0, 1, open_high=True),
    "evolution": _evolution,
    "activation": one_of([name for name in ACTIVATIONS if name != "identity"] + ["identity"]),
    "slope": between(-math.inf, math.inf, open_low=True, open_high=True),
    "dropout": between(0, 1, open_high=True),
    "solver": _solver,
    "learning_rate_init": positive,
    "learning_rate": _schedule,
    "warm_up": between(0, 1, open_high=True),
    "momentum": between(0, 1, open_high=True),
    "nesterovs_momentum": boolean,
    "weight_decay": not_negative,
    "decay": one_of(DECAYS),
    "beta_1": between(0, 1, open_high=True),
    "beta_2": between(0, 1, open_high=True),
    "adam_eps": positive,
    "batch_size": count,
    "max_iter": count,
    "shuffle": boolean,
    "init": one_of(INITS),
    "output_init": one_of(INITS),
    "start": _start,
    "topology": _topology,
    "scale": one_of((*SCALES, None)),
    "clip": not_negative,
    "label_smoothing": between(0, 1, open_high=True),
    "early_stopping": boolean,
    "validation_fraction": between(0, 1, open_low=True, open_high=True),
    "n_iter_no_change": count,
    "tol": not_negative,
    "restore_best": boolean,
    "warm_start": boolean,
    "preset": one_of(tuple(PRESETS)),
    "callbacks": _callbacks,
    "dtype": one_of(DTYPES),
    "verbose": _verbose,
}

NEVER_OPEN = {"scale", "preset"}


def check_parameters(given: Mapping[str, Any], *, owner: str) -> None:
    """Raise for the first parameter that is not what it may be.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> check_parameters(SparseMLPClassifier(decay="couple").get_params(), owner="Demo")
    Traceback (most recent call last):
    ...
    ratoon.errors.InvalidParameterError: Demo: `decay` must be one of 'coupled', 'released' or
      "auto", got 'couple'.
      Perhaps 'coupled' was meant.
    """
    for name, check in CHECKS.items():
        if name in given and (name in NEVER_OPEN or not is_open(given[name])):
            check(owner, name, given[name])
    if given["epsilon"] is not None and given["density"] is not None:
        raise InvalidParameterError(
            f"{owner}: give either `epsilon` or `density`, got epsilon={given['epsilon']!r} and"
            f" density={given['density']!r}.\n"
            f"  Both say how many connections a layer gets: about epsilon * (n_in + n_out), or"
            f" density * n_in * n_out."
        )

"""Settings in a file, and the settings and parameters of files of earlier versions."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from ratoon.errors import FormatError
from ratoon.estimators.parameters import (
    PARAMETERS,
    changed_parameters,
    defaults_of,
    short,
    unused_parameters,
)
from ratoon.estimators.plain import NotPlain, from_plain, to_plain
from ratoon.estimators.presets import Shape, is_open
from ratoon.estimators.settings import PATIENCE, FitCall, Settings, resolve
from ratoon.network import SparseMLP
from ratoon.optimizers import OPTIMIZERS
from ratoon.preparation import Prepare
from ratoon.samples.augment import Augment

_LONGEST_TEXT = 1000


def settings_to_plain(settings: Settings) -> dict[str, Any]:
    """Return settings as plain JSON values.

    Values that cannot be written, such as a function or an array, are left out.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> model, shape = SparseMLPClassifier((9,), solver="sgd"), Shape(60, 300, 2)
    >>> settings = resolve(model, shape)
    >>> settings_from_plain(settings_to_plain(settings), settings) == settings
    True
    """
    stored = {}
    for item in fields(settings):
        value = getattr(settings, item.name)
        if item.name == "start" and not isinstance(value, str):
            continue  # one number per feature, or a network: too much to keep twice
        try:
            stored[item.name] = to_plain(value)
        except NotPlain:
            continue
    return stored


def settings_from_plain(stored: Any, resolved: Settings) -> Settings:
    """Return stored settings; what was not stored is taken from ``resolved``.

    Raises
    ------
    FormatError
        If ``stored`` does not hold settings.
    """
    names = {item.name for item in fields(Settings)}
    if not isinstance(stored, dict) or not stored.keys() <= names:
        raise FormatError("settings must be an object with names of settings")
    resolved = replace(resolved, averages=False, n_networks=1)  # as in files without these
    values = {name: from_plain(value) for name, value in stored.items()}
    for name, value in values.items():
        if not _is_valid(name, value):
            raise FormatError(f"settings: `{name}` must not be {short(value)}")
    return replace(resolved, **values)


_TYPES = {item.name: str(item.type) for item in fields(Settings)}
_CLASSES = {"str": str, "int": int, "float": float, "bool": bool}


def _is_valid(name: str, value: Any) -> bool:
    """Whether a value from a file has the type of a setting and passes its parameter's check."""
    if name == "n_threads":
        return type(value) is int and value >= 1
    kind = _TYPES[name].split(" | ")[0]
    if value is None:
        return _TYPES[name].endswith(" | None")
    if kind == "Optimizer":
        return isinstance(value, tuple(OPTIMIZERS.values()))
    if kind == "Augment":
        return isinstance(value, Augment)
    if kind == "Prepare":
        return isinstance(value, Prepare)
    if kind == "Strategy":
        return hasattr(value, "schedule") and hasattr(value, "rewire")
    if kind.startswith("tuple"):
        item = bool if "bool" in kind else int
        return isinstance(value, tuple) and all(type(one) is item and one >= 0 for one in value)
    if type(value) is not _CLASSES.get(kind, str):  # only text is stored of other types
        return False
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return False
    check = None if name == "solver" or name not in PARAMETERS else PARAMETERS[name].check
    if check is not None:
        check("settings", name, value)  # raises
    return True


def settings_of_old_file(estimator: Any, shape: Shape, network: SparseMLP, n: int) -> Settings:
    """Return the settings of a fit from a file that has none, as far as they can be known.

    Parameters
    ----------
    estimator : SparseMLPClassifier or SparseMLPRegressor
        With the parameters of the file.
    shape : Shape
        Shape of the data of the fit.
    network : SparseMLP
        The fitted network.
    n : int
        Records in the history.
    """
    settings = resolve(estimator, shape, refuses=False)
    if network.widths == settings.widths(shape):
        if settings.is_closed_form and is_open(
            estimator.solver
        ):  # it was trained after all, by `partial_fit` for example
            call = FitCall(needs_epochs="it was trained step by step")
            settings = resolve(estimator, shape, call, refuses=False)
        return settings
    given = (True,) * len(network.layers)
    if settings.is_closed_form and n > 1:
        settings = resolve(estimator, shape, FitCall(continues=settings), refuses=False)
    return replace(settings, given_topology=given)


def upgrade_defaults(estimator: Any) -> None:
    """Replace defaults from a file of version 1.0.0rc1 or before by those of today.

    A new fit would otherwise take them for values that were set.
    """
    before = {
        "dropout": (0.0, None),
        "scale": ("standard", "auto"),
        "early_stopping": (False, "auto"),
    }
    for name, (old, new) in before.items():
        if getattr(estimator, name) == old:
            setattr(estimator, name, new)


def upgrade_parameters(estimator: Any, shape: Shape) -> None:
    """Give parameters from a file without settings the meaning that they have today.

    In those versions ``"set"`` was `annealed_set` unless ``preset="paper"``, ``zeta=0.3`` was the
    default, and parameters without an effect were ignored.  Those are set to their defaults.
    """
    if estimator.zeta == 0.3:
        estimator.zeta = None
    if estimator.n_iter_no_change == PATIENCE or estimator.early_stopping is not True:
        estimator.n_iter_no_change = None  # was the default, or had no effect
    if estimator.evolution == "set" and estimator.preset != "paper":
        estimator.evolution = "annealed_set"
    call = FitCall(needs_epochs="it was trained step by step")
    explicit = estimator.solver
    if isinstance(explicit, str) and explicit == "ridge":
        estimator.solver = "auto"
    settings = resolve(estimator, shape, call, refuses=False)
    given, changed = estimator.get_params(deep=False), changed_parameters(estimator)
    defaults = defaults_of(type(estimator))
    for name in unused_parameters(changed, given, settings, call):
        setattr(estimator, name, defaults[name])
    estimator.solver = explicit

"""A fitted estimator as JSON values, arrays and networks, and back: the content of its file."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from ratoon.arrays import Array
from ratoon.datasets import Naming
from ratoon.datasets.collapse import Duplicates
from ratoon.errors import FormatError, RatoonError
from ratoon.estimators.base import BaseSparseMLP
from ratoon.estimators.classifier import SparseMLPClassifier
from ratoon.estimators.plain import (
    MissingStrategy,
    NotPlain,
    from_plain,
    named_strategy,
    to_plain,
)
from ratoon.estimators.presets import Shape
from ratoon.estimators.regressor import SparseMLPRegressor
from ratoon.estimators.settings import resolve
from ratoon.estimators.stored_settings import (
    settings_from_plain,
    settings_of_old_file,
    settings_to_plain,
    upgrade_defaults,
    upgrade_parameters,
)
from ratoon.estimators.survival import SparseMLPSurvival
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.preparation import Preparation
from ratoon.rng import draw_root
from ratoon.samples.fingerprints import RowSet
from ratoon.storage.document import text_array
from ratoon.storage.rules import EXACT_INTEGER, MAX_WIDTH, Fields, Violation
from ratoon.storage.strict_json import canonical
from ratoon.storage.training_state import Parts, state_from_parts, state_to_parts
from ratoon.topology import Within

ESTIMATORS: dict[str, type[BaseSparseMLP]] = {
    "SparseMLPClassifier": SparseMLPClassifier,
    "SparseMLPRegressor": SparseMLPRegressor,
    "SparseMLPSurvival": SparseMLPSurvival,
}

NOT_KEPT = ("callbacks", "topology", "random_state")
"""Parameters that a fitted network no longer needs; kept only if they are JSON values."""

FINGERPRINTS = "row_fingerprints"
"""Array of the fingerprints of the training samples; optional."""

_SHAPE = {"n_samples", "n_features", "n_outputs", "is_classifier"}
_KEYS = {"estimator", "parameters", "not_saved", "n_features", "shape", "progress", "targets"}

MAX_PARAMETER = 2**18
"""Longest JSON text of `class_weight`: all parameters must fit into the header of the file."""


class UnsavedParameterWarning(UserWarning):
    """A parameter cannot be written to a file, and training on needs it."""


class MissingStrategyWarning(UserWarning):
    """A loaded model was trained by a strategy that is not known here."""


def to_state(estimator: BaseSparseMLP) -> Parts:
    """Return a fitted estimator as JSON values, arrays by name, and networks.

    Functions, objects of the user's own classes and a very long `class_weight` cannot be written
    to a file; a warning names the parameters that have them, if training on needs these.

    Examples
    --------
    >>> model = SparseMLPRegressor((4,), max_iter=3, random_state=0)
    >>> _ = model.fit([[0.0, 1.0], [1.0, 0.0]], [0.0, 1.0])
    >>> again = from_state(*to_state(model))
    >>> bool(np.all(again.predict([[0.5, 0.5]]) == model.predict([[0.5, 0.5]])))
    True
    """
    parameters, not_saved = {}, []
    for name, value in estimator.get_params(deep=False).items():
        try:
            kept = to_plain(value)
            if name == "class_weight" and len(canonical(kept)) > MAX_PARAMETER:
                raise NotPlain
            parameters[name] = kept
        except NotPlain:
            if name not in NOT_KEPT:
                not_saved.append(name)
    _check(estimator, parameters)
    estimator._loss()
    _warn_of_unknown_class(parameters.get("evolution"))
    if not_saved:
        warnings.warn(
            f"{not_saved} cannot be written to a file. The network is saved and predicts the"
            f" same; to train it on, set them again.",
            UnsavedParameterWarning,
            stacklevel=2,
        )
    targets, arrays = estimator._target_state()
    progress, of_training, networks = state_to_parts(estimator._state)
    arrays.update(of_training)
    if hasattr(estimator, "feature_names_in_"):
        arrays["feature_names"] = text_array([str(name) for name in estimator.feature_names_in_])
    if hasattr(estimator, "group_names_"):
        arrays["group_names"] = estimator.group_names_
    ranking, of_features = estimator._association_state()
    arrays.update(of_features)
    trained_rows = estimator.__dict__.get("_trained_rows")
    if trained_rows is not None:
        arrays[FINGERPRINTS] = trained_rows.fingerprints
    config = {
        "estimator": type(estimator).__name__,
        "parameters": parameters,
        "settings": settings_to_plain(estimator.settings_),
        "ranking": ranking,
        "not_saved": not_saved,
        "n_features": int(estimator.n_features_in_),
        "shape": {name: getattr(estimator._shape, name) for name in sorted(_SHAPE)},
        "progress": progress,
        "targets": targets,
        **_prepared_parts(estimator, arrays),
    }
    return config, arrays, networks


def from_state(
    config: dict[str, Any], arrays: dict[str, Array], networks: list[SparseMLP]
) -> BaseSparseMLP:
    """Return the estimator that `to_state` was given, to predict with and to train on.

    Raises
    ------
    FormatError
        If the parts do not make an estimator.
    """
    try:
        return _build(config, dict(arrays), networks)
    except FormatError:
        raise
    except Violation as violation:
        raise FormatError(str(violation)) from None
    except (RatoonError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise FormatError(f"not the state of an estimator: {error!r}") from None


def _build(
    config: dict[str, Any], arrays: dict[str, Array], networks: list[SparseMLP]
) -> BaseSparseMLP:
    config = dict(config)
    stored_settings = config.pop("settings", None)  # files of earlier versions have none
    preparation = config.pop("preparation", None)
    naming = config.pop("naming", None)
    ranking = config.pop("ranking", None)
    fields = Fields(config, "content", _KEYS)
    kind = ESTIMATORS.get(config["estimator"])
    if kind is None:
        raise FormatError(f"unknown estimator {config['estimator']!r}")
    estimator = kind()
    parameters = {name: from_plain(value) for name, value in config["parameters"].items()}
    if isinstance(parameters.get("evolution"), str):
        parameters["evolution"] = named_strategy(parameters["evolution"])
    if unknown := set(parameters) - set(estimator.get_params(deep=False)):
        raise FormatError(f"{config['estimator']} has no parameters {sorted(unknown)}")
    estimator.set_params(**parameters)
    shape = _shape_from(config["shape"])
    _check(estimator, parameters)
    if stored_settings is None:
        upgrade_parameters(estimator, shape)
    if stored_settings is None or "averages" not in stored_settings:
        upgrade_defaults(estimator)
    missing = parameters.get("evolution")
    if isinstance(missing, MissingStrategy):
        warnings.warn(missing.message, MissingStrategyWarning, stacklevel=4)
    if config["not_saved"]:
        warnings.warn(
            f"{config['not_saved']} could not be saved with this estimator and have their default"
            f" values. It predicts the same; set them again before training it on.",
            UnsavedParameterWarning,
            stacklevel=4,
        )
    estimator.n_features_in_ = fields.integer("n_features", 1, MAX_WIDTH)
    if "feature_names" in arrays:
        names = np.asarray(arrays.pop("feature_names"), dtype=object)
        if names.shape != (estimator.n_features_in_,):
            raise FormatError(f"{names.size} names for {estimator.n_features_in_} features")
        estimator.feature_names_in_ = names
    if preparation is not None:
        n_features = estimator.n_features_in_
        estimator.preparation_ = Preparation.from_parts(preparation, arrays, n_features)
    else:
        estimator.preparation_ = None
    estimator.naming_ = _naming_from(naming, arrays, estimator.n_features_in_)
    if FINGERPRINTS in arrays:
        estimator._trained_rows = RowSet(_checked_fingerprints(arrays.pop(FINGERPRINTS)))
    if "group_names" in arrays:
        estimator.group_names_ = np.asarray(arrays.pop("group_names"), dtype=object)
    estimator._restore_targets(config["targets"], arrays)
    estimator._loss()
    estimator._shape = shape
    state = state_from_parts(config["progress"], arrays, networks)
    of_features = {name: arrays.pop(name) for name in list(arrays) if name.startswith("ranking/")}
    if arrays:
        raise FormatError(f"unknown arrays {sorted(arrays)}")
    expected = (estimator.n_features_in_, estimator._n_outputs())
    for network in networks:
        if (network.widths[0], network.widths[-1]) != expected:
            raise FormatError(
                f"a network from {network.widths[0]} to {network.widths[-1]} for an estimator of"
                f" {expected[0]} features and {expected[1]} outputs"
            )
        if network.layers[-1].activation != "identity" or network.layers[-1].dropout:
            raise FormatError("the last layer of a network must be linear and without dropout")
    groups = getattr(estimator, "group_names_", None)
    if groups is not None and (groups.ndim != 1 or groups.size > networks[0].widths[1]):
        raise FormatError(f"names of groups do not fit {networks[0].widths[1]} neurons")
    estimator._publish(state)
    estimator._restore_associations(ranking, of_features)
    if of_features:
        raise FormatError(f"unknown arrays {sorted(of_features)}")
    if stored_settings is None:
        settings = settings_of_old_file(estimator, shape, estimator.network_, estimator.n_iter_)
    else:
        settings = settings_from_plain(stored_settings, resolve(estimator, shape, refuses=False))
        if len(settings.given_topology) != len(state.network.layers):
            raise FormatError("settings: `given_topology` must have one entry per layer")
    estimator.settings_ = settings
    if any(layer.allowed is not None for layer in state.network.layers):
        # A fit from the beginning must respect the limits, too.
        limits = [limit_of(layer) for layer in state.network.layers]
        if groups is not None and limits[0] is not None:
            limits[0] = replace(limits[0], names=tuple(map(str, groups)))
        estimator.topology = limits
    return estimator


def _checked_fingerprints(stored: Array) -> Array:
    """Return the fingerprints in a file if they are a sorted set."""
    if stored.ndim != 1 or stored.dtype != np.uint64 or not bool((stored[1:] > stored[:-1]).all()):
        raise FormatError(f"{FINGERPRINTS} must be increasing numbers of 64 bits")
    return stored


def _prepared_parts(estimator: BaseSparseMLP, arrays: dict[str, Array]) -> dict[str, Any]:
    """Return the preparation and the naming as JSON values; their arrays are added."""
    found: dict[str, Any] = {}
    preparation: Preparation | None = estimator.preparation_
    if preparation is not None:
        found["preparation"], of_preparation = preparation.to_parts()
        arrays.update(of_preparation)
    naming: Naming | None = getattr(estimator, "naming_", None)
    if naming is not None and naming.fill is not None:
        arrays[_FILL] = naming.fill
    if naming is not None and naming != Naming():
        found["naming"] = {
            "duplicates": naming.duplicates,
            "label": naming.label,
            "columns": list(naming.columns),
            "time": naming.time,
            "event": naming.event,
        }
        if naming.id_map:
            for name, texts in zip(_MAP, zip(*naming.id_map, strict=True), strict=True):
                arrays[name] = text_array([str(text) for text in texts])
    return found


_MAP = ("id_map_from", "id_map_to")
_FILL = "missing_fill"


def _naming_from(stored: Any, arrays: dict[str, Array], n_features: int) -> Naming | None:
    fill = arrays.pop(_FILL, None)
    if fill is not None:
        if fill.shape != (n_features,) or fill.dtype.kind != "f" or not np.isfinite(fill).all():
            raise FormatError(f"{_FILL} must hold one number per feature")
        return replace(_naming_from(stored, arrays, n_features) or Naming(), fill=fill)
    if stored is None:
        return None
    fields = Fields(stored, "naming", {"duplicates", "label", "columns", "time", "event"})
    how = fields.choice("duplicates", get_args(Duplicates))
    single = [fields[name] for name in ("label", "time", "event")]
    names = [*single, *fields.listing("columns", 0, 200)]
    if not all(isinstance(name, str) for name in names):
        raise FormatError("naming: names of columns must be text")
    columns = [arrays.pop(name) for name in _MAP if name in arrays]
    if columns and (len(columns) != 2 or columns[0].shape != columns[1].shape):
        raise FormatError("the ID map must have two columns of the same length")
    if any(column.ndim != 1 or column.dtype.kind not in "OU" for column in columns):
        raise FormatError("the ID map must be of text")
    pairs = tuple(zip(*(map(str, column) for column in columns), strict=True))
    return Naming(how, pairs, names[0], tuple(names[3:]), names[1], names[2])


def _warn_of_unknown_class(stored: Any) -> None:
    """Warn if a strategy object is written that `load` could not make again."""
    if not isinstance(stored, dict) or "strategy" not in stored:
        return
    made = from_plain(stored)
    if isinstance(made, MissingStrategy):
        warnings.warn(
            f"the strategy {made.name!r} {made.reason}. The network is saved and predicts the same;"
            f" to continue training after `load`, set `evolution` again.",
            UnsavedParameterWarning,
            stacklevel=3,
        )


def _shape_from(stored: Any) -> Shape:
    fields = Fields(stored, "shape", _SHAPE)
    return Shape(
        fields.integer("n_samples", 1, EXACT_INTEGER),
        fields.integer("n_features", 1, MAX_WIDTH),
        fields.integer("n_outputs", 1, MAX_WIDTH),
        fields.flag("is_classifier"),
    )


def limit_of(layer: SparseLayer) -> Within | None:
    """Return the limit of a layer, with the fraction of it that is in use."""
    if layer.allowed is None:
        return None
    return Within(layer.allowed, max(layer.n_connections, 1) / layer.allowed.n_connections)


def _check(estimator: BaseSparseMLP, kept: dict[str, Any]) -> None:
    """Raise if a parameter has an impossible value."""
    estimator._checked_parameters()
    if "random_state" in kept:  # a JSON value, from which nothing is drawn
        draw_root(estimator.random_state)

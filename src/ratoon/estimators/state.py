"""A fitted estimator as plain values, arrays and networks, and back: what a file holds of it."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.errors import FormatError, RatoonError
from ratoon.estimators.base import BaseSparseMLP
from ratoon.estimators.classifier import SparseMLPClassifier
from ratoon.estimators.fitting import Progress
from ratoon.estimators.plain import NotPlain, from_plain, to_plain
from ratoon.estimators.presets import Shape
from ratoon.estimators.regressor import SparseMLPRegressor
from ratoon.network import SparseMLP
from ratoon.storage.histories import history_from_arrays, history_to_arrays
from ratoon.training import EarlyStopping

Array = NDArray[Any]
State = tuple[dict[str, Any], dict[str, Array], list[SparseMLP]]

ESTIMATORS: dict[str, type[BaseSparseMLP]] = {
    "SparseMLPClassifier": SparseMLPClassifier,
    "SparseMLPRegressor": SparseMLPRegressor,
}

NOT_KEPT = ("callbacks", "topology", "random_state")
"""Parameters that a fitted network no longer needs; kept only if they are plain values."""

_EVOLUTION = "evolution/"
_KEYS = {"estimator", "parameters", "not_saved", "n_features", "shape", "progress", "targets"}


class UnsavedParameterWarning(UserWarning):
    """A parameter cannot be written to a file, and training on needs it."""


def to_state(estimator: BaseSparseMLP) -> State:
    """Return all of a fitted estimator: plain JSON values, arrays by name, networks.

    Parameters that are functions or objects of the user's own cannot be written down; a warning
    names them if training on would need them.

    Examples
    --------
    >>> model = SparseMLPRegressor((4,), max_iter=3, random_state=0)
    >>> _ = model.fit([[0.0, 1.0], [1.0, 0.0]], [0.0, 1.0])
    >>> again = from_state(*to_state(model))
    >>> bool(np.all(again.predict([[0.5, 0.5]]) == model.predict([[0.5, 0.5]])))
    True
    """
    progress = estimator._progress
    parameters, not_saved = {}, []
    for name, value in estimator.get_params(deep=False).items():
        try:
            parameters[name] = to_plain(value)
        except NotPlain:
            if name not in NOT_KEPT:
                not_saved.append(name)
    if not_saved:
        warnings.warn(
            f"{not_saved} cannot be written to a file. The network is saved and predicts the"
            f" same; to train it on, set them again.",
            UnsavedParameterWarning,
            stacklevel=2,
        )
    targets, arrays = estimator._target_state()
    arrays.update(history_to_arrays(progress.history))
    for name, values in (progress.evolution_state or {}).items():
        arrays[_EVOLUTION + name] = values
    if hasattr(estimator, "feature_names_in_"):
        arrays["feature_names"] = np.array([str(name) for name in estimator.feature_names_in_])
    config = {
        "estimator": type(estimator).__name__,
        "parameters": parameters,
        "not_saved": not_saved,
        "n_features": int(estimator.n_features_in_),
        "shape": asdict(progress.shape),
        "progress": {
            "seed": str(progress.seed),
            "cycle": progress.cycle,
            "epochs_done": progress.epochs_done,
            "rewired": list(progress.rewired),
            "evolving": progress.evolution_state is not None,
            "stopping": _stopping_to_plain(progress.stopping),
        },
        "targets": targets,
    }
    networks = [progress.latest]
    if progress.best is not progress.latest:
        networks.append(progress.best)
    return config, arrays, networks


def from_state(
    config: dict[str, Any], arrays: dict[str, Array], networks: list[SparseMLP]
) -> BaseSparseMLP:
    """Return the estimator that `to_state` was given, able to predict and to train on.

    Raises
    ------
    FormatError
        If the parts do not make an estimator.
    """
    try:
        return _build(config, dict(arrays), networks)
    except FormatError:
        raise
    except (RatoonError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise FormatError(f"not the state of an estimator: {error!r}") from None


def _build(
    config: dict[str, Any], arrays: dict[str, Array], networks: list[SparseMLP]
) -> BaseSparseMLP:
    if set(config) != _KEYS:
        raise FormatError(f"the state must have the parts {sorted(_KEYS)}, got {sorted(config)}")
    kind = ESTIMATORS.get(config["estimator"])
    if kind is None:
        raise FormatError(f"unknown estimator {config['estimator']!r}")
    estimator = kind()
    parameters = {name: from_plain(value) for name, value in config["parameters"].items()}
    if unknown := set(parameters) - set(estimator.get_params(deep=False)):
        raise FormatError(f"{config['estimator']} has no parameters {sorted(unknown)}")
    estimator.set_params(**parameters)
    estimator._checked_parameters()
    if config["not_saved"]:
        warnings.warn(
            f"{config['not_saved']} could not be saved with this estimator and have their default"
            f" values. It predicts the same; set them again before you train it on.",
            UnsavedParameterWarning,
            stacklevel=4,
        )
    estimator.n_features_in_ = int(config["n_features"])
    if "feature_names" in arrays:
        names = np.asarray(arrays.pop("feature_names"), dtype=object)
        if names.shape != (estimator.n_features_in_,):
            raise FormatError(f"{names.size} names for {estimator.n_features_in_} features")
        estimator.feature_names_in_ = names
    history = history_from_arrays(arrays)
    estimator._restore_targets(config["targets"], arrays)
    progress = _progress_from_plain(config, networks)
    progress.history = history
    if config["progress"]["evolving"]:
        named = [name for name in arrays if name.startswith(_EVOLUTION)]
        state = {name.removeprefix(_EVOLUTION): arrays.pop(name) for name in named}
        progress.evolution_state = state
    if arrays:
        raise FormatError(f"unknown arrays {sorted(arrays)}")
    expected = (estimator.n_features_in_, estimator._n_outputs())
    for network in networks:
        if (network.widths[0], network.widths[-1]) != expected:
            raise FormatError(
                f"a network from {network.widths[0]} to {network.widths[-1]} for an estimator of"
                f" {expected[0]} features and {expected[1]} outputs"
            )
    estimator._progress = progress
    estimator._publish()
    return estimator


def _progress_from_plain(config: dict[str, Any], networks: list[SparseMLP]) -> Progress:
    stored = config["progress"]
    if len(networks) not in (1, 2):
        raise FormatError(f"one or two networks make an estimator, got {len(networks)}")
    shape = Shape(**config["shape"])
    if min(shape.n_samples, shape.n_features, shape.n_outputs) < 1:
        raise FormatError(f"impossible shape {shape}")
    rewired = [int(count) for count in stored["rewired"]]
    if len(rewired) != len(networks[0].layers):
        raise FormatError(f"{len(rewired)} counts for {len(networks[0].layers)} layers")
    stopping = _stopping_from_plain(stored["stopping"])
    if len(networks) == 2:
        if stopping is None or stopping.best_epoch < 0:
            raise FormatError("a best network without early stopping")
        stopping.best_network = networks[1]
    elif stopping is not None and stopping.restore_best and stopping.best_epoch >= 0:
        raise FormatError("early stopping without its best network")
    seed, cycle, done = int(stored["seed"]), int(stored["cycle"]), int(stored["epochs_done"])
    if min(seed, cycle, done) < 0:
        raise FormatError("seed, cycle and epochs must not be negative")
    return Progress(seed, shape, networks[0], cycle, done, stopping, rewired=rewired)


def _stopping_to_plain(stopping: EarlyStopping | None) -> dict[str, Any] | None:
    if stopping is None:
        return None
    seen = stopping.best_epoch >= 0
    return {
        "patience": int(stopping.patience),
        "tol": float(stopping.tol),
        "restore_best": bool(stopping.restore_best),
        "best_score": float(stopping.best_score) if seen else None,
        "best_epoch": int(stopping.best_epoch),
        "n_waited": int(stopping.n_waited),
    }


def _stopping_from_plain(stored: dict[str, Any] | None) -> EarlyStopping | None:
    if stored is None:
        return None
    score = stored["best_score"]
    return EarlyStopping(**{**stored, "best_score": -float("inf") if score is None else score})

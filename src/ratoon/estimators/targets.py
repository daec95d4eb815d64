"""Targets: from labels and numbers to the outputs of a network, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError, InvalidParameterError, near
from ratoon.estimators.data import Labelled
from ratoon.storage.document import check_storable
from ratoon.training import TrainingData


class TargetKind(ABC):
    """From ``y`` to outputs of the network, scores, and what a file stores of it."""

    _is_classifier: bool
    _can_average = True
    """Whether `fit` may average several networks."""

    @abstractmethod
    def _check_target(self, y: Any) -> Array:
        """Return y as an array of the right dimension, or raise."""

    @abstractmethod
    def _learn_targets(self, labelled: Labelled, classes: Any) -> None:
        """Learn from y: classes, or mean and standard deviation."""

    @abstractmethod
    def _compare_targets(self, labelled: Labelled, classes: Any) -> None:
        """Raise if the targets are not of the kind the first call had."""

    @abstractmethod
    def _n_outputs(self) -> int:
        """Return the number of outputs of the network."""

    @abstractmethod
    def _loss(self) -> str:
        """Return the loss of the network."""

    @abstractmethod
    def _encode(self, y: Array, smoothing: float, where: str) -> Array:
        """Return the targets of samples, (samples, outputs)."""

    @abstractmethod
    def _weigh(self, labelled: Labelled) -> Array | None:
        """Return the weight of every sample in training."""

    @abstractmethod
    def _strata(self, y: Array) -> Array | None:
        """Return the class of every sample, for a stratified validation split."""

    @abstractmethod
    def _score(self, outputs: Array, data: TrainingData) -> float:
        """Score raw outputs on validation data; higher is better."""

    @abstractmethod
    def _target_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what was learnt from the targets, as JSON values and arrays."""

    @abstractmethod
    def _restore_targets(self, targets: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Restore what `_target_state` returned, out of ``arrays``, or raise."""


def encode_labels(codes: NDArray[np.intp], n_classes: int, *, loss: str, smoothing: float) -> Array:
    """Return one row per sample: 1 for its class and 0 elsewhere; +1 and -1 for a squared loss.

    Examples
    --------
    >>> encode_labels(np.array([0, 2]), 3, loss="softmax_cross_entropy", smoothing=0.0)
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    targets = np.zeros((codes.size, n_classes))
    targets[np.arange(codes.size), codes] = 1.0
    return smoothed(targets, n_classes, loss=loss, smoothing=smoothing)


def smoothed(targets: Array, n_choices: int, *, loss: str, smoothing: float) -> Array:
    """Smooth zeros and ones towards 1 / ``n_choices``; return -1 to +1 for a squared loss."""
    soft = targets * (1.0 - smoothing) + smoothing / n_choices
    return 2.0 * soft - 1.0 if loss == "squared_error" else soft


def class_probabilities(loss: str, outputs: Array) -> Array:
    """Return probabilities of mutually exclusive classes; rows sum to 1.

    A squared loss learns ``2 p - 1``, so its outputs are read that way, and cut off at 0 and 1.

    Examples
    --------
    >>> class_probabilities("squared_error", np.array([[0.5, -0.5], [2.0, -3.0]]))
    array([[0.75, 0.25],
           [1.  , 0.  ]])
    """
    z = np.asarray(outputs, dtype=np.float64)
    if loss == "softmax_cross_entropy":
        return np.asarray(softmax(z, axis=1))
    separate = label_probabilities(loss, z)
    totals = separate.sum(axis=1, keepdims=True)
    separate[totals[:, 0] == 0], totals[totals == 0] = 1.0, z.shape[1]
    return np.asarray(separate / totals)


def log_class_probabilities(loss: str, outputs: Array) -> Array:
    """Return logarithms of `class_probabilities`, exact also where those are nearly 0."""
    if loss == "softmax_cross_entropy":
        return np.asarray(log_softmax(np.asarray(outputs, dtype=np.float64), axis=1))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(class_probabilities(loss, outputs)))


def label_probabilities(loss: str, outputs: Array) -> Array:
    """Return the probability of every label, independently of the others."""
    z = np.asarray(outputs, dtype=np.float64)
    if loss == "squared_error":
        return np.clip(0.5 * (1.0 + z), 0.0, 1.0)
    return np.asarray(expit(z))


def balanced_weights(codes: NDArray[np.intp], n_classes: int, weights: Array | None) -> Array:
    """Return per class the weight that makes all classes count the same.

    Examples
    --------
    >>> balanced_weights(np.array([0, 0, 0, 1]), 2, None)
    array([0.66666667, 2.        ])
    """
    counts = np.bincount(codes, weights, minlength=n_classes).astype(np.float64)
    present = counts > 0
    per_class = np.zeros(n_classes)
    per_class[present] = counts.sum() / (present.sum() * counts[present])
    return per_class


def class_weights(
    class_weight: Any, classes: Array, codes: NDArray[np.intp], weights: Array | None
) -> Array | None:
    """Return the weight of every sample, its class considered; None where all count the same."""
    if class_weight is None:
        return weights
    if isinstance(class_weight, str) and class_weight == "balanced":
        per_class = balanced_weights(codes, classes.size, weights)
    elif isinstance(class_weight, dict):
        known = classes.tolist()
        if unknown := [label for label in class_weight if label not in known]:
            raise InvalidParameterError(
                f"`class_weight` names classes that y does not have: {unknown}.\n"
                f"  The classes are {known[:20]}.{near(unknown[0], known)}"
            )
        try:
            per_class = np.array([float(class_weight.get(label, 1.0)) for label in known])
        except (TypeError, ValueError, OverflowError):
            per_class = np.array([np.nan])
        if not (np.isfinite(per_class).all() and (per_class >= 0).all()):
            raise InvalidParameterError(
                f"`class_weight` must hold finite numbers, none negative, got {class_weight!r}."
            )
        if np.count_nonzero(per_class) < 2:
            raise InvalidParameterError(
                f"`class_weight` must be positive for at least two classes, got {class_weight!r};"
                " samples of weight 0 do not count.\n"
                "  Leave out the samples of a class that must not count."
            )
    else:
        raise InvalidParameterError(
            f'`class_weight` must be None, "balanced" or a dictionary from classes to weights, got'
            f" {class_weight!r}."
        )
    of_samples = per_class[codes]
    return of_samples if weights is None else of_samples * weights


def checked_classes(labels: Any) -> Array:
    r"""Return the sorted classes; raise unless a file can hold them.

    Examples
    --------
    >>> checked_classes(["well", "ill", "well"]).tolist()
    ['ill', 'well']
    """
    if isinstance(labels, list | tuple):
        refuse_padding(labels)  # before NumPy drops it
    array = np.asarray(labels)
    if array.ndim != 1:
        raise InvalidInputError(f"`classes` must be one-dimensional, got shape {array.shape}.")
    try:
        classes: Array = np.unique(array)
    except TypeError:
        raise InvalidInputError(
            "the classes are of several types, which have no order; make all of them text or all"
            " of them numbers."
        ) from None
    check_storable(classes, "class names")
    if classes.dtype.kind == "f" and not np.isfinite(classes).all():
        raise InvalidInputError(f"the classes must be finite, got {classes.tolist()[:20]}.")
    if classes.dtype.kind == "O":
        refuse_padding(classes)
    return classes


def refuse_padding(labels: Any) -> None:
    r"""Raise for text that ends in NUL: NumPy drops it, so two classes could become one.

    Examples
    --------
    >>> refuse_padding(["ill", "ill\0"])
    Traceback (most recent call last):
    ...
    ratoon.errors.InvalidInputError: the class name 'ill\x00' ends in a NUL character, which NumPy
    drops from text.
      Remove it, for example with name.rstrip("\0").
    """
    for label in labels:
        if isinstance(label, str) and label.endswith("\0"):
            raise InvalidInputError(
                f"the class name {label[-40:]!r} ends in a NUL character, which NumPy drops from"
                ' text.\n  Remove it, for example with name.rstrip("\\0").'
            )


def codes_of(y: Array, classes: Array, *, where: str) -> NDArray[np.intp]:
    """Return the index of every label among the sorted classes.

    Examples
    --------
    >>> codes_of(np.array(["b", "x"]), np.array(["a", "b"]), where="y")
    Traceback (most recent call last):
    ...
    ratoon.errors.InvalidInputError: y has labels that are not among the classes: ['x'].
      The classes are ['a', 'b'].
    """
    codes = np.searchsorted(classes, y)
    codes[codes == classes.size] = 0
    if (wrong := classes[codes] != y).any():
        raise InvalidInputError(
            f"{where} has labels that are not among the classes:"
            f" {np.unique(y[wrong]).tolist()[:5]}.\n"
            f"  The classes are {classes.tolist()[:20]}."
        )
    return codes

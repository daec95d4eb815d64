"""Predictions of samples with known targets, made once or in several repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class Predictions:
    """What was predicted for samples, and what is true.

    Parameters
    ----------
    truth : ndarray of shape (n_samples,)
        Class codes, numbers, or times until an event or censoring.
    predicted : ndarray of shape (n_repeats, n_samples)
        The same, or log risks; repeated cross-validation predicts every sample several times.
    probabilities : ndarray of shape (n_repeats, n_samples, n_classes), optional
        For classes.
    classes : tuple of str
        Names of the classes; empty for numbers.
    events : ndarray of bool, optional
        For survival: whether the event was observed.
    parts : ndarray of shape (n_repeats, n_samples), optional
        For survival: number of the fold of every sample.  Only risks of one fold are compared.

    Examples
    --------
    >>> found = Predictions.of_classes([0, 1], [[0.9, 0.1], [0.6, 0.4]], ("ill", "well"))
    >>> found.n_samples, found.predicted.tolist()
    (2, [[0, 0]])
    """

    truth: Array
    predicted: Array
    probabilities: Array | None = None
    classes: tuple[str, ...] = ()
    events: NDArray[np.bool_] | None = None
    parts: Array | None = None

    @classmethod
    def of_classes(
        cls,
        truth: ArrayLike,
        probabilities: ArrayLike,
        classes: Sequence[Any],
        predicted: ArrayLike | None = None,
    ) -> Predictions:
        """Build from class codes and probabilities; without ``predicted`` the most likely class."""
        codes = np.asarray(truth, dtype=np.int64)
        p = np.asarray(probabilities, dtype=np.float64)
        p = p[None] if p.ndim == 2 else p
        names = tuple(str(name) for name in classes)
        if p.ndim != 3 or p.shape[1:] != (codes.size, len(names)):
            raise InvalidInputError(
                f"probabilities must have one row per sample and one column per class,"
                f" ({codes.size}, {len(names)}), got {p.shape[-2:]}."
            )
        if codes.size and not 0 <= codes.min() <= codes.max() < len(names):
            raise InvalidInputError(f"class codes must be from 0 to {len(names) - 1}.")
        guess = p.argmax(axis=2) if predicted is None else np.atleast_2d(np.asarray(predicted))
        return cls(codes, guess, p, names)

    @classmethod
    def of_numbers(cls, truth: ArrayLike, predicted: ArrayLike) -> Predictions:
        """Build from numbers; ``predicted`` may have one row per repeat."""
        true = np.asarray(truth, dtype=np.float64)
        guess = np.atleast_2d(np.asarray(predicted, dtype=np.float64))
        if true.ndim != 1 or guess.shape[1:] != true.shape:
            raise InvalidInputError(
                f"true and predicted numbers must have the same length, got {true.shape} and"
                f" {guess.shape[1:]}."
            )
        return cls(true, guess)

    @classmethod
    def of_survival(
        cls, events: ArrayLike, times: ArrayLike, risks: ArrayLike, parts: Array | None = None
    ) -> Predictions:
        """Build from events, times and log risks; ``risks`` may have one row per repeat."""
        found = cls.of_numbers(times, risks)
        return cls(found.truth, found.predicted, events=np.asarray(events, dtype=bool), parts=parts)

    @property
    def is_of_survival(self) -> bool:
        """Whether risks are predicted."""
        return self.events is not None

    @property
    def is_of_classes(self) -> bool:
        """Whether classes are predicted, not numbers."""
        return bool(self.classes)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.truth.size)

    @property
    def n_repeats(self) -> int:
        """How often each sample was predicted."""
        return int(self.predicted.shape[0])

    def take(self, rows: Array) -> Predictions:
        """Return the predictions of some samples."""
        p = None if self.probabilities is None else self.probabilities[:, rows]
        events = None if self.events is None else self.events[rows]
        parts = None if self.parts is None else self.parts[:, rows]
        return Predictions(
            self.truth[rows], self.predicted[:, rows], p, self.classes, events, parts
        )

    def right(self) -> NDArray[np.bool_]:
        """Return whether each prediction of a class is right, (n_repeats, n_samples)."""
        return np.asarray(self.predicted == self.truth)

    def mean_probabilities(self) -> NDArray[np.float64]:
        """Return the probabilities averaged over the repeats, (n_samples, n_classes)."""
        assert self.probabilities is not None
        return np.asarray(self.probabilities.mean(axis=0))

    def consensus(self) -> Array:
        """Return one prediction per sample.

        With several repeats it is the class with the largest mean probability, or the mean number.
        """
        if self.n_repeats == 1:
            return np.asarray(self.predicted[0])
        if not self.is_of_classes:
            return np.asarray(self.predicted.mean(axis=0))
        return np.asarray(self.mean_probabilities().argmax(axis=1))

    def confusion(self) -> NDArray[np.float64]:
        """Return counts of predicted (rows) and true (columns) classes, averaged over repeats."""
        n = len(self.classes)
        pairs = self.predicted * n + self.truth
        counts = np.bincount(pairs.ravel().astype(np.int64), minlength=n * n)
        return np.asarray(counts.reshape(n, n) / self.n_repeats)

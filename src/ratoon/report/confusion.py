"""The confusion matrix: rows are predicted classes, columns true ones, with margins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ratoon.errors import InvalidInputError
from ratoon.report.style import GREEN, GREY, RED, literal, new_axes


@dataclass(eq=False)
class ConfusionMatrixDisplay:
    """Counts of predicted against true classes, as in the paper.

    Rows are the predicted classes and columns the true ones.  The column on the right has the
    precision of each class, the row at the bottom its recall, and the corner the accuracy; below
    each is the difference to 100 %.

    Parameters
    ----------
    matrix : ndarray of shape (n_classes, n_classes)
        ``matrix[i, j]`` samples of class j were predicted as class i.
    class_names : sequence of str
        Names of the classes.

    Examples
    --------
    >>> display = ConfusionMatrixDisplay.from_predictions(["a", "b", "b"], ["a", "b", "a"])
    >>> display.matrix
    array([[1, 1],
           [0, 1]])
    >>> display.recall.tolist(), display.precision.tolist()
    ([1.0, 0.5], [0.5, 1.0])
    """

    matrix: NDArray[np.int64]
    class_names: Sequence[str]
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_predicted: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
    ) -> ConfusionMatrixDisplay:
        """Count from true and predicted labels.

        Parameters
        ----------
        y_true, y_predicted : array-like of shape (n_samples,)
            Labels, or class codes if ``class_names`` is given.
        classes : array-like, optional
            All classes; by default those that occur.
        class_names : sequence of str, optional
            Names of the classes 0, 1, ...
        """
        true, predicted = np.asarray(y_true), np.asarray(y_predicted)
        if true.shape != predicted.shape or true.ndim != 1 or true.size == 0:
            raise InvalidInputError(
                f"true and predicted labels must be one-dimensional and of equal length, got shapes"
                f" {true.shape} and {predicted.shape}."
            )
        if class_names is not None:
            classes = np.arange(len(class_names))
        if classes is None:
            classes = sorted({*true.tolist(), *predicted.tolist()}, key=_sort_key)
        labels = np.asarray(classes, dtype=object)
        places = {label: place for place, label in enumerate(labels)}
        matrix = np.zeros((len(places), len(places)), dtype=np.int64)
        for row, column in zip(predicted.tolist(), true.tolist(), strict=True):
            if row not in places or column not in places:
                unknown = row if row not in places else column
                raise InvalidInputError(f"{unknown!r} is not one of the classes {list(places)}.")
            matrix[places[row], places[column]] += 1
        names = [str(label) for label in places] if class_names is None else list(class_names)
        return cls(matrix, names)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike) -> ConfusionMatrixDisplay:
        """Count the predictions of a fitted classifier."""
        return cls.from_predictions(y, estimator.predict(X), classes=estimator.classes_)

    @property
    def recall(self) -> NDArray[np.float64]:
        """Fraction of the samples of each class that are predicted correctly."""
        return _fraction(np.diag(self.matrix), self.matrix.sum(axis=0))

    @property
    def precision(self) -> NDArray[np.float64]:
        """Fraction of the samples predicted as each class that belong to it."""
        return _fraction(np.diag(self.matrix), self.matrix.sum(axis=1))

    @property
    def accuracy(self) -> float:
        """Fraction of all samples that are predicted correctly."""
        return float(np.trace(self.matrix) / max(self.matrix.sum(), 1))

    def plot(self, ax: Any | None = None) -> ConfusionMatrixDisplay:
        """Draw the matrix with its margins."""
        n = len(self.class_names)
        size = max(3.2, 1.2 + 0.55 * (n + 1))
        self.figure_, self.ax_ = new_axes(ax, figsize=(size, size))
        total = max(int(self.matrix.sum()), 1)
        small = 9 if n <= 8 else 6
        for i in range(n):
            for j in range(n):
                count = int(self.matrix[i, j])
                colour = GREEN if i == j else RED
                strength = 0.12 + 0.5 * count / max(int(self.matrix[:, j].sum()), 1)
                self._cell(i, j, colour if count else "none", strength if count else 0.0)
                text = f"{count}\n{100 * count / total:.1f}%" if n <= 8 else f"{count or ''}"
                self.ax_.text(j, i, text, ha="center", va="center", fontsize=small)
        for k in range(n):
            self._margin(k, n, self.precision[k], small)
            self._margin(n, k, self.recall[k], small)
        self._margin(n, n, self.accuracy, small, bold=True)
        self._label(n)
        return self

    def _cell(self, row: int, column: int, colour: str, alpha: float) -> None:
        from matplotlib.patches import Rectangle

        place = (column - 0.5, row - 0.5)
        self.ax_.add_patch(Rectangle(place, 1, 1, facecolor=colour, alpha=alpha, zorder=0))
        self.ax_.add_patch(Rectangle(place, 1, 1, fill=False, edgecolor="0.75", linewidth=0.8))

    def _margin(self, row: int, column: int, value: float, size: int, bold: bool = False) -> None:
        self._cell(row, column, GREY, 0.22 if bold else 0.12)
        weight = "bold" if bold else "normal"
        if np.isnan(value):
            self.ax_.text(column, row, "-", ha="center", va="center", fontsize=size)
            return
        self.ax_.text(
            column,
            row - 0.16,
            f"{100 * value:.1f}%",
            ha="center",
            va="center",
            fontsize=size,
            color="#00664a",
            weight=weight,
        )
        self.ax_.text(
            column,
            row + 0.2,
            f"{100 * (1 - value):.1f}%",
            ha="center",
            va="center",
            fontsize=size,
            color="#a63f00",
            weight=weight,
        )

    def _label(self, n: int) -> None:
        ax = self.ax_
        ax.set_xlim(-0.5, n + 0.5)
        ax.set_ylim(n + 0.5, -0.5)
        ax.set_aspect("equal")
        names = [*self.class_names, "precision"]
        # About seven letters fit into a cell.
        rotated = max(len(name) for name in names) > (9 if n <= 2 else 7)
        how = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if rotated else {}
        ax.set_xticks(range(n + 1), [literal(name) for name in names], **how)
        ax.set_yticks(range(n + 1), [*map(literal, self.class_names), "recall"])
        ax.tick_params(length=0)
        ax.set_xlabel("true class")
        ax.set_ylabel("predicted class")
        for spine in ax.spines.values():
            spine.set_visible(False)


def _sort_key(label: Any) -> tuple[bool, Any]:
    """Sort numbers before text, so that labels may mix both."""
    return isinstance(label, str), label


def _fraction(part: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    """Divide, with NaN where the divisor is 0."""
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0))

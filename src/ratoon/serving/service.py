"""What the service computes, without HTTP: checked rows in, plain values out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError, InvalidParameterError, RatoonError


class RequestRefused(RatoonError, ValueError):
    """A request that cannot be answered; ``status`` is its HTTP status."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class Limits:
    """Limits of requests.

    Parameters
    ----------
    body_bytes : int, default=10 MiB
        Most bytes of a request.
    rows : int, default=10,000
        Most samples of a request.
    seconds : float, default=10
        Most time to receive a request, and to wait for and compute its predictions.
    concurrency : int, default=4
        Predictions computed at the same time; others wait.
    """

    body_bytes: int = 10 * 2**20
    rows: int = 10_000
    seconds: float = 10.0
    concurrency: int = 4

    def __post_init__(self) -> None:
        for name in ("body_bytes", "rows", "seconds", "concurrency"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise InvalidParameterError(f"Limits: `{name}` must be above 0, got {value!r}.")


class ModelService:
    """Predictions of one estimator for rows as JSON has them.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    limits : Limits
        Only ``rows`` is used here.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> model = SparseMLPClassifier(random_state=0).fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
    >>> ModelService(model).predict(rows=[[0.1, 0.9]])
    {'predictions': ['a']}
    """

    def __init__(self, estimator: Any, limits: Limits | None = None) -> None:
        if estimator.preparation_ is not None and estimator.preparation_.centres:
            raise InvalidInputError(
                "this model centres groups of samples, and the rows of a request have no groups.\n"
                "  Train without --center-groups (`center_groups`) to serve it."
            )
        self.estimator = estimator
        self.limits = limits or Limits()
        names = getattr(estimator, "feature_names_in_", None)
        self.names: tuple[str, ...] | None = None if names is None else tuple(map(str, names))

    def describe(self) -> dict[str, Any]:
        """Return facts about the model."""
        estimator = self.estimator
        classes = getattr(estimator, "classes_", None)
        return {
            "estimator": type(estimator).__name__,
            "n_features": int(estimator.n_features_in_),
            "feature_names": None if self.names is None else list(self.names),
            "classes": None if classes is None else _plain(classes),
            "n_outputs": int(estimator.network_.widths[-1]),
            "connections": int(estimator.network_.n_connections),
            "max_rows": self.limits.rows,
        }

    def predict(
        self,
        rows: Sequence[Sequence[float]] | None = None,
        records: Sequence[Mapping[str, float]] | None = None,
        *,
        probabilities: bool = False,
    ) -> dict[str, Any]:
        """Return predictions for rows of numbers, or for records by feature name.

        Raises
        ------
        RequestRefused
            If the samples do not fit the model.
        """
        if (rows is None) == (records is None):
            raise RequestRefused(422, "rows", "give either `rows` or `records`.")
        if probabilities and not hasattr(self.estimator, "predict_proba"):
            raise RequestRefused(422, "probabilities", "this model is a regressor.")
        x = self._from_rows(rows) if rows is not None else self._from_records(records or [])
        x = x if self.names is None else self._named(x)
        try:
            found = {"predictions": _plain(self.estimator.predict(x))}
            if probabilities:
                found["probabilities"] = _plain(self.estimator.predict_proba(x))
                found["classes"] = _plain(self.estimator.classes_)
        except ValueError as error:
            raise RequestRefused(422, "values", str(error)) from None
        return found

    def _from_rows(self, rows: Sequence[Sequence[float]]) -> Array:
        self._check_count(len(rows))
        n_features = int(self.estimator.n_features_in_)
        for number, row in enumerate(rows):
            if len(row) != n_features:
                raise RequestRefused(
                    422,
                    "features",
                    f"row {number} has {len(row)} values; the model has {n_features} features.",
                )
        return np.asarray(rows, dtype=np.float64)

    def _from_records(self, records: Sequence[Mapping[str, float]]) -> Array:
        self._check_count(len(records))
        if self.names is None:
            raise RequestRefused(
                422, "records", "the model was trained without feature names; send `rows`."
            )
        known = set(self.names)
        for number, record in enumerate(records):
            for what, differing in (
                ("lacks", known - record.keys()),
                ("has unknown", record.keys() - known),
            ):
                if differing:
                    raise RequestRefused(
                        422,
                        "features",
                        f"record {number} {what} {len(differing)} of the features, such as"
                        f" {min(differing)[:100]!r}.",
                    )
        return np.array([[record[name] for name in self.names] for record in records])

    def _check_count(self, count: int) -> None:
        if count == 0:
            raise RequestRefused(422, "rows", "there are no samples.")
        if count > self.limits.rows:
            raise RequestRefused(
                413, "rows", f"{count:,} samples are more than the limit of {self.limits.rows:,}."
            )

    def _named(self, x: Array) -> Any:
        """Return samples with the names of training, which estimators compare."""
        from ratoon.datasets import Dataset

        return Dataset(x, feature_names=self.names)


def _plain(values: Any) -> list[Any]:
    found: list[Any] = np.asarray(values).tolist()
    return found

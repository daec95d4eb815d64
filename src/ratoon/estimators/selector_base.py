"""What both selectors share: from several strengths per feature to a choice of features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError
from ratoon.estimators.inspection import relative_strength
from ratoon.estimators.selector_stability import (
    selection_frequency,
    stability_index,
    top_features,
)


class StrengthSelector(SelectorMixin, BaseEstimator):
    """Choose the features with the largest mean strength over several networks."""

    n_features_to_select: Any
    n_repeats: Any

    def _take_strengths(self, strengths: Array) -> None:
        """Set the fitted attributes from one row of strengths per network."""
        scaled = np.stack([relative_strength(row) for row in strengths])
        k = self._n_chosen(scaled.shape[1])
        self.strengths_ = scaled
        self.strength_ = scaled.mean(axis=0)
        self.strength_spread_ = scaled.std(axis=0)
        self.ranking_ = np.empty(scaled.shape[1], dtype=np.int64)
        order = top_features(self.strength_, scaled.shape[1])
        self.ranking_[order] = np.arange(1, order.size + 1)
        self.selection_frequency_ = selection_frequency(scaled, k)
        self.stability_ = stability_index(scaled, k)
        self.n_features_ = k
        self.support_ = self.ranking_ <= k

    def _n_chosen(self, n_features: int) -> int:
        """Return how many features to keep: a number, or a fraction of all."""
        wanted = self.n_features_to_select
        is_number = isinstance(wanted, int | float | np.number) and not isinstance(wanted, bool)
        if is_number and float(wanted).is_integer() and wanted >= 1:
            return min(int(wanted), n_features)
        if is_number and 0.0 < wanted < 1.0:
            return max(1, round(float(wanted) * n_features))
        raise InvalidParameterError(
            f"{type(self).__name__}: `n_features_to_select` must be a whole number of at least 1 or"
            f" a fraction in (0, 1), got {wanted!r}."
        )

    def _check_repeats(self) -> None:
        if not isinstance(self.n_repeats, int | np.integer) or self.n_repeats < 1:
            raise InvalidParameterError(
                f"{type(self).__name__}: `n_repeats` must be a whole number of at least 1, got"
                f" {self.n_repeats!r}."
            )

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return np.asarray(self.support_)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Mean strength of every feature, as a share of all."""
        check_is_fitted(self)
        return np.asarray(self.strength_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

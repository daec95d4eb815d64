"""SamplePreparer: the preparation of samples as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ratoon.errors import InvalidParameterError
from ratoon.preparation import as_prepare
from ratoon.samples.checked import checked_samples
from ratoon.samples.groups import group_codes
from ratoon.samples.prepared import learn_preparation, prepared


class SamplePreparer(TransformerMixin, BaseEstimator):
    """Take logarithms, normalise quantiles, centre groups: learned from the training rows.

    For pipelines of other estimators; those of ratoon have the parameter ``prepare``, which does
    the same and is kept in their files.

    Parameters
    ----------
    prepare : str or Prepare, default="log2=auto,quantile"
        What to do: see `ratoon.Prepare`.

    Attributes
    ----------
    preparation_ : Preparation
        What was learned.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[100.0, 900.0, 1.0], [300.0, 500.0, 3.0]])
    >>> SamplePreparer("log2,quantile").fit(X).transform(X[:, [1, 0, 2]]).round(1).tolist()
    [[9.4, 7.4, 1.5], [9.4, 7.4, 1.5]]
    """

    def __init__(self, prepare: Any = "log2=auto,quantile") -> None:
        self.prepare = prepare

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Learn from samples.

        Parameters
        ----------
        X : array, table, SciPy matrix, AnnData or Dataset
            Samples in rows.
        y : None
            Not used.
        groups : array-like of shape (n_samples,), optional
            Group of each sample, for ``"center_groups"``; by default those of a `Dataset`.

        Returns
        -------
        self
        """
        del y
        prepare = as_prepare(self.prepare)
        if prepare is None:
            raise InvalidParameterError(
                f"SamplePreparer: `prepare={self.prepare!r}` does nothing; leave it out."
            )
        x = checked_samples(self, X, reset=True)
        found = getattr(X, "groups", None) if groups is None else groups
        of = None if found is None else group_codes(found, x.n_rows)
        self.preparation_ = learn_preparation(x, prepare, groups=of)
        return self

    def transform(self, X: Any, groups: Any = None) -> Any:
        """Return prepared samples, as an array or a CSR array.

        Parameters
        ----------
        X, groups
            As in `fit`.
        """
        check_is_fitted(self)
        x = checked_samples(self, X, reset=False)
        found = getattr(X, "groups", None) if groups is None else groups
        names = None if found is None else [str(one) for one in np.asarray(found).tolist()]
        return prepared(x, self.preparation_, names).values()

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the features, which stay the same."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = input_features
        if names is None:
            names = [f"x{number}" for number in range(self.n_features_in_)]
        return np.asarray(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

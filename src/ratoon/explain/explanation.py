"""`Explanation`: the contributions of features to predictions, with names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.errors import InvalidParameterError, near


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a model predicts what it predicts: one contribution per sample and feature.

    The contributions of a sample and its base value sum up to the output that is explained.

    Parameters
    ----------
    values : ndarray or CSR array of shape (n_samples, n_features)
        Contributions; positive ones raise the output.
    base_values : ndarray of shape (n_samples,)
        Output for the baseline.
    outputs : ndarray of shape (n_samples,)
        Output for the sample: for a class, its margin over the mean of the other classes; for a
        number, the prediction.
    targets : tuple
        What is explained in each sample: a class, a label, or the index of an output.
    data : ndarray or CSR array of shape (n_samples, n_features)
        The values of the features.
    feature_names, sample_names : tuple of str, optional
        Names, if there are any.
    unit : str
        What an output is, in words.

    Examples
    --------
    >>> import numpy as np
    >>> found = Explanation(
    ...     np.array([[0.5, -2.0]]), np.array([1.0]), np.array([-0.5]), ("ill",),
    ...     np.array([[7.0, 3.0]]), ("TP53", "MDM2"))
    >>> found.top(1)
    [('MDM2', -2.0, 3.0)]
    >>> found
    Explanation(1 sample x 2 features)
    """

    values: Any
    base_values: NDArray[np.float64]
    outputs: NDArray[np.float64]
    targets: tuple[Any, ...]
    data: Any
    feature_names: tuple[str, ...] | None = None
    sample_names: tuple[str, ...] | None = None
    unit: str = field(default="output")

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.values.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.values.shape[1])

    def row(self, sample: Any = 0) -> int:
        """Return the index of a sample given by index or name.

        Raises
        ------
        InvalidParameterError
            If there is no such sample.
        """
        if isinstance(sample, str):
            names = self.sample_names or ()
            if sample not in names:
                shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
                known = f"The names are {shown}" if names else "The samples have no names"
                raise InvalidParameterError(
                    f"there is no sample {sample!r}.{near(sample, names)}\n  {known}."
                )
            return names.index(sample)
        is_number = isinstance(sample, int | np.integer) and not isinstance(sample, bool)
        if not is_number or not -self.n_samples <= sample < self.n_samples:
            raise InvalidParameterError(
                f"`sample` must be a name or an index below {self.n_samples}, got {sample!r}."
            )
        return int(sample) % self.n_samples

    def name(self, feature: int) -> str:
        """Return the name of a feature, or ``"feature 7"`` without names."""
        return self.feature_names[feature] if self.feature_names else f"feature {feature}"

    def of_sample(self, sample: Any = 0) -> NDArray[np.float64]:
        """Return the contributions to one output, (n_features,)."""
        return _dense_row(self.values, self.row(sample))

    def top(self, k: Any = 10, sample: Any = 0) -> list[tuple[str, float, float]]:
        """Return the features with the largest contributions to one output.

        Returns
        -------
        list of (name, contribution, value of the feature)
            The largest magnitude first.  Features without a contribution are left out.
        """
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise InvalidParameterError(f"`k` must be a whole number of at least 1, got {k!r}.")
        given = _dense_row(self.data, self.row(sample))
        found = self.of_sample(sample)
        first = np.argsort(-np.abs(found), kind="stable")[:k]
        return [(self.name(j), float(found[j]), float(given[j])) for j in first if found[j] != 0]

    def importance(self) -> NDArray[np.float64]:
        """Return the mean magnitude of every feature's contributions over the samples."""
        return np.asarray(abs(self.values).mean(axis=0), dtype=np.float64).ravel()

    def group_values(self, groups: Any) -> NDArray[np.float64]:
        """Return the summed contributions of groups of features, (n_samples, n_groups).

        Parameters
        ----------
        groups : FeatureGroups or matrix of shape (n_features, n_groups)
            1 where a feature belongs to a group.  The contribution of a feature in several groups
            counts in each of them.
        """
        matrix = scipy.sparse.csr_array(getattr(groups, "matrix", groups), dtype=np.float64)
        if matrix.shape[0] != self.n_features:
            raise InvalidParameterError(
                f"`groups` is for {matrix.shape[0]} features, the explanation has"
                f" {self.n_features}."
            )
        found = self.values @ matrix
        return np.asarray(found.toarray() if scipy.sparse.issparse(found) else found)

    def to_frame(self) -> Any:
        """Return the contributions as a pandas DataFrame, one row per sample."""
        import pandas as pd

        index = None if self.sample_names is None else list(self.sample_names)
        names = [self.name(j) for j in range(self.n_features)]
        if scipy.sparse.issparse(self.values):
            return pd.DataFrame.sparse.from_spmatrix(self.values, index=index, columns=names)
        return pd.DataFrame(self.values, index=index, columns=names)

    def to_shap(self) -> Any:
        """Return a ``shap.Explanation``, for the plots of the shap package."""
        import shap

        values, data = (
            part.toarray() if scipy.sparse.issparse(part) else np.asarray(part)
            for part in (self.values, self.data)
        )
        names = [self.name(j) for j in range(self.n_features)]
        return shap.Explanation(values, self.base_values, data=data, feature_names=names)

    def __repr__(self) -> str:
        samples = "1 sample" if self.n_samples == 1 else f"{self.n_samples} samples"
        return f"Explanation({samples} x {self.n_features} features)"


def _dense_row(matrix: Any, row: int) -> NDArray[np.float64]:
    if scipy.sparse.issparse(matrix):
        return np.asarray(matrix[[row]].toarray(), dtype=np.float64).ravel()
    return np.asarray(matrix[row], dtype=np.float64)

"""Which samples an estimator was trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ratoon.estimators.data import Labelled, parts_of_eval_set
from ratoon.samples.checked import checked_samples
from ratoon.samples.fingerprints import MOST_OF_A_PART, MOST_VALUES, RowSet, n_values


class TrainedRows:
    """Remembers the fingerprints of the training samples."""

    _trained_rows: RowSet

    def _note_rows(
        self, labelled: Labelled, eval_set: Any, *, fresh: bool, one_epoch: bool
    ) -> None:
        """Note the rows that are trained on, or choose the epoch.

        If some are too many to have fingerprints, it is not known which rows they are.
        """
        parts = [labelled.x]
        if eval_set is not None:
            parts.append(
                checked_samples(self, parts_of_eval_set(eval_set)[0], reset=False, streamed=True)
            )
        known = RowSet() if fresh else self.__dict__.get("_trained_rows")
        most = MOST_OF_A_PART if one_epoch else MOST_VALUES
        if known is None or max(map(n_values, parts)) > most:
            self.__dict__.pop("_trained_rows", None)
            return
        for x in parts:
            known.add(x)
        self._trained_rows = known

    def was_trained_on(self, X: Any) -> NDArray[np.bool_] | None:
        """Return for every sample whether the model was trained on it.

        A sample is known by its values, with the features in the order of training: one that was
        rounded differently is another sample.  Samples that chose the epoch in early stopping count
        as trained on.

        Parameters
        ----------
        X : array, SciPy matrix, table, AnnData or Dataset
            Samples in rows.

        Returns
        -------
        ndarray of bool, or None
            None if the model has no fingerprints of its training samples: it was trained on more
            than 67 million values (4 million in a call of `partial_fit`), saved without them, or
            written by an earlier version.

        Examples
        --------
        >>> from ratoon import SparseMLPClassifier
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.1, 0.9], [0.9, 0.2]])
        >>> model = SparseMLPClassifier(random_state=0).fit(X[:2], ["ill", "well"])
        >>> model.was_trained_on(X).tolist()
        [True, True, False, False]
        """
        check_is_fitted(self)
        known: RowSet | None = self.__dict__.get("_trained_rows")
        if known is None:
            return None
        return known.contains(checked_samples(self, X, reset=False, streamed=True))

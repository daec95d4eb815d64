"""The ranking of features of a fitted estimator, and what a file stores of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ratoon.arrays import Array
from ratoon.errors import FormatError, InvalidInputError
from ratoon.estimators.data import Labelled
from ratoon.explain import Associations, Ranking, associations, importances
from ratoon.explain.associations import MAX_FEATURES, MAX_OUTPUTS
from ratoon.explain.ranking import feature_strength
from ratoon.network import SparseMLP
from ratoon.samples.base import Rows
from ratoon.storage.rules import EXACT_INTEGER, Fields

_ARRAYS = {"f": np.float32, "difference": np.float32, "highest": np.int32}
_PREFIX = "ranking/"

NOT_KEPT = "the model has no statistics of its training rows"
PARTIAL = "the model was trained by `partial_fit`, which does not keep statistics of its rows"
ON_DISK = "the training rows are on disk"
TOO_LARGE = f"statistics are kept for up to {MAX_FEATURES:,} features and {MAX_OUTPUTS} outputs"
WITHOUT = "by connection strength alone, because {}"


class RankedFeatures:
    """Importances and the ranking of features; a mixin of classifier and regressor."""

    network_: SparseMLP
    _is_classifier: bool

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importance of every feature in the sense of `ratoon.explain.ranking`; the sum is 1."""
        check_is_fitted(self)
        return importances(self.network_, self._known)

    @property
    def ranking_(self) -> Ranking:
        """The features in the order of their importance, with statistics of the training rows."""
        check_is_fitted(self)
        found = self._known
        if found is None:
            rows = WITHOUT.format(self.__dict__.get("_why_no_statistics", NOT_KEPT))
        elif found.n_rows < found.n_available:
            rows = f"on {found.n_rows:,} of {found.n_available:,} training rows"
        else:
            rows = f"on {found.n_rows:,} training rows"
        return self._ranking(found, rows)

    def rank_features(self, X: Any, y: Any = None, sample_weight: Any = None) -> Ranking:
        """Return the ranking with statistics of given samples instead of those of training.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Examples
        --------
        >>> import numpy as np
        >>> from ratoon import SparseMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> model = SparseMLPRegressor(random_state=0).fit(X, X[:, 1])
        >>> model.ranking_  # doctest: +ELLIPSIS
        Ranking(3 features: feature 1, ...; on 50 training rows)
        >>> model.rank_features(X[:30], X[:30, 1]).top(1)[0]["direction"]
        'rises'
        """
        check_is_fitted(self)
        model: Any = self
        labelled = model._labelled(X, y, sample_weight, reset=False)
        if why := self._no_statistics_of(labelled):
            raise InvalidInputError(f"features cannot be ranked on these samples: {why}.")
        found = self._associations_of(labelled, None)
        return self._ranking(found, f"on the {found.n_rows:,} rows given")

    def feature_strength(self, *, propagate: bool = False) -> NDArray[np.float64]:
        """Return the summed magnitude of every feature's connections.

        Parameters
        ----------
        propagate : bool, default=False
            Count each connection by the strength of the neuron it leads to.
        """
        check_is_fitted(self)
        return feature_strength(self.network_, propagate=propagate)

    # ------------------------------------------------------------------------- learnt in `fit`

    @property
    def _known(self) -> Associations | None:
        return self.__dict__.get("_known_associations")

    def _learn_associations(
        self, labelled: Labelled, held: Rows | None, *, one_epoch: bool
    ) -> None:
        """Keep statistics of the training rows, or why there are none."""
        why = PARTIAL if one_epoch else self._no_statistics_of(labelled)
        self._forget_associations(why)
        if not why:
            self._known_associations = self._associations_of(labelled, held)

    def _forget_associations(self, why: str = NOT_KEPT) -> None:
        self.__dict__.pop("_known_associations", None)
        self._why_no_statistics = why

    def _no_statistics_of(self, labelled: Labelled) -> str:
        model: Any = self
        if labelled.x.is_on_disk:
            return ON_DISK
        if labelled.x.n_features > MAX_FEATURES or model._n_outputs() > MAX_OUTPUTS:
            return TOO_LARGE
        return ""

    def _associations_of(self, labelled: Labelled, held: Rows | None) -> Associations:
        model: Any = self
        return associations(
            labelled.x,
            model._encode(labelled.y, 0.0, "y"),
            labelled.weights_without(held),
            model._strata(labelled.y),
            seed=model._state.seed,
        )

    def _ranking(self, statistics: Associations | None, rows: str) -> Ranking:
        model: Any = self
        names = getattr(self, "feature_names_in_", None)
        has_classes = self._is_classifier and not model._multilabel
        # The importances, their order and the ranks, with temporary copies.
        self.network_.require_memory_of_inputs(48)
        return Ranking(
            importances(self.network_, statistics),
            statistics,
            None if names is None else tuple(map(str, names)),
            tuple(str(name) for name in model.classes_) if has_classes else None,
            rows,
        )

    # ------------------------------------------------------------------------------ in a file

    def _association_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the statistics as JSON values and arrays."""
        found = self._known
        if found is None:
            return {"reason": self.__dict__.get("_why_no_statistics", NOT_KEPT)}, {}
        values = {
            "n_rows": found.n_rows,
            "n_available": found.n_available,
            "degrees": list(found.degrees),
        }
        return values, {_PREFIX + name: getattr(found, name) for name in _ARRAYS}

    def _restore_associations(self, stored: Any, arrays: dict[str, Array]) -> None:
        """Restore what `_association_state` returned, out of ``arrays``, or raise."""
        if stored is None or set(stored) == {"reason"}:
            self._forget_associations(NOT_KEPT if stored is None else str(stored["reason"]))
            return
        fields = Fields(stored, "ranking", ("n_rows", "n_available", "degrees"))
        degrees = fields.listing("degrees", 2, 2)
        if any(type(one) is not int or abs(one) > EXACT_INTEGER for one in degrees):
            raise FormatError("ranking: `degrees` must be whole numbers")
        found = {name: arrays.pop(_PREFIX + name) for name in _ARRAYS}
        n_features = self.network_.widths[0]
        for name, dtype in _ARRAYS.items():
            if found[name].shape != (n_features,) or found[name].dtype != dtype:
                raise FormatError(f"ranking: the array {name!r} does not fit {n_features} features")
        model: Any = self
        has_classes = self._is_classifier and not model._multilabel
        n_classes = len(model.classes_) if has_classes else 2
        highest = found["highest"]
        if n_features and not (highest.min() >= -1 and highest.max() < n_classes):
            raise FormatError("ranking: a feature is highest in a class that does not exist")
        if (found["f"] < 0).any():
            raise FormatError("ranking: a statistic is negative")
        self._known_associations = Associations(
            found["f"],
            found["difference"],
            highest,
            fields.integer("n_rows", 0, EXACT_INTEGER),
            fields.integer("n_available", 0, EXACT_INTEGER),
            (degrees[0], degrees[1]),
        )

"""Why a fitted estimator predicts what it predicts: contributions of features to its outputs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError, InvalidParameterError, near
from ratoon.explain import METHODS, Explanation, contributions
from ratoon.network import SparseMLP
from ratoon.samples.base import Samples
from ratoon.samples.in_memory import wrap

MEAN = "mean"
MAX_STEPS = 100_000


class _Goal(NamedTuple):
    """What is explained in every sample: a mix of the outputs, plus an offset, by name."""

    mixing: NDArray[np.float64]
    offset: NDArray[np.float64]
    targets: tuple[Any, ...]
    unit: str


class Explaining:
    """Explanations of predictions; a mixin of classifier and regressor."""

    network_: SparseMLP
    _is_classifier: bool

    def explain(
        self,
        X: Any,
        *,
        target: Any = None,
        baseline: Any = MEAN,
        method: str = "rescale",
        n_steps: Any = 50,
        rows: Any = None,
    ) -> Explanation:
        """Return the contribution of every feature to the prediction of every sample.

        The contributions of a sample and the base value, which is the output for the baseline, sum
        up to the output.  For a linear network they are exact (weight times deviation of the
        feature, which is also its Shapley value).  `ratoon.explain.contributions` describes the
        methods; the cost is a few predictions.

        Parameters
        ----------
        X : array, SciPy matrix, table, AnnData or Dataset
            Samples, as for `predict`.
        target : class, label or index of an output, optional
            What to explain.  For classes: the margin of this class, which is its output minus the
            mean of those of the other classes; the default is the predicted class of each sample.
            For numbers: the prediction, in the units of ``y``; with several targets, give the
            index of one.
        baseline : "mean", array of shape (n_features,), or samples, default="mean"
            What samples are compared with.  ``"mean"`` is the mean of the training samples, or
            zeros where the model does not centre its features (sparse samples, ``scale=None``).
            Several samples: contributions are averaged over them, and the time is proportional to
            their number.
        method : {"rescale", "integrated"}, default="rescale"
            ``"rescale"`` sums up exactly; ``"integrated"`` is integrated gradients.
        n_steps : int, default=50
            Points of the line of ``"integrated"``; more reduce its error.
        rows : array-like of int, optional
            Explain only these samples of ``X``.  A model that centres groups centres them by all
            samples of ``X``, as `predict` does.

        Returns
        -------
        Explanation

        Examples
        --------
        >>> import numpy as np
        >>> from ratoon import SparseMLPClassifier
        >>> X = np.random.default_rng(0).normal(size=(60, 4))
        >>> model = SparseMLPClassifier(random_state=0).fit(X, np.where(X[:, 2] > 0, "ill", "well"))
        >>> found = model.explain(X, target="ill")
        >>> found.top(1, sample=int(X[:, 2].argmax()))[0][0]
        'feature 2'
        >>> total = found.values.sum(axis=1) + found.base_values
        >>> bool(np.allclose(total, -model.decision_function(X), atol=1e-4))
        True
        """
        check_is_fitted(self)
        if str(method) not in METHODS:  # an array has no truth value
            raise InvalidParameterError(f"`method` must be one of {METHODS}, got {method!r}.")
        is_number = isinstance(n_steps, int | np.integer) and not isinstance(n_steps, bool)
        if not is_number or not 1 <= n_steps <= MAX_STEPS:
            raise InvalidParameterError(
                f"`n_steps` must be a whole number of at least 1 and at most {MAX_STEPS:,}, got"
                f" {n_steps!r}."
            )
        chosen = None if rows is None else _rows_of(rows, X)
        x = self._read_prepared(X, chosen)  # type: ignore[attr-defined]
        raw = np.asarray(self._outputs_of(x))  # type: ignore[attr-defined]
        goal = (
            _of_classes(self, target, raw)
            if self._is_classifier
            else _of_numbers(self, target, raw)
        )
        values, base = contributions(
            self.network_,
            x,
            goal.mixing,
            baseline=self._baselines(baseline),
            method=method,
            n_steps=int(n_steps),
        )
        names = getattr(self, "feature_names_in_", None)
        return Explanation(
            values,
            base + goal.offset,
            np.einsum("no,no->n", raw, goal.mixing) + goal.offset,
            goal.targets,
            x.values() if not x.is_on_disk else x.dense(),
            None if names is None else tuple(map(str, names)),
            _sample_names(X, chosen),
            goal.unit,
        )

    def group_activity(self, X: Any) -> NDArray[np.float64]:
        """Return the activity of every group of features, (n_samples, n_groups).

        For a network whose first layer was made from groups, such as pathways
        (``topology=groups.within()``): the activations of their neurons, in the order of
        ``group_names_``.
        """
        n_groups = len(self._checked_groups())
        x = self._read_prepared(X)  # type: ignore[attr-defined]
        if x.is_sparse and self.network_.scaling.shift is not None:
            x = wrap(x.dense())
        found = self.network_.outputs(x, layer=0)
        return np.asarray(found[:, :n_groups], dtype=np.float64)

    def explain_groups(self, X: Any, *, target: Any = None) -> Explanation:
        """Return the contribution of every neuron of the first layer, named by its group.

        Neurons without a group are named by their number.  Parameters and sums as for `explain`.
        """
        groups = self._checked_groups()
        x = self._read_prepared(X)  # type: ignore[attr-defined]
        raw = np.asarray(self._outputs_of(x))  # type: ignore[attr-defined]
        explained = _of_classes if self._is_classifier else _of_numbers
        goal = explained(self, target, raw)
        values, base = contributions(self.network_, x, goal.mixing, layer=1)
        given = wrap(x.dense()) if x.is_sparse else x
        n_others = values.shape[1] - len(groups)
        return Explanation(
            values,
            base + goal.offset,
            np.einsum("no,no->n", raw, goal.mixing) + goal.offset,
            goal.targets,
            np.asarray(self.network_.outputs(given, layer=0), dtype=np.float64),
            (*groups, *(f"neuron {len(groups) + j}" for j in range(n_others))),
            _sample_names(X),
            goal.unit,
        )

    def _checked_groups(self) -> tuple[str, ...]:
        check_is_fitted(self)
        names = getattr(self, "group_names_", None)
        if names is None:
            raise InvalidInputError(
                "the neurons of this network are not groups of features.\n"
                "  Fit it with `topology=groups.within()` or `topology=groups.topology()`, where"
                " groups come from `ratoon.datasets.read_gmt`."
            )
        return tuple(map(str, names))

    def _baselines(self, given: Any) -> NDArray[np.float64] | None:
        if isinstance(given, str) and given == MEAN:
            return None
        if isinstance(given, str) or given is None:
            raise InvalidParameterError(
                f'`baseline` must be "{MEAN}", one number per feature, or samples; got {given!r}.'
            )
        if isinstance(given, np.ndarray | list | tuple) and np.ndim(given) == 1:
            given = np.asarray(given)[None, :]
        samples: Samples = self._read_prepared(given)  # type: ignore[attr-defined]
        return np.asarray(samples.dense(), dtype=np.float64)

    def __call__(self, X: Any) -> Array:
        """Return class probabilities, or predicted numbers, so that `shap.Explainer` takes a model.

        Same as `predict_proba` of a classifier and `predict` of a regressor.
        """
        model: Any = self
        return np.asarray(model.predict_proba(X) if self._is_classifier else model.predict(X))


def _of_classes(model: Any, target: Any, raw: Array) -> _Goal:
    classes = model.classes_
    zeros = np.zeros(len(raw))
    if target is None and model._multilabel:
        raise InvalidParameterError(
            f"with several labels per sample, `target` must name one of them:"
            f" {classes.tolist()[:20]}."
        )
    named = None if target is None else _index_of(target, classes)
    chosen = raw.argmax(axis=1) if named is None else np.full(len(raw), named)
    picked = np.zeros(raw.shape)
    picked[np.arange(len(raw)), chosen] = 1.0
    if model._multilabel:
        return _Goal(picked, zeros, tuple(classes[chosen].tolist()), "output of the label")
    mixing = picked - (1.0 - picked) / (classes.size - 1)
    return _Goal(mixing, zeros, tuple(classes[chosen].tolist()), "margin of the class")


def _of_numbers(model: Any, target: Any, raw: Array) -> _Goal:
    n_outputs = raw.shape[1]
    if target is None and n_outputs > 1:
        raise InvalidParameterError(
            f"the model predicts {n_outputs} numbers; `target` must be the index of one of them."
        )
    chosen = 0 if target is None else _index_of(target, np.arange(n_outputs))
    mixing = np.zeros(raw.shape)
    if not hasattr(model, "_target_std"):  # the risk of a survival model is the output itself
        mixing[:, chosen] = 1.0
        return _Goal(mixing, np.zeros(len(raw)), (chosen,) * len(raw), "risk")
    mixing[:, chosen] = model._target_std[chosen]
    offset = np.full(len(raw), float(model._target_mean[chosen]))
    return _Goal(mixing, offset, (chosen,) * len(raw), "prediction")


def _rows_of(rows: Any, X: Any) -> NDArray[np.int64]:
    """Return row numbers, or raise if X has no such rows."""
    try:
        found = np.asarray(rows)
    except ValueError:  # lists of different lengths
        found = np.array(None)
    n_rows = X.shape[0] if getattr(X, "shape", ()) else getattr(X, "n_samples", None)
    n_rows = len(X) if n_rows is None and hasattr(X, "__len__") else n_rows
    is_known = found.ndim == 1 and found.size > 0 and found.dtype.kind in "iu"
    if not is_known or (n_rows is not None and not (0 <= found.min() <= found.max() < n_rows)):
        raise InvalidParameterError(
            f"`rows` must be a list of row numbers of X, from 0 to"
            f" {'n_samples - 1' if n_rows is None else n_rows - 1}; got {str(rows)[:80]!r}."
        )
    return found.astype(np.int64)


def _index_of(target: Any, known: Array) -> int:
    """Return the index of a target; names in a file are text, so text is compared as text."""
    listed = known.tolist()
    if np.ndim(target) > 0:
        raise InvalidParameterError(f"`target` must be one target, got {target!r}.")
    for candidates, wanted in ((listed, target), ([str(one) for one in listed], str(target))):
        if any(type(one) is type(wanted) and one == wanted for one in candidates):
            return candidates.index(wanted)
    wanted = target.item() if isinstance(target, np.generic) else target
    if wanted in listed:
        return int(listed.index(wanted))
    raise InvalidParameterError(
        f"`target` must be one of {listed[:20]}{' and more' if len(listed) > 20 else ''}; got"
        f" {target!r}.{near(target, listed)}"
    )


def _sample_names(X: Any, rows: Any = None) -> tuple[str, ...] | None:
    """Return the names of the samples, or some, of a Dataset, an AnnData or a pandas table."""
    names = getattr(X, "sample_names", None)
    for attribute in ("obs_names", "index"):
        if names is None:
            names = getattr(X, attribute, None)
    if names is None or callable(names):
        return None
    try:
        found = tuple(map(str, names))
    except TypeError:
        return None
    return found if rows is None else tuple(found[row] for row in rows)

"""Weights, report and plan of an estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ratoon.arrays import Array
from ratoon.datasets import MIN_COVERAGE, Dataset
from ratoon.estimators.names import align_samples, warn_of_missing
from ratoon.estimators.parameters import count
from ratoon.estimators.planning import FitPlan, make_plan
from ratoon.estimators.presets import Shape
from ratoon.estimators.report import FitReport, make_report
from ratoon.estimators.settings import Settings, resolve
from ratoon.network import SparseMLP
from ratoon.topology import Within
from ratoon.training import TrainingState


class NetworkInspection:
    """Weights, report and plan of an estimator."""

    network_: SparseMLP
    settings_: Settings
    _state: TrainingState
    _is_classifier: bool
    topology: Any

    def _checked_parameters(self) -> dict[str, Any]:
        raise NotImplementedError

    @property
    def coefs_(self) -> list[Any]:
        """Weights of every layer as SciPy matrices (inputs, outputs)."""
        check_is_fitted(self)
        self.network_.require_memory_of_inputs(16)
        return [layer.to_csr() for layer in self.network_.layers]

    @property
    def intercepts_(self) -> list[Array]:
        """Biases of every layer."""
        check_is_fitted(self)
        return [layer.bias.copy() for layer in self.network_.layers]

    def align(self, X: Any, *, id_map: Any = None, min_coverage: float = MIN_COVERAGE) -> Dataset:
        """Return samples with the features of training, found by name, for `predict` and others.

        Columns may be in any order, with other columns between them.  A feature that is
        missing gets its mean over the training samples (0 after standardisation), or 0 where the
        model does not centre its features; a `FeatureCoverageWarning` says how many there are.
        Without `align`, other names than those of training are an error, as in scikit-learn.

        Parameters
        ----------
        X : pandas, polars or Arrow table, AnnData, or Dataset
            Samples with names of their features.
        id_map : mapping of str to str, or path, optional
            From names in ``X`` to names of training; a file has them in two columns.  Several
            columns with the same name are averaged.
        min_coverage : float, default=0.9
            Fraction of the features of training that must be present.

        Returns
        -------
        Dataset
            Its `notes` say what was done.

        Raises
        ------
        InvalidInputError
            If fewer are present.

        Examples
        --------
        >>> import pandas as pd
        >>> from ratoon import SparseMLPClassifier
        >>> train = pd.DataFrame({"TP53": [0.0, 1.0, 0.1, 0.9], "MDM2": [1.0, 0.0, 0.8, 0.1]})
        >>> model = SparseMLPClassifier(random_state=0).fit(train, ["a", "b", "a", "b"])
        >>> new = pd.DataFrame({"MDM2": [0.9], "KRAS": [5.0], "p53": [0.0]})
        >>> aligned = model.align(new, id_map={"p53": "TP53"})
        >>> aligned.notes[-1]
        '2 of 2 features found (100.0%); 1 extra left out (KRAS); 1 renamed by the ID map;
        reordered'
        >>> model.predict(aligned).tolist()
        ['a']
        """
        check_is_fitted(self)
        data, how = align_samples(self, X, id_map=id_map, min_coverage=min_coverage)
        warn_of_missing(how, self)
        return replace(data, notes=(*data.notes, str(how)))

    @property
    def report_(self) -> FitReport:
        """Table of the layers: connections, density asked for and achieved, memory, rewired."""
        check_is_fitted(self)
        state = self._state
        return make_report(self.network_, state.history, self.settings_, state.rewired_by_layer)

    def card(self, *, title: str | None = None, notes: str | None = None, test: Any = None) -> str:
        """Return a model card: a Markdown page about the fitted model.

        It has what the estimator and its file know: data, network, settings, scores, strongest
        features, limits and how to load the model.

        Parameters
        ----------
        title : str, optional
            Heading of the page; by default the name of the class.
        notes : str, optional
            Markdown that is put first, such as the intended use.
        test : tuple (X, y) or Dataset, optional
            Samples that were not used in training, to be scored.

        Examples
        --------
        >>> from ratoon import SparseMLPClassifier
        >>> model = SparseMLPClassifier(random_state=0).fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
        >>> print(model.card(title="Demo").splitlines()[8])
        # Demo
        """
        from ratoon.report.card import model_card

        check_is_fitted(self)
        return model_card(self, title=title, notes=notes, test=test)

    @property
    def solver_(self) -> str:
        """How the last fit was done: closed form, a named solver, or an optimizer's class name."""
        check_is_fitted(self)
        return self.settings_.solver

    def plan(self, n_features: int, n_samples: int = 100, n_outputs: int = 2) -> FitPlan:
        """Estimate memory and time of a fit before anything is allocated.

        Parameters
        ----------
        n_features, n_samples : int
            Shape of X.
        n_outputs : int
            Classes, labels, or columns of y.

        Returns
        -------
        FitPlan
            Bytes of parameters, of working space and at the peak, without the data itself; and
            estimated seconds per epoch on this machine.
        """
        self._checked_parameters()
        sizes = {"n_samples": n_samples, "n_features": n_features, "n_outputs": n_outputs}
        for name, value in sizes.items():
            count("plan", name, value)
        sizes = {name: int(value) for name, value in sizes.items()}
        shape = Shape(**sizes, is_classifier=self._is_classifier)
        settings = resolve(self, shape)
        limits = [layer for layer in self.topology or [] if isinstance(layer, Within)]
        return make_plan(settings, shape, n_allowed=tuple(limit.n_allowed for limit in limits))

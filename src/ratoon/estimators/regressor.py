"""SparseMLPRegressor."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array

from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError
from ratoon.estimators.base import BaseSparseMLP
from ratoon.estimators.data import Labelled
from ratoon.estimators.inputs import refuse_misleading
from ratoon.estimators.presets import Settings
from ratoon.prepare import feature_statistics
from ratoon.training import TrainingData

Array = NDArray[Any]


class SparseMLPRegressor(RegressorMixin, BaseSparseMLP):
    """Predict numbers with a sparse network that rewires while it learns."""

    _is_classifier = False

    def __init__(
        self,
        hidden_layer_sizes: Any = "auto",
        *,
        epsilon: float | None = None,
        density: float | None = None,
        zeta: float = 0.3,
        evolution: Any = "auto",
        activation: str = "relu",
        slope: float | None = None,
        dropout: float = 0.0,
        loss: str = "auto",
        solver: Any = "auto",
        learning_rate_init: float | None = None,
        learning_rate: Any = "auto",
        warm_up: float = 0.0,
        momentum: float = 0.9,
        nesterovs_momentum: bool = False,
        weight_decay: float | None = None,
        decay: str = "auto",
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        adam_eps: float = 1e-8,
        batch_size: Any = "auto",
        max_iter: int | None = None,
        shuffle: bool = True,
        init: str = "auto",
        output_init: str | None = None,
        start: str = "auto",
        topology: Any = None,
        scale: str | None = "standard",
        clip: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        restore_best: bool = True,
        warm_start: bool = False,
        preset: str | None = None,
        callbacks: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        dtype: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.epsilon = epsilon
        self.density = density
        self.zeta = zeta
        self.evolution = evolution
        self.activation = activation
        self.slope = slope
        self.dropout = dropout
        self.loss = loss
        self.solver = solver
        self.learning_rate_init = learning_rate_init
        self.learning_rate = learning_rate
        self.warm_up = warm_up
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.weight_decay = weight_decay
        self.decay = decay
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.adam_eps = adam_eps
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.init = init
        self.output_init = output_init
        self.start = start
        self.topology = topology
        self.scale = scale
        self.clip = clip
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.restore_best = restore_best
        self.warm_start = warm_start
        self.preset = preset
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.dtype = dtype
        self.verbose = verbose

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """Return a regressor with the settings of the SET papers, but for what is given here."""
        return cls(**{"preset": "paper", **overrides})

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None) -> Self:
        """Train for exactly one epoch more.

        Calling it ``max_iter`` times with the same data is the same, bit for bit, as `fit`.

        Parameters
        ----------
        X, y, sample_weight, eval_set
            As in `fit`.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, sample_weight, eval_set, None)

    # ------------------------------------------------------------------------------- targets

    def _check_target(self, y: Any) -> Array:
        refuse_misleading(y, "y")
        checked = check_array(
            y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_min_samples=0
        )
        return np.asarray(checked)

    def _learn_targets(self, labelled: Labelled, classes: Any) -> None:
        del classes
        found = feature_statistics(_columns(labelled.y), labelled.weights)
        self._one_column = labelled.y.ndim == 1
        self._target_mean = found.mean
        self._target_std = np.where(found.constant, 1.0, found.std)

    def _compare_targets(self, labelled: Labelled, classes: Any) -> None:
        del classes
        y = labelled.y
        if _columns(y).shape[1] != self._target_mean.size:
            raise InvalidInputError(
                f"y has {_columns(y).shape[1]} columns; at the first call there were"
                f" {self._target_mean.size}."
            )

    def _n_outputs(self) -> int:
        return int(self._target_mean.size)

    def _loss(self) -> str:
        if self.loss not in ("auto", "squared_error"):
            raise InvalidParameterError(
                f'{type(self).__name__}: `loss` must be "auto" or "squared_error", got'
                f" {self.loss!r}."
            )
        return "squared_error"

    def _encode(self, y: Array, settings: Settings, where: str) -> Array:
        del settings
        if _columns(y).shape[1] != self._target_mean.size:
            raise InvalidInputError(
                f"{where} has {_columns(y).shape[1]} columns, expected {self._target_mean.size}."
            )
        return np.asarray((_columns(y) - self._target_mean) / self._target_std)

    def _weigh(self, labelled: Labelled) -> Array | None:
        return labelled.weights

    def _strata(self, y: Array) -> Array | None:
        del y
        return None

    def _score(self, outputs: Array, data: TrainingData) -> float:
        """Return R^2, the mean over outputs."""
        targets = data.targets.astype(np.float64)
        weights = np.ones(targets.shape[0]) if data.weights is None else data.weights
        weights = (weights / weights.sum())[:, None]
        error = (weights * np.square(outputs - targets)).sum(axis=0)
        mean = (weights * targets).sum(axis=0)
        spread = (weights * np.square(targets - mean)).sum(axis=0)
        score = np.where(spread > 0, 1.0 - error / np.where(spread > 0, spread, 1.0), -error)
        return float(score.mean())

    def _target_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        arrays = {"target_mean": self._target_mean, "target_std": self._target_std}
        return {"one_column": self._one_column}, arrays

    def _restore_targets(self, targets: dict[str, Any], arrays: dict[str, Array]) -> None:
        self._one_column = bool(targets["one_column"])
        mean, std = arrays.pop("target_mean"), arrays.pop("target_std")
        if mean.ndim != 1 or mean.shape != std.shape or not (std > 0).all():
            raise FormatError("targets need one mean and one positive spread each")
        self._target_mean, self._target_std = mean, std

    # ---------------------------------------------------------------------------- prediction

    def predict(self, X: Any) -> Array:
        """Return the predicted targets, of the shape y had."""
        outputs = self._outputs(X) * self._target_std + self._target_mean
        return outputs[:, 0] if self._one_column else outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _columns(y: Array) -> Array:
    return y[:, None] if y.ndim == 1 else y

"""What classifier and regressor share: the way from `fit` to a trained network and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ratoon.errors import DivergenceError, InvalidInputError, InvalidParameterError
from ratoon.estimators.fitting import Progress, learn_scaling, start_network
from ratoon.estimators.inputs import checked_samples, checked_weights
from ratoon.estimators.parameters import check_parameters
from ratoon.estimators.presets import Settings, Shape, resolve
from ratoon.estimators.threads import threads_for
from ratoon.history import History
from ratoon.network import SparseMLP
from ratoon.rng import derive_generator, draw_root
from ratoon.training import Callback, EarlyStopping, Training, TrainingData, TrainingPlan

Array = NDArray[Any]

_ROWS_AT_ONCE = 32


class BaseSparseMLP(BaseEstimator, ABC):
    """Fit, fit on, and raw outputs; what targets mean is for the classes below to say."""

    # ---------------------------------------------------------------- for the classes below

    @abstractmethod
    def _learn_targets(self, y: Any, classes: Any, weights: Array | None) -> None:
        """Learn what there is to learn from y: classes, or mean and spread."""

    @abstractmethod
    def _n_outputs(self) -> int:
        """Outputs of the network."""

    @abstractmethod
    def _loss(self) -> str:
        """Loss of the network."""

    @abstractmethod
    def _encode(self, y: Any, settings: Settings, where: str) -> Array:
        """Return the targets of samples, (samples, outputs)."""

    @abstractmethod
    def _weigh(self, y: Any, weights: Array | None) -> Array | None:
        """Return what every sample counts in training."""

    @abstractmethod
    def _score(self, outputs: Array, data: TrainingData) -> float:
        """Score raw outputs on validation data; higher is better."""

    @abstractmethod
    def _check_target(self, y: Any) -> Array:
        """Return y as an array of the right dimension, or raise."""

    @abstractmethod
    def _held_out(self, y: Array, n: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Choose the rows that are kept for validation."""

    # ------------------------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None) -> Self:
        """Train on samples ``X`` (samples, features) with targets ``y``.

        Parameters
        ----------
        X : array, memory map, SciPy matrix, pandas, polars or Arrow table
            Samples in rows.  Never changed, and not copied where that can be avoided.
        y : array-like
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            What each sample counts; k is the same as k copies of it.
        eval_set : tuple (X, y) or (X, y, sample_weight), optional
            Validation data: scored after every epoch, and what early stopping looks at.

        Returns
        -------
        self
        """
        given = self._checked_parameters()
        fresh = not (self.warm_start and hasattr(self, "_progress"))
        self._train(given, X, y, sample_weight, eval_set, fresh=fresh, n_epochs=None)
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any, eval_set: Any) -> Self:
        given = self._checked_parameters()
        if self.early_stopping and eval_set is None:
            raise InvalidParameterError(
                "early stopping in `partial_fit` needs an `eval_set=(X, y)`.\n"
                "  Only `fit` sees all samples, and so can hold some of them back."
            )
        fresh = not hasattr(self, "_progress")
        self._train(given, X, y, sample_weight, eval_set, fresh=fresh, n_epochs=1, classes=classes)
        return self

    def _checked_parameters(self) -> dict[str, Any]:
        given = self.get_params(deep=False)
        check_parameters(given, owner=type(self).__name__)
        return given

    def _train(
        self,
        given: dict[str, Any],
        X: Any,
        y: Any,
        sample_weight: Any,
        eval_set: Any,
        *,
        fresh: bool,
        n_epochs: int | None,
        classes: Any = None,
    ) -> None:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y"
                f" is None."
            )
        x = checked_samples(self, X, reset=fresh)
        target = self._check_target(y)
        if target.shape[0] != x.shape[0]:
            raise InvalidInputError(
                f"Found input variables with inconsistent numbers of samples: X has {x.shape[0]},"
                f" y has {target.shape[0]}."
            )
        weights = checked_weights(sample_weight, x.shape[0])
        if fresh:
            self._learn_targets(target, classes, weights)
        elif classes is not None or not fresh:
            self._compare_targets(target, classes)
        shape = self._shape_of(x) if fresh else self._progress.shape
        settings = resolve(given, shape)
        rows, validation_rows = None, None
        if self.early_stopping and eval_set is None:
            seed = draw_root(self.random_state) if fresh else self._progress.seed
            rows, validation_rows = self._split(target, seed)
        else:
            seed = draw_root(self.random_state) if fresh else self._progress.seed
        training_weights = self._weigh(target, weights)
        n_threads = 1
        if fresh:
            used = weights
            if rows is not None:
                used = np.zeros(x.shape[0])
                used[rows] = 1.0 if weights is None else weights[rows]
            scaling = learn_scaling(
                x, used, scale=self.scale, clip=settings.clip, dtype=settings.dtype
            )
            network = start_network(
                settings, shape, scaling=scaling, topology=self.topology, seed=seed, n_threads=1
            )
            progress = Progress(seed, shape, network)
        else:
            progress = self._progress
            self._refuse_sparse_if_centred(x)
            if n_epochs is None or progress.epochs_done >= settings.max_iter:
                progress.begin_cycle(settings.optimizer.n_states)
        dtype = progress.latest.dtype
        n_threads = threads_for(
            self.n_jobs, progress.latest.n_connections * min(settings.batch_size, x.shape[0])
        )
        data = TrainingData.of(
            x,
            self._encode(target, settings, "y"),
            dtype,
            weights=training_weights,
            rows=rows,
        )
        validation = None
        if validation_rows is not None:
            validation = self._validation(
                x[validation_rows],
                target[validation_rows],
                None if weights is None else weights[validation_rows],
                settings,
                dtype,
            )
        elif eval_set is not None:
            validation = self._validation_of(eval_set, settings, dtype)
        if self.early_stopping and progress.stopping is None:
            progress.stopping = EarlyStopping(self.n_iter_no_change, self.tol, self.restore_best)
        training = Training(
            SparseMLP(progress.latest.layers, progress.latest.scaling),
            data,
            self._plan(settings, progress, n_threads),
            epochs_done=progress.epochs_done,
            validation=validation,
            scorer=self._score,
            stopping=progress.stopping if self.early_stopping else None,
            callbacks=self._own_callbacks(),
        )
        try:
            training.run(n_epochs)
        except DivergenceError:
            if progress.best is progress.latest:
                self._forget()
                raise
            self._remember(progress, training)
            raise
        except BaseException:
            self._remember(progress, training)
            raise
        self._remember(progress, training)

    def _plan(self, settings: Settings, progress: Progress, n_threads: int) -> TrainingPlan:
        return TrainingPlan(
            loss=self._loss(),
            optimizer=settings.optimizer,
            learning_rate=settings.learning_rate_init,
            schedule=settings.schedule,
            batch_size=settings.batch_size,
            balance_batches=self.batch_size == "auto",
            n_epochs=settings.max_iter,
            evolution=settings.evolution,
            shuffle=bool(self.shuffle),
            seed=progress.cycle_seed,
            n_threads=n_threads,
        )

    def _remember(self, progress: Progress, training: Training) -> None:
        """Take over what a training has come to."""
        before = len(progress.history)
        offset = before - progress.epochs_done
        for record in training.history:
            progress.history.append(replace(record, epoch=record.epoch + offset))
        progress.epochs_done = training.epochs_done
        self._progress = progress
        self.network_ = progress.best
        self.history_: History = progress.history
        self.n_iter_ = len(progress.history)
        self.loss_curve_ = self.history_.column("loss")
        self.loss_ = self.loss_curve_[-1] if self.loss_curve_ else np.inf
        scores = self.history_.column("validation_score")
        self.validation_scores_ = None if all(s is None for s in scores) else scores
        stopping = progress.stopping
        self.best_iteration_ = (
            None if stopping is None or stopping.best_epoch < 0 else offset + stopping.best_epoch
        )

    def _forget(self) -> None:
        for name in ("_progress", "network_"):
            self.__dict__.pop(name, None)

    # ---------------------------------------------------------------------------------- data

    def _shape_of(self, x: Any) -> Shape:
        is_classifier = hasattr(self, "classes_")
        return Shape(x.shape[0], x.shape[1], self._n_outputs(), is_classifier)

    def _compare_targets(self, y: Array, classes: Any) -> None:
        """Raise if the targets do not fit those of the first call."""

    def _split(self, y: Array, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        n_samples = y.shape[0]
        n_held = min(max(1, round(self.validation_fraction * n_samples)), n_samples - 1)
        if n_held < 1:
            raise InvalidInputError(
                "early stopping holds samples back for validation, and there is only 1 sample."
            )
        held = self._held_out(y, n_held, derive_generator(seed, "validation split"))
        rows = np.setdiff1d(np.arange(n_samples), held)
        return rows, np.sort(held)

    def _validation_of(self, eval_set: Any, settings: Settings, dtype: Any) -> TrainingData:
        if isinstance(eval_set, list) and len(eval_set) == 1:
            eval_set = eval_set[0]
        if not isinstance(eval_set, tuple | list) or len(eval_set) not in (2, 3):
            raise InvalidInputError(
                "`eval_set` must be a tuple (X, y) or (X, y, sample_weight) of validation data."
            )
        x = checked_samples(self, eval_set[0], reset=False)
        self._refuse_sparse_if_centred(x)
        target = self._check_target(eval_set[1])
        if target.shape[0] != x.shape[0]:
            raise InvalidInputError(
                f"`eval_set`: X has {x.shape[0]} samples, y has {target.shape[0]}."
            )
        weights = checked_weights(eval_set[2], x.shape[0]) if len(eval_set) == 3 else None
        return self._validation(x, target, weights, settings, dtype)

    def _validation(
        self, x: Any, y: Array, weights: Array | None, settings: Settings, dtype: Any
    ) -> TrainingData:
        targets = self._encode(y, replace(settings, label_smoothing=0.0), "`eval_set`")
        return TrainingData.of(x, targets, dtype, weights=weights)

    def _refuse_sparse_if_centred(self, x: Any) -> None:
        progress = getattr(self, "_progress", None)
        if progress is None or not scipy.sparse.issparse(x):
            return
        if progress.latest.scaling.shift is not None:
            raise InvalidInputError(
                "the network was trained on dense samples and centres its features; it cannot be"
                " trained or validated on sparse ones.\n"
                "  Give sparse samples from the first call on, or set `scale=None`."
            )

    def _own_callbacks(self) -> list[Callback]:
        given = self.callbacks
        return [] if given is None else [given] if isinstance(given, Callback) else list(given)

    # ---------------------------------------------------------------------------- prediction

    def _outputs(self, X: Any) -> Array:
        """Return raw outputs of the network, as float64."""
        check_is_fitted(self, "network_")
        x = checked_samples(self, X, reset=False)
        network: SparseMLP = self.network_
        n_threads = threads_for(self.n_jobs, network.n_connections * min(x.shape[0], 32))
        if scipy.sparse.issparse(x) and network.scaling.shift is not None:
            outputs = np.empty((x.shape[0], network.widths[-1]), dtype=network.dtype)
            for first in range(0, x.shape[0], _ROWS_AT_ONCE):
                part = slice(first, first + _ROWS_AT_ONCE)
                outputs[part] = network.outputs(x[part].toarray(), n_threads=n_threads)
        else:
            outputs = network.outputs(x, n_threads=n_threads)
        if not np.isfinite(outputs).all():
            raise InvalidInputError(
                "predictions are not finite: X holds values far outside those of training."
            )
        return outputs.astype(np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

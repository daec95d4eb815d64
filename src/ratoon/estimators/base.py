"""What classifier and regressor share: the way from `fit` to a trained network and back."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ratoon.errors import DivergenceError, InvalidInputError, InvalidParameterError
from ratoon.estimators.closed_form import is_to_be_solved, solve
from ratoon.estimators.data import Labelled, Rows, hold_out, parts_of_eval_set
from ratoon.estimators.fitting import Progress, learn_scaling, start_network
from ratoon.estimators.inputs import checked_samples, checked_weights
from ratoon.estimators.inspection import NetworkViews
from ratoon.estimators.parameters import check_parameters
from ratoon.estimators.presets import Settings, Shape, resolve
from ratoon.estimators.report import check_report_path, write_fit_report
from ratoon.estimators.sklearn_callbacks import (
    HAS_PROTOCOL,
    CallbackSupportMixin,
    Relay,
    with_callbacks,
)
from ratoon.estimators.strengths import is_strength, strengths
from ratoon.estimators.targets import TargetKind
from ratoon.estimators.threads import threads_for
from ratoon.evolution import GuidedSET
from ratoon.network import SparseMLP
from ratoon.rng import derive_generator, draw_root
from ratoon.samples.on_disk import DiskRows
from ratoon.training import (
    Callback,
    EarlyStopping,
    ProgressBar,
    Training,
    TrainingData,
    TrainingPlan,
)

_ROWS_AT_ONCE = 32


class BaseSparseMLP(CallbackSupportMixin, NetworkViews, TargetKind, BaseEstimator):
    """Fit, fit on, and raw outputs; what targets mean is for the classes below to say."""

    # ------------------------------------------------------------------------------- fitting

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """Return an estimator with the settings of the SET papers, but for what is given here.

        Two hidden layers 0.8 times as wide as the input, epsilon 10, a third of the connections
        replaced after every epoch, SGD with momentum 0.9 and decay 0.0002, batches of 5.
        """
        return cls(**{"preset": "paper", **overrides})

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        eval_set: Any = None,
        report: str | PathLike[str] | None = None,
    ) -> Self:
        """Train on samples ``X`` with targets ``y``.

        Parameters
        ----------
        X : array, memory map, HDF5 data set, SciPy matrix, pandas, polars or Arrow table, AnnData
            Samples in rows, features in columns.  Never changed, and not copied where that can be
            avoided; sparse matrices stay sparse, and what is on disk is read row by row.
        y : array-like
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            What each sample counts; k is the same as k copies of it.
        eval_set : tuple (X, y) or (X, y, sample_weight), optional
            Validation data: scored after every epoch, and what early stopping looks at.
        report : path, optional
            HTML file to write about the network: its score on the validation data, or else on the
            samples trained on, and the page says which.  Needs ``ratoon[report]``.

        Returns
        -------
        self
        """
        fresh = not (self.warm_start and hasattr(self, "_progress"))
        if report is None:
            return self._train(X, y, sample_weight, eval_set, fresh=fresh)
        check_report_path(report)
        self._train(X, y, sample_weight, eval_set, fresh=fresh)
        write_fit_report(self, report, X, y, eval_set)
        return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, classes: Any) -> Self:
        if self.early_stopping and eval_set is None:
            raise InvalidParameterError(
                "early stopping in `partial_fit` needs an `eval_set=(X, y)`.\n"
                "  Only `fit` sees all samples, and so can hold some of them back."
            )
        fresh = not hasattr(self, "_progress")
        return self._train(
            X, y, sample_weight, eval_set, fresh=fresh, one_epoch=True, classes=classes
        )

    def _train(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        eval_set: Any,
        *,
        fresh: bool,
        one_epoch: bool = False,
        classes: Any = None,
    ) -> Self:
        given = self._checked_parameters()
        if fresh:
            self._forget()
        labelled = self._labelled(X, y, sample_weight, reset=fresh)
        if fresh:
            self._learn_targets(labelled, classes)
            shape = self._shape_of(labelled)
            seed = draw_root(self.random_state)
        else:
            self._compare_targets(labelled, classes)
            shape, seed = self._progress.shape, self._progress.seed
        # Who wants to watch the epochs wants epochs.
        may_solve = fresh and not one_epoch and not getattr(self, "_skl_callbacks", None)
        if may_solve and is_to_be_solved(given, shape, labelled.x, eval_set):
            return self._solve(labelled, resolve(given, shape), shape, seed)
        settings = resolve(given, shape)
        held = None
        if self.early_stopping and eval_set is None:
            generator = derive_generator(seed, "validation split")
            strata = self._strata(labelled.y)
            held = hold_out(labelled.n_samples, self.validation_fraction, generator, strata)
        if isinstance(settings.evolution, GuidedSET) and settings.evolution.strength is None:
            found = self._strengths("f", labelled, held, settings)
            settings = replace(settings, evolution=replace(settings.evolution, strength=found))
        if fresh:
            progress = self._begin(labelled, held, settings, shape, seed)
        else:
            progress = self._progress
            self._refuse_sparse_if_centred(labelled.x, progress)
        validation = self._validation(labelled, held, eval_set, settings, progress)
        if not fresh and (not one_epoch or progress.epochs_done >= settings.max_iter):
            progress.begin_cycle(settings.optimizer.n_states)
        if self.early_stopping and progress.stopping is None:
            progress.stopping = EarlyStopping(self.n_iter_no_change, self.tol, self.restore_best)
        relay = None
        if HAS_PROTOCOL and not one_epoch:
            relay = Relay(self, X, y, sample_weight, settings.max_iter)
        callbacks = [*self._own_callbacks(with_bar=not one_epoch), *([relay] if relay else [])]
        training = self._training(labelled, held, validation, settings, progress, callbacks)
        self._run(training, progress, n_epochs=1 if one_epoch else None)
        if relay is not None:
            relay.finish()
        return self

    def _solve(self, labelled: Labelled, settings: Settings, shape: Shape, seed: int) -> Self:
        committee, record = solve(
            labelled.x,
            self._encode(labelled.y, replace(settings, label_smoothing=0.0), "y"),
            self._weigh(labelled),
            self._strata(labelled.y),
            self._loss(),
            seed,
        )
        network = committee.network
        progress = Progress(seed, shape, network, rewired=[0] * len(network.layers))
        progress.history.append(record)
        progress.epochs_done = 1
        self._progress = progress
        self._publish()
        self.cross_validated_outputs_ = committee.cross_validated
        self.member_shares_ = committee.shares
        return self

    def _begin(
        self, labelled: Labelled, held: Rows | None, settings: Settings, shape: Shape, seed: int
    ) -> Progress:
        scaling = learn_scaling(
            labelled.x,
            labelled.weights_without(held),
            scale=self.scale,
            clip=settings.clip,
            dtype=settings.dtype,
        )
        guide = None
        if is_strength(settings.start):
            guide = self._strengths(settings.start, labelled, held, settings)
        network = start_network(
            settings,
            shape,
            guide=guide,
            scaling=scaling,
            topology=self.topology,
            seed=seed,
            n_threads=threads_for(self.n_jobs, settings.n_connections),
        )
        return Progress(seed, shape, network, rewired=[0] * len(network.layers))

    def _strengths(
        self, how: Any, labelled: Labelled, held: Rows | None, settings: Settings
    ) -> NDArray[np.float64]:
        return strengths(
            how,
            labelled.x,
            self._encode(labelled.y, replace(settings, label_smoothing=0.0), "y"),
            labelled.weights_without(held),
            has_classes=self._is_classifier,
        )

    def _training(
        self,
        labelled: Labelled,
        held: Rows | None,
        validation: TrainingData | None,
        settings: Settings,
        progress: Progress,
        callbacks: list[Callback],
    ) -> Training:
        network = progress.latest
        batch = min(settings.batch_size, labelled.n_samples)
        plan = TrainingPlan(
            loss=self._loss(),
            optimizer=settings.optimizer,
            learning_rate=settings.learning_rate_init,
            schedule=settings.schedule,
            batch_size=batch,
            balance_batches=isinstance(self.batch_size, str),
            n_epochs=settings.max_iter,
            evolution=settings.evolution,
            shuffle=bool(self.shuffle),
            seed=progress.cycle_seed,
            n_threads=threads_for(self.n_jobs, network.n_connections * batch),
        )
        data = TrainingData.of(
            labelled.x,
            self._encode(labelled.y, settings, "y"),
            network.dtype,
            weights=self._weigh(labelled),
            rows=None if held is None else np.delete(np.arange(labelled.n_samples), held),
        )
        return Training(
            network,
            data,
            plan,
            epochs_done=progress.epochs_done,
            evolution_state=progress.evolution_state,
            validation=validation,
            scorer=self._score,
            stopping=progress.stopping if self.early_stopping else None,
            callbacks=callbacks,
        )

    def _run(self, training: Training, progress: Progress, *, n_epochs: int | None) -> None:
        try:
            # `progress` keeps the latest network beside the best, to go on from.
            training.run(n_epochs, restore_best=False)
            if not progress.latest.is_finite():
                raise DivergenceError(
                    "training diverged: weights are not finite after the last step.\n"
                    f"  The learning rate is {training.plan.learning_rate:.3g}; try a tenth of it,"
                    f" scale the features, or clip them."
                )
        except DivergenceError:
            # Never keep a network that is not made of numbers.
            self._forget()
            if progress.best is not progress.latest:
                progress.latest = progress.best.copy()
                self._remember(progress, training)
            raise
        except BaseException:
            # Interrupted: what was learnt so far is there to use, and to go on from.
            self._remember(progress, training)
            raise
        self._remember(progress, training)

    def _forget(self) -> None:
        """Be as if never fitted: a network and classes of different fits must not meet."""
        self.__dict__.pop("_progress", None)
        self.__dict__.pop("network_", None)

    def _remember(self, progress: Progress, training: Training) -> None:
        """Take over what a training has come to."""
        before = len(progress.history) - progress.epochs_done
        for record in training.history:
            progress.history.append(replace(record, epoch=record.epoch + before))
        progress.epochs_done = training.epochs_done
        progress.evolution_state = training.evolution_state
        progress.rewired = [
            old + new for old, new in zip(progress.rewired, training.rewired_by_layer, strict=True)
        ]
        self._progress = progress
        self._publish()

    def _publish(self) -> None:
        """Set the fitted attributes from where training stands."""
        progress = self._progress
        self.network_ = progress.best
        self.history_ = progress.history
        self.n_iter_ = len(progress.history)
        self.loss_curve_ = progress.history.column("loss")
        self.loss_ = self.loss_curve_[-1] if self.loss_curve_ else None
        scores = progress.history.column("validation_score")
        self.validation_scores_ = scores if any(s is not None for s in scores) else None
        self.best_iteration_ = None
        if progress.stopping is not None and progress.stopping.best_epoch >= 0:
            before = self.n_iter_ - progress.epochs_done
            self.best_iteration_ = before + progress.stopping.best_epoch

    # ---------------------------------------------------------------------- parameters, data

    def _checked_parameters(self) -> dict[str, Any]:
        given: dict[str, Any] = self.get_params(deep=False)
        check_parameters(given, owner=type(self).__name__)
        threads_for(self.n_jobs, 1)  # raises if it is no number of threads
        return given

    def _shape_of(self, labelled: Labelled) -> Shape:
        n_features = int(labelled.x.shape[1])
        return Shape(labelled.n_samples, n_features, self._n_outputs(), self._is_classifier)

    def _labelled(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Labelled:
        if y is None:
            raise InvalidInputError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y"
                f" is None."
            )
        x = checked_samples(self, X, reset=reset, streamed=True)
        if isinstance(x, DiskRows) and not reset:
            x.check()  # where scaling was learnt, everything has been read and looked at
        return Labelled(x, self._check_target(y), checked_weights(sample_weight, x.shape[0]))

    def _validation(
        self,
        labelled: Labelled,
        held: Rows | None,
        eval_set: Any,
        settings: Settings,
        progress: Progress,
    ) -> TrainingData | None:
        if held is not None:
            validation = labelled.take(held)
        elif eval_set is not None:
            validation = self._labelled(*parts_of_eval_set(eval_set), reset=False)
            self._refuse_sparse_if_centred(validation.x, progress)
        else:
            return None
        targets = self._encode(validation.y, replace(settings, label_smoothing=0.0), "`eval_set`")
        dtype = progress.latest.dtype
        return TrainingData.of(validation.x, targets, dtype, weights=validation.weights)

    def _refuse_sparse_if_centred(self, x: Any, progress: Progress) -> None:
        if scipy.sparse.issparse(x) and progress.latest.scaling.shift is not None:
            raise InvalidInputError(
                "the network began with dense samples and centres its features; it cannot be"
                " trained or validated on sparse ones.\n"
                "  Give sparse samples from the first call on, or set `scale=None`."
            )

    def _own_callbacks(self, *, with_bar: bool) -> list[Callback]:
        given = self.callbacks
        listed = [] if given is None else [given] if isinstance(given, Callback) else list(given)
        return [*listed, ProgressBar()] if self.verbose and with_bar else listed

    # ---------------------------------------------------------------------------- prediction

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        """Return raw outputs of the network."""
        check_is_fitted(self)
        x = checked_samples(self, X, reset=False, streamed=True)
        network: SparseMLP = self.network_
        n_threads = threads_for(self.n_jobs, network.n_connections * min(x.shape[0], _ROWS_AT_ONCE))
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

    def save(self, path: str | Path, *, optimizer: bool = True) -> None:
        """Write the estimator to one safe file, from which `ratoon.load` brings it back.

        Parameters
        ----------
        path : path
            Where to; replaced as a whole or not at all.
        optimizer : bool, default=True
            Also save what the optimizer keeps, one or two numbers per connection.  Predictions do
            not need it; `partial_fit` needs it to go on exactly where training stood.
        """
        from ratoon.estimators.files import save

        save(self, path, optimizer=optimizer)

    # --------------------------------------------------------------------------- scikit-learn

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

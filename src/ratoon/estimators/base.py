"""What classifier and regressor share: the way from `fit` to a trained network and back."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ratoon.errors import DivergenceError, InvalidInputError, InvalidParameterError
from ratoon.estimators.data import Labelled, hold_out, parts_of_eval_set
from ratoon.estimators.fit_report import check_report_path, write_fit_report
from ratoon.estimators.fitting import learn_scaling, start_network
from ratoon.estimators.parameters import check_parameters
from ratoon.estimators.presets import Settings, Shape, resolve
from ratoon.estimators.sklearn_callbacks import (
    HAS_PROTOCOL,
    CallbackSupportMixin,
    Relay,
    with_callbacks,
)
from ratoon.estimators.solving import is_to_be_solved, solve
from ratoon.estimators.strengths import is_strength, strengths
from ratoon.estimators.target_kind import TargetKind
from ratoon.estimators.threads import threads_for
from ratoon.estimators.views import NetworkViews
from ratoon.evolution import GuidedSET
from ratoon.network import SparseMLP
from ratoon.rng import derive_generator, draw_root
from ratoon.samples.base import Rows, Samples
from ratoon.samples.checked import checked_samples, checked_weights, targets_or_labels
from ratoon.training import (
    Callback,
    EarlyStopping,
    ProgressBar,
    Training,
    TrainingData,
    TrainingPlan,
    TrainingState,
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
        y: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        report: str | PathLike[str] | None = None,
    ) -> Self:
        """Train on samples ``X`` with targets ``y``.

        Parameters
        ----------
        X : array, memory map, HDF5 data set, SciPy matrix, table, AnnData or Dataset
            Samples in rows, features in columns; a table is one of pandas, polars or Arrow.  Never
            changed, and copied only where that cannot be avoided.  Sparse matrices stay sparse, and
            samples on disk are read in parts.  Feature names are learned where X has them.
        y : array-like, optional
            Targets.  Only a `Dataset` can be given without; its own labels are used then.
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
        fresh = not (self.warm_start and hasattr(self, "_state"))
        y = targets_or_labels(X, y)
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
        fresh = not hasattr(self, "_state")
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
            shape = self._shape = self._shape_of(labelled)
            seed = draw_root(self.random_state)
        else:
            self._compare_targets(labelled, classes)
            shape, seed = self._shape, self._state.seed
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
            state = self._begin(labelled, held, settings, shape, seed)
        else:
            state = self._state
            self._refuse_sparse_if_centred(labelled.x, state.network)
        validation = self._validation(labelled, held, eval_set, settings, state.network)
        if not fresh and (not one_epoch or state.epochs_done >= settings.max_iter):
            state.begin_cycle(settings.optimizer.n_states)
        if self.early_stopping and state.stopping is None:
            state.stopping = EarlyStopping(self.n_iter_no_change, self.tol, self.restore_best)
        relay = None
        if HAS_PROTOCOL and not one_epoch:
            relay = Relay(self, X, y, sample_weight, settings.max_iter)
        callbacks = [*self._own_callbacks(with_bar=not one_epoch), *([relay] if relay else [])]
        training = self._training(labelled, held, validation, settings, state, callbacks)
        self._run(training, n_epochs=1 if one_epoch else None)
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
        state = TrainingState(network, seed, epochs_done=1)
        state.history.append(record)
        self._publish(state)
        self.cross_validated_outputs_ = committee.cross_validated
        self.member_shares_ = committee.shares
        return self

    def _begin(
        self, labelled: Labelled, held: Rows | None, settings: Settings, shape: Shape, seed: int
    ) -> TrainingState:
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
        return TrainingState(network, seed)

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
        state: TrainingState,
        callbacks: list[Callback],
    ) -> Training:
        network = state.network
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
            seed=state.cycle_seed,
            n_threads=threads_for(self.n_jobs, network.n_connections * batch),
        )
        data = TrainingData.of(
            labelled.x,
            self._encode(labelled.y, settings, "y"),
            network.dtype,
            weights=self._weigh(labelled),
            rows=None if held is None else np.delete(np.arange(labelled.n_samples), held),
        )
        training = Training(
            state, data, plan, validation=validation, scorer=self._score, callbacks=callbacks
        )
        if not self.early_stopping:
            training.stopping = None  # one of an earlier call keeps its best network
        return training

    def _run(self, training: Training, *, n_epochs: int | None) -> None:
        state = training.state
        try:
            # The state keeps the latest network next to the best one, to train on.
            training.run(n_epochs, restore_best=False)
            if not state.network.is_finite():
                raise DivergenceError(
                    "training diverged: weights are not finite after the last step.\n"
                    f"  The learning rate is {training.plan.learning_rate:.3g}; try a tenth of it,"
                    f" scale the features, or clip them."
                )
        except DivergenceError:
            # Never keep a network with weights that are not finite.
            self._forget()
            if state.best is not state.network:
                state.network = state.best.copy()
                self._publish(state)
            raise
        except BaseException:
            # After an interruption the network can be used and trained on.
            self._publish(state)
            raise
        self._publish(state)

    def _forget(self) -> None:
        """Remove what an earlier fit left: networks and classes of two fits must not mix."""
        self.__dict__.pop("_state", None)
        self.__dict__.pop("network_", None)

    def _publish(self, state: TrainingState) -> None:
        """Keep what training has reached, and set the fitted attributes from it."""
        self._state = state
        self.network_ = state.best
        self.history_ = state.history
        self.n_iter_ = len(state.history)
        self.loss_curve_ = state.history.column("loss")
        self.loss_ = self.loss_curve_[-1] if self.loss_curve_ else None
        scores = state.history.column("validation_score")
        self.validation_scores_ = scores if any(s is not None for s in scores) else None
        self.best_iteration_ = None
        if state.stopping is not None and state.stopping.best_epoch >= 0:
            self.best_iteration_ = state.epochs_before + state.stopping.best_epoch

    # ---------------------------------------------------------------------- parameters, data

    def _checked_parameters(self) -> dict[str, Any]:
        given: dict[str, Any] = self.get_params(deep=False)
        check_parameters(given, owner=type(self).__name__)
        threads_for(self.n_jobs, 1)  # raises if it is no number of threads
        return given

    def _shape_of(self, labelled: Labelled) -> Shape:
        n_features = labelled.x.n_features
        return Shape(labelled.n_samples, n_features, self._n_outputs(), self._is_classifier)

    def _labelled(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Labelled:
        y = targets_or_labels(X, y)
        if y is None:
            raise InvalidInputError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y"
                f" is None."
            )
        x = checked_samples(self, X, reset=reset, streamed=True)
        if not reset:
            x.check()  # the first call reads everything when it learns the scaling
        return Labelled(x, self._check_target(y), checked_weights(sample_weight, x.n_rows))

    def _validation(
        self,
        labelled: Labelled,
        held: Rows | None,
        eval_set: Any,
        settings: Settings,
        network: SparseMLP,
    ) -> TrainingData | None:
        if held is not None:
            validation = labelled.take(held)
        elif eval_set is not None:
            validation = self._labelled(*parts_of_eval_set(eval_set), reset=False)
            self._refuse_sparse_if_centred(validation.x, network)
        else:
            return None
        targets = self._encode(validation.y, replace(settings, label_smoothing=0.0), "`eval_set`")
        return TrainingData.of(validation.x, targets, network.dtype, weights=validation.weights)

    def _refuse_sparse_if_centred(self, x: Samples, network: SparseMLP) -> None:
        if x.is_sparse and network.scaling.shift is not None:
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
        n_threads = threads_for(self.n_jobs, network.n_connections * min(x.n_rows, _ROWS_AT_ONCE))
        if x.is_sparse and network.scaling.shift is not None:
            outputs = np.empty((x.n_rows, network.widths[-1]), dtype=network.dtype)
            for first in range(0, x.n_rows, _ROWS_AT_ONCE):
                part = slice(first, first + _ROWS_AT_ONCE)
                outputs[part] = network.outputs(x.dense(part), n_threads=n_threads)
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

"""The base class of classifier and regressor: from `fit` to a trained network."""

from __future__ import annotations

import copyreg
import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ratoon import guard
from ratoon.committee import Committee
from ratoon.datasets import Dataset
from ratoon.errors import DivergenceError, InvalidInputError, InvalidParameterError
from ratoon.estimators.assembly import TrainingAssembly
from ratoon.estimators.averaged import fit_average
from ratoon.estimators.closed_form import solve
from ratoon.estimators.data import Labelled, hold_out, parts_of_eval_set, with_groups
from ratoon.estimators.explaining import Explaining
from ratoon.estimators.foreign import UnknownParameterError, hint_for
from ratoon.estimators.importance import RankedFeatures
from ratoon.estimators.inspection import NetworkInspection
from ratoon.estimators.memorising import warn_if_memorised
from ratoon.estimators.names import naming_of
from ratoon.estimators.parameters import check_parameters
from ratoon.estimators.plain import MissingStrategy
from ratoon.estimators.planning import check_memory, check_memory_of_network
from ratoon.estimators.presets import Shape, is_open
from ratoon.estimators.report import check_report_path, write_fit_report
from ratoon.estimators.settings import FitCall, Settings, resolve
from ratoon.estimators.sklearn_callbacks import (
    CALLS_OF_FIT,
    HAS_PROTOCOL,
    CallbackSupportMixin,
    Relay,
    with_callbacks,
)
from ratoon.estimators.threads import threads_for
from ratoon.estimators.trained_rows import TrainedRows
from ratoon.evolution import warn_if_all_full
from ratoon.history import EpochRecord
from ratoon.network import SparseMLP
from ratoon.preparation import Preparation
from ratoon.rng import derive_generator, draw_root
from ratoon.samples.base import Rows, Samples
from ratoon.samples.checked import checked_samples, checked_weights, targets_or_labels
from ratoon.samples.groups import hold_out_groups, warn_if_confounded
from ratoon.samples.prepared import learn_preparation, prepared
from ratoon.storage.document import check_storable, text_array
from ratoon.training import (
    Callback,
    ProgressBar,
    Training,
    TrainingState,
)

_ROWS_AT_ONCE = 32


def _image_shape(X: Any, earlier: Settings | None) -> tuple[int, ...] | None:
    """Return the shape of the images of a data set, or of the fit that training continues."""
    if isinstance(X, Dataset) and X.image_shape is not None:
        return X.image_shape
    before = None if earlier is None else earlier.augment
    # Data sets have channels last; another layout has to be given again.
    return None if before is None or before.channels != "last" else before.shape


class BaseSparseMLP(
    CallbackSupportMixin,
    NetworkInspection,
    RankedFeatures,
    Explaining,
    TrainedRows,
    TrainingAssembly,
    BaseEstimator,
):
    """Fit, training further, and raw outputs; subclasses define what targets mean."""

    preparation_: Preparation | None

    # ------------------------------------------------------------------------------- fitting

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """Return an estimator with the settings of the SET papers, except those given here.

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
        groups: Any = None,
    ) -> Self:
        """Train on samples ``X`` with targets ``y``.

        Parameters
        ----------
        X : array, memory map, HDF5 data set, SciPy matrix, table, AnnData or Dataset
            Samples in rows, features in columns; a table is one of pandas, polars or Arrow.  Never
            changed, and copied only where that cannot be avoided; arrays of other libraries are
            shared through DLPack.  Sparse matrices stay sparse.  Samples on disk, Dask arrays and
            Arrow datasets are read in parts.  Feature names are learned where X has them.
        y : array-like, optional
            Targets.  Only a `Dataset` can be given without; its own labels are used then.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each sample; k is the same as k copies of it.
        eval_set : tuple (X, y) or (X, y, sample_weight), optional
            Validation data, scored after every epoch and used by early stopping.
        report : path, optional
            HTML file to write about the network, with its score on the validation data or, without
            any, on the training data.  Needs ``ratoon[report]``.
        groups : array-like of shape (n_samples,), optional
            Group of each sample, such as its patient or batch; by default those of a `Dataset`.
            Samples of a group stay together where early stopping holds samples out and in the
            folds of the closed form.  A warning is given if the groups give the classes away.

        Returns
        -------
        self
        """
        with self._in_training():
            self._checked_parameters()
            fresh = not (self.warm_start and hasattr(self, "_state"))
            y = targets_or_labels(X, y)
            if report is None:
                return self._fit(X, y, sample_weight, eval_set, fresh=fresh, groups=groups)
            check_report_path(report)
            self._fit(X, y, sample_weight, eval_set, fresh=fresh, groups=groups)
            write_fit_report(self, report, X, y, eval_set, groups)
            return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, classes: Any) -> Self:
        self._checked_parameters()
        if not is_open(self.early_stopping) and self.early_stopping and eval_set is None:
            raise InvalidParameterError(
                "early stopping in `partial_fit` needs an `eval_set=(X, y)`.\n"
                "  Only `fit` sees all samples and can hold some of them back."
            )
        with self._in_training():
            fresh = not hasattr(self, "_state")
            return self._fit(
                X, y, sample_weight, eval_set, fresh=fresh, one_epoch=True, classes=classes
            )

    def _in_training(self) -> AbstractContextManager[None]:
        """Mark this estimator as being trained: neither another thread nor a callback may start."""
        return guard.training(self, name=f"this {type(self).__name__}", nested=False)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        eval_set: Any,
        *,
        fresh: bool,
        one_epoch: bool = False,
        classes: Any = None,
        groups: Any = None,
    ) -> Self:
        self._checked_parameters()
        if isinstance(self.evolution, MissingStrategy):
            raise InvalidParameterError(self.evolution.message)
        earlier = None if fresh else self.settings_
        if fresh:
            self._forget()
        labelled = with_groups(self._labelled(X, y, sample_weight, reset=fresh), X, groups)
        if fresh:
            if hasattr(self, "feature_names_in_"):
                check_storable(text_array(list(map(str, self.feature_names_in_))), "feature names")
            self._learn_targets(labelled, classes)
            shape = self._shape = self._shape_of(labelled)
            seed = draw_root(self.random_state)
        else:
            self._compare_targets(labelled, classes)
            shape, seed = self._shape, self._state.seed
        call = FitCall(
            n_stored=labelled.x.n_stored,
            has_eval_set=eval_set is not None,
            needs_epochs=self._why_epochs(one_epoch=one_epoch),
            continues=earlier,
            image_shape=_image_shape(X, earlier),
            one_epoch=one_epoch,
            is_on_disk=labelled.x.is_on_disk,
        )
        settings = resolve(self, shape, call)
        if fresh:
            self.naming_ = naming_of(X)
            if labelled.groups is not None:
                strata = self._strata(labelled.y)
                warn_if_confounded(labelled.groups.codes, strata, stacklevel=2 + CALLS_OF_FIT)
        choosing = eval_set if settings.early_stopping else None
        self._note_rows(labelled, choosing, fresh=fresh, one_epoch=one_epoch)
        if settings.is_closed_form:
            return self._solve(labelled, eval_set, settings, shape, seed)
        if settings.averages:
            return self._average(labelled, shape, call, seed)
        return self._train(
            labelled,
            eval_set,
            settings,
            shape,
            seed,
            one_epoch=one_epoch,
            original=(X, y, sample_weight),
        )

    def _preset_changes(self, shape: Shape) -> dict[str, Any]:
        """Return values of parameters that differ from those of the preset."""
        del shape
        return {}

    def _why_epochs(self, *, one_epoch: bool) -> str:
        """Return why the fit needs epochs; empty if it does not."""
        if one_epoch:
            return "`partial_fit` trains for one epoch"
        # Callbacks imply iterative training.
        return "callbacks of scikit-learn are set" if getattr(self, "_skl_callbacks", None) else ""

    def _solve(
        self, labelled: Labelled, eval_set: Any, settings: Settings, shape: Shape, seed: int
    ) -> Self:
        """Fit in closed form."""
        check_memory(settings, shape)
        if self.verbose:
            print(
                f"solving in closed form ({shape.n_samples:,} samples, {shape.n_features:,}"
                f" features) ...",
                file=sys.stderr,
                flush=True,
            )
        labelled = self._prepared(labelled, settings, None)
        committee, record = self._solved(labelled, seed)
        network = committee.network
        validation = self._validation(labelled, None, eval_set, network)
        if validation is not None:
            self.network_ = network
            outputs = self._outputs(parts_of_eval_set(eval_set)[0])
            record = replace(record, validation_score=self._score(outputs, validation))
        state = TrainingState(network, seed, epochs_done=1)
        state.history.append(record)
        self.settings_ = replace(settings, given_topology=(True,) * len(network.layers))
        self._publish(state)
        self.cross_validated_outputs_ = committee.cross_validated
        self.member_shares_ = committee.shares
        self._learn_associations(labelled, None, one_epoch=False)
        self._finished(labelled)
        return self

    def _average(self, labelled: Labelled, shape: Shape, call: FitCall, seed: int) -> Self:
        """Train networks of several kinds, and average them."""
        check_memory(resolve(self, shape, call), shape)
        if labelled.weights is not None and not labelled.weights.all():
            labelled = labelled.take(np.flatnonzero(labelled.weights))
            shape = self._shape_of(labelled)
        labelled = self._prepared(labelled, resolve(self, shape, call), None)
        average = fit_average(self, labelled, shape, call, seed)
        state = TrainingState(average.network, seed, epochs_done=len(average.history))
        state.history = average.history
        self.settings_ = average.settings
        self._publish(state)
        self.cross_validated_outputs_ = average.outputs
        self.member_shares_ = average.shares
        if average.is_interrupted:
            raise KeyboardInterrupt  # the networks that were finished can be used
        self._learn_associations(labelled, None, one_epoch=False)
        self._finished(labelled)
        return self

    def _solved(self, labelled: Labelled, seed: int) -> tuple[Committee, EpochRecord]:
        """Return the committee that solves the problem, and the record of the fit."""
        return solve(
            labelled.x,
            self._encode(labelled.y, 0.0, "y"),
            self._weigh(labelled),
            self._strata(labelled.y),
            self._loss(),
            seed,
            None if labelled.groups is None else labelled.groups.codes,
        )

    def _finished(self, labelled: Labelled) -> None:
        """Learn what needs the fitted network, from prepared training samples."""

    def _train(
        self,
        labelled: Labelled,
        eval_set: Any,
        settings: Settings,
        shape: Shape,
        seed: int,
        *,
        one_epoch: bool,
        original: tuple[Any, Any, Any],
    ) -> Self:
        """Train step by step: a new network, or further the one there is."""
        if not hasattr(self, "_state"):
            check_memory(settings, shape)
        else:
            check_memory_of_network(self.network_, settings, is_sparse=labelled.x.is_sparse)
        held = None
        if settings.early_stopping and eval_set is None:
            generator = derive_generator(seed, "validation split")
            strata = self._strata(labelled.y)
            fraction = settings.validation_fraction
            if labelled.groups is None:
                held = hold_out(labelled.n_samples, fraction, generator, strata)
            else:
                held = hold_out_groups(labelled.groups.codes, strata, fraction, generator)
        labelled = self._prepared(labelled, settings, held)
        fresh = not hasattr(self, "_state")
        if fresh:
            state = self._begin(labelled, held, settings, shape, seed)
            settings = self.settings_
        else:
            state = self._state
            self._refuse_sparse_if_centred(labelled.x, state.network)
        if not (one_epoch and state.epochs_done) and not is_open(self.evolution):
            warn_if_all_full(settings.evolution, state.network.layers, stacklevel=3 + CALLS_OF_FIT)
        validation = self._validation(labelled, held, eval_set, state.network)
        if not fresh and (not one_epoch or state.epochs_done >= settings.max_iter):
            state.begin_cycle(settings.optimizer.n_states)
        state.stopping = state.stopping or settings.stopping()
        batch = min(settings.batch_size, labelled.n_samples)
        work = state.network.n_connections * batch
        settings = replace(settings, batch_size=batch, n_threads=threads_for(self.n_jobs, work))
        relay = None
        if HAS_PROTOCOL and not one_epoch:
            relay = Relay(self, *original, settings.max_iter)
        callbacks = [*self._own_callbacks(with_bar=not one_epoch), *([relay] if relay else [])]
        training = self._training(
            labelled,
            held,
            validation,
            self._with_strength(settings, labelled, held),
            state,
            callbacks,
        )
        self.settings_ = settings
        self._run(training, n_epochs=1 if one_epoch else None)
        if not one_epoch:
            warn_if_memorised(
                state.history,
                labelled.n_samples,
                keeps_best=settings.early_stopping and settings.restore_best,
                stacklevel=4 + CALLS_OF_FIT,
            )
        self._learn_associations(labelled, held, one_epoch=one_epoch)
        if relay is not None:
            relay.finish()
        self._finished(labelled)
        return self

    def _prepared(self, labelled: Labelled, settings: Settings, held: Rows | None) -> Labelled:
        """Return samples as `prepare` asks; learned from the training rows of the first fit."""
        if not hasattr(self, "_state"):
            self.preparation_ = None
            if settings.prepare is not None:
                rows = np.delete(np.arange(labelled.n_samples), [] if held is None else held)
                of = labelled.groups
                self.preparation_ = learn_preparation(
                    labelled.x,
                    settings.prepare,
                    rows,
                    None if of is None else (of.codes, of.names),
                    "" if of is None else of.column,
                )
        return labelled.prepared(self.preparation_)

    def _begin(
        self, labelled: Labelled, held: Rows | None, settings: Settings, shape: Shape, seed: int
    ) -> TrainingState:
        scaling, scale = self._learn_scaling(labelled, held, settings)
        self.settings_ = replace(settings, scale=scale)
        names = getattr(self.topology[0], "names", ()) if self.topology else ()
        if names:
            self.group_names_ = text_array(list(map(str, names)))
            check_storable(self.group_names_, "names of groups")
        return TrainingState(self._start(labelled, held, settings, shape, seed, scaling), seed)

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
            settings = self.settings_
            self._forget()
            if state.best is not state.network:
                state.network = state.best.copy()
                self.settings_ = settings
                self._publish(state)
            raise
        except BaseException:
            # After an interruption the network can be used and trained on.
            self._publish(state)
            raise
        self._publish(state)

    def _forget(self) -> None:
        """Remove the last fit: its network and the classes of a new fit must not be mixed."""
        for name in (
            "_state",
            "_trained_rows",
            "network_",
            "settings_",
            "member_shares_",
            "cross_validated_outputs_",
            "group_names_",
            "naming_",
        ):
            self.__dict__.pop(name, None)
        self.preparation_ = None
        self._forget_associations()

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
        has_scores = self.validation_scores_ is not None
        if has_scores and state.stopping is not None and state.stopping.best_epoch >= 0:
            self.best_iteration_ = state.epochs_before + state.stopping.best_epoch

    # ---------------------------------------------------------------------- parameters, data

    def _checked_parameters(self) -> dict[str, Any]:
        given: dict[str, Any] = self.get_params(deep=False)
        check_parameters(given, owner=type(self).__name__)
        threads_for(self.n_jobs, 1)  # raises if it is not a number of threads
        return given

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

    def _own_callbacks(self, *, with_bar: bool) -> list[Callback]:
        given = self.callbacks
        listed = [] if given is None else [given] if isinstance(given, Callback) else list(given)
        return [*listed, ProgressBar()] if self.verbose and with_bar else listed

    # ---------------------------------------------------------------------------- prediction

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        """Return raw outputs of the network."""
        check_is_fitted(self)
        return self._outputs_of(self._read_prepared(X))

    def _outputs_of(self, x: Samples) -> NDArray[np.float64]:
        """Return raw outputs of prepared samples."""
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

    def _read_prepared(self, X: Any, rows: Any = None) -> Samples:
        """Return samples to predict, prepared as those of training.

        With ``rows`` only these; a group is centred by all samples of ``X`` all the same.
        """
        x = checked_samples(self, X, reset=False, streamed=True)
        if rows is None:
            return prepared(x, self.preparation_, getattr(X, "groups", None))
        if self.preparation_ is None or not self.preparation_.centres:
            return prepared(x[rows], self.preparation_)
        return prepared(x, self.preparation_, getattr(X, "groups", None))[rows]

    def save(self, path: str | Path, *, optimizer: bool = True, fingerprints: bool = True) -> None:
        """Write the estimator to one safe file, which `ratoon.load` reads.

        Parameters
        ----------
        path : path
            Where to; replaced as a whole or not at all.
        optimizer : bool, default=True
            Also save the state of the optimizer, one or two numbers per connection.  Predictions
            do not need it; `partial_fit` needs it to continue exactly.
        fingerprints : bool, default=True
            Also save fingerprints of the training samples, 8 bytes each, by which `was_trained_on`
            and ``ratoon evaluate`` know them.  Without them nobody can check whether given samples
            were used for training.

        Raises
        ------
        AlreadyTrainingError
            If another thread is training the estimator.  A callback may save the estimator that is
            being trained, once that is fitted.
        """
        from ratoon.estimators.files import save

        save(self, path, optimizer=optimizer, fingerprints=fingerprints)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Pickles and copies keep every attribute.  A pickle of a network that another thread is
        # rewiring would be of two moments.
        del protocol
        with guard.reading(self, name=f"this {type(self).__name__}", action="pickling"):
            return copyreg.__newobj__, (type(self),), super().__getstate__()  # type: ignore[attr-defined]

    def __getstate__(self) -> Any:
        """Return the state for `skops.io.dump`: parameters, or the bytes that `save` writes."""
        from ratoon.estimators.persistence import plain_state

        with guard.reading(self, name=f"this {type(self).__name__}", action="saving"):
            return plain_state(self)

    def __setstate__(self, state: Any) -> None:
        from ratoon.estimators.persistence import is_plain_state, restore

        if is_plain_state(state):
            restore(self, state)
        else:
            super().__setstate__(state)

    # --------------------------------------------------------------------------- scikit-learn

    def set_params(self, **params: Any) -> Self:
        """Set parameters; for the name of another library's the error names the right one."""
        for name in params.keys() - self._get_param_names():
            if (message := hint_for(type(self).__name__, name)) is not None:
                raise UnknownParameterError(message)
        super().set_params(**params)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

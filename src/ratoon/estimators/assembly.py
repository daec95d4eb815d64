"""What a training of an estimator is made of: scaling, first network, samples, plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.estimators.data import Labelled, parts_of_eval_set, with_groups
from ratoon.estimators.fitting import learn_scaling, start_network
from ratoon.estimators.presets import Shape
from ratoon.estimators.settings import Settings
from ratoon.estimators.strengths import strengths
from ratoon.estimators.targets import TargetKind
from ratoon.estimators.threads import threads_for
from ratoon.evolution import GuidedSET
from ratoon.kernels import Scaling
from ratoon.losses import mean_loss
from ratoon.network import SparseMLP
from ratoon.preparation import Preparation
from ratoon.samples.base import Rows, Samples
from ratoon.training import Callback, CoxRunner, Training, TrainingData, TrainingPlan, TrainingState


class TrainingAssembly(TargetKind):
    """From samples and settings to a `Training`, for an estimator."""

    topology: Any
    n_jobs: Any
    preparation_: Preparation | None

    def _labelled(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Labelled:
        """Return checked samples with their targets."""
        raise NotImplementedError

    def _learn_scaling(
        self, labelled: Labelled, held: Rows | None, settings: Settings
    ) -> tuple[Scaling, str | None]:
        return learn_scaling(
            labelled.x,
            labelled.weights_without(held),
            scale=settings.scale,
            clip=settings.clip,
            dtype=settings.dtype,
        )

    def _start(
        self,
        labelled: Labelled,
        held: Rows | None,
        settings: Settings,
        shape: Shape,
        seed: int,
        scaling: Scaling,
    ) -> SparseMLP:
        """Draw the first network."""
        guide = None
        if settings.is_guided_start:
            guide = self._strengths(settings.start, labelled, held)
        return start_network(
            settings,
            shape,
            guide=guide,
            scaling=scaling,
            topology=self.topology,
            seed=seed,
            n_threads=threads_for(self.n_jobs, settings.n_connections),
        )

    def _with_strength(self, settings: Settings, labelled: Labelled, held: Rows | None) -> Settings:
        """Return settings whose strategy knows the strength of the features, if it needs it."""
        evolution = settings.evolution
        if not (isinstance(evolution, GuidedSET) and evolution.strength is None):
            return settings
        strength = self._strengths("f", labelled, held)
        return replace(settings, evolution=replace(evolution, strength=strength))

    def _strengths(self, how: Any, labelled: Labelled, held: Rows | None) -> NDArray[np.float64]:
        return strengths(
            how,
            labelled.x,
            self._encode(labelled.y, 0.0, "y"),
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
        plan = TrainingPlan(
            loss=self._loss(),
            optimizer=settings.optimizer,
            learning_rate=settings.learning_rate_init,
            schedule=settings.schedule,
            batch_size=settings.batch_size,
            balance_batches=settings.balance_batches,
            n_epochs=settings.max_iter,
            evolution=settings.evolution,
            shuffle=settings.shuffle,
            seed=state.cycle_seed,
            n_threads=settings.n_threads,
            augment=settings.augment,
        )
        targets = self._encode(labelled.y, settings.label_smoothing, "y")
        weights = self._weigh(labelled)
        runner = self._runner(targets, weights)
        data = TrainingData.of(
            labelled.x,
            # A runner puts gradients there.
            targets if runner is None else np.zeros((labelled.n_samples, self._n_outputs())),
            network.dtype,
            weights=weights if runner is None else None,
            rows=None if held is None else np.delete(np.arange(labelled.n_samples), held),
        )
        training = Training(
            state,
            data,
            plan,
            validation=validation,
            scorer=self._score,
            callbacks=callbacks,
            runner=runner,
            loss_of=self._validation_loss,
        )
        if settings.n_iter_no_change is None:
            training.stopping = None  # one of an earlier call keeps its best network
        return training

    def _runner(self, targets: Array, weights: Array | None) -> CoxRunner | None:
        """Return what takes the steps of a training instead of the native loop."""
        del targets, weights
        return None

    def _validation_loss(self, outputs: Array, data: TrainingData) -> float:
        """Return the loss of raw outputs on validation data."""
        return mean_loss(self._loss(), outputs, data.targets, data.weights)

    def _validation(
        self,
        labelled: Labelled,
        held: Rows | None,
        eval_set: Any,
        network: SparseMLP,
    ) -> TrainingData | None:
        if held is not None:
            validation = labelled.take(held)
        elif eval_set is not None:
            given = parts_of_eval_set(eval_set)
            validation = self._labelled(*given, reset=False)
            if self.preparation_ is not None and self.preparation_.centres:
                validation = with_groups(validation, given[0], None)
            validation = validation.prepared(self.preparation_)
            self._refuse_sparse_if_centred(validation.x, network)
        else:
            return None
        targets = self._encode(validation.y, 0.0, "`eval_set`")
        return TrainingData.of(validation.x, targets, network.dtype, weights=validation.weights)

    def _refuse_sparse_if_centred(self, x: Samples, network: SparseMLP) -> None:
        if x.is_sparse and network.scaling.shift is not None:
            raise InvalidInputError(
                "the network was first trained on dense samples and centres its features; it"
                " cannot be trained or validated on sparse ones.\n"
                "  Give sparse samples from the first call on, or set `scale=None`."
            )

    def _shape_of(self, labelled: Labelled) -> Shape:
        n_features = labelled.x.n_features
        return Shape(
            labelled.n_samples,
            n_features,
            self._n_outputs(),
            self._is_classifier,
            labelled.x.n_stored,
        )

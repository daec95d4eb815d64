"""What an estimator has to say about its targets; everything else it shares with the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ratoon.arrays import Array
from ratoon.estimators.data import Labelled
from ratoon.estimators.presets import Settings
from ratoon.training import TrainingData


class TargetKind(ABC):
    """From ``y`` to outputs of the network, scores, and what of it a file keeps."""

    _is_classifier: bool

    @abstractmethod
    def _check_target(self, y: Any) -> Array:
        """Return y as an array of the right dimension, or raise."""

    @abstractmethod
    def _learn_targets(self, labelled: Labelled, classes: Any) -> None:
        """Learn what there is to learn from y: classes, or mean and spread."""

    @abstractmethod
    def _compare_targets(self, labelled: Labelled, classes: Any) -> None:
        """Raise if the targets are not of the kind the first call had."""

    @abstractmethod
    def _n_outputs(self) -> int:
        """Return the number of outputs of the network."""

    @abstractmethod
    def _loss(self) -> str:
        """Return the loss of the network."""

    @abstractmethod
    def _encode(self, y: Array, settings: Settings, where: str) -> Array:
        """Return the targets of samples, (samples, outputs)."""

    @abstractmethod
    def _weigh(self, labelled: Labelled) -> Array | None:
        """Return what every sample counts in training."""

    @abstractmethod
    def _strata(self, y: Array) -> Array | None:
        """Return the class of every sample, where validation is to have all of them."""

    @abstractmethod
    def _score(self, outputs: Array, data: TrainingData) -> float:
        """Score raw outputs on validation data; higher is better."""

    @abstractmethod
    def _target_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what was learnt of the targets, as plain values and arrays."""

    @abstractmethod
    def _restore_targets(self, targets: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take back what `_target_state` gave, out of ``arrays``; raise if it is not that."""

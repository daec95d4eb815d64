"""scikit-learn's callback protocol (version 1.9 and later), joined to ours.

Users of older versions have our own callbacks (`ratoon.training.Callback`) all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ratoon.history import EpochRecord
from ratoon.training import Callback, Training

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks

    HAS_PROTOCOL = True
except ImportError:  # pragma: no cover - scikit-learn before 1.9
    HAS_PROTOCOL = False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Method) -> Method:
        """Return the method as it is."""
        return method


CALLS_OF_FIT = 1 + HAS_PROTOCOL
"""Frames between the caller of `fit` and what it calls: scikit-learn wraps it for its callbacks."""


class Relay(Callback):
    """Call scikit-learn's callbacks for a fit and for each of its epochs.

    To them a fit is a task, and every epoch a task below it.  Where one of them asks to stop after
    an epoch, training stops.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any, n_epochs: int) -> None:
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._arguments: dict[str, Any] = {
            "estimator": estimator,
            "X": X,
            "y": y,
            "metadata": metadata,
        }
        self._fit = estimator._init_callback_context(max_subtasks=n_epochs)
        self._fit.call_on_fit_task_begin(**self._arguments)
        self._epoch: Any = None
        self._n_epochs = n_epochs

    def on_fit_begin(self, training: Training) -> None:
        """Begin the first epoch."""
        self._begin_epoch(training)

    def on_epoch_end(self, training: Training, record: EpochRecord) -> None:
        """End an epoch, and begin the next if there is one."""
        del record
        stop = self._epoch.call_on_fit_task_end(**self._arguments, **_fitted(training))
        training.should_stop = training.should_stop or bool(stop)
        self._epoch = None
        if training.epochs_done < self._n_epochs and not training.should_stop:
            self._begin_epoch(training)

    def on_fit_end(self, training: Training) -> None:
        """End an epoch that another callback, or the user, cut short."""
        del training
        if self._epoch is not None:
            self._epoch.call_on_fit_task_end(estimator=self._arguments["estimator"])
            self._epoch = None

    def finish(self) -> None:
        """End the fit, once the estimator is ready to predict."""
        self._fit.call_on_fit_task_end(**self._arguments, reconstruction_attributes={})

    def _begin_epoch(self, training: Training) -> None:
        self._epoch = self._fit.subcontext(task_name="epoch")
        self._epoch.call_on_fit_task_begin(**self._arguments, **_fitted(training))


def _fitted(training: Training) -> dict[str, Any]:
    # Made only for callbacks that ask for a fitted estimator; training continues with the original.
    return {"reconstruction_attributes": lambda: {"network_": training.network.copy()}}

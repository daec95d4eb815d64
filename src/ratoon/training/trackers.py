"""LogMetrics: the results of every epoch, for an experiment tracker."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from ratoon.errors import InvalidParameterError
from ratoon.history import EpochRecord
from ratoon.training.callbacks import Callback
from ratoon.training.loop import Training

ON_ERROR = ("warn", "raise")


class TrackerWarning(UserWarning):
    """A tracker refused the results of an epoch; training continues."""


class LogMetrics(Callback):
    """Pass the results of every epoch to an experiment tracker.

    A callback implies iterative training, so a fit in closed form is replaced by epochs.

    Parameters
    ----------
    writer : object or function
        One of: a `SummaryWriter` of TensorBoard (``add_scalar(name, value, step)``), the module
        ``mlflow`` or its client (``log_metrics(values, step=...)``), a run of Weights & Biases or
        the like (``log(values, step=...)``), or a function of a dictionary and the epoch.
    prefix : str, default=""
        Written before every name, such as ``"fold1/"``.
    on_error : {"warn", "raise"}, default="warn"
        What to do when the tracker raises an error: warn once and train on, or raise it.

    Notes
    -----
    The values are the fields of `EpochRecord` that are known: ``loss``, ``learning_rate``,
    ``n_connections``, ``density``, ``rewired``, seconds, and ``validation_score`` where there are
    validation data.  The epoch is counted from 1.  Copies of the callback share the writer.

    Examples
    --------
    >>> from ratoon import SparseMLPRegressor
    >>> log = LogMetrics(lambda values, epoch: print(epoch, sorted(values)[:3]))
    >>> _ = SparseMLPRegressor(max_iter=2, callbacks=log).fit([[0.0], [1.0]], [0.0, 1.0])
    1 ['density', 'evaluate_seconds', 'learning_rate']
    2 ['density', 'evaluate_seconds', 'learning_rate']
    """

    def __init__(self, writer: Any, *, prefix: str = "", on_error: str = "warn") -> None:
        if on_error not in ON_ERROR:
            raise InvalidParameterError(
                f"LogMetrics: `on_error` must be one of {ON_ERROR}, got {on_error!r}."
            )
        self.writer = writer
        self.prefix = prefix
        self.on_error = on_error
        self._write = writing_function(writer)
        self._has_warned = False

    def on_epoch_end(self, training: Training, record: EpochRecord) -> None:
        """Write the results of the epoch."""
        values = {
            f"{self.prefix}{name}": float(value)
            for name, value in asdict(record).items()
            if name != "epoch" and value is not None
        }
        try:
            self._write(values, record.epoch + 1)
        except Exception as error:  # of any tracker, such as a server that cannot be reached
            if self.on_error == "raise":
                raise
            if not self._has_warned:
                warnings.warn(
                    f"the tracker refused the results of epoch {record.epoch + 1}; training"
                    f" continues: {type(error).__name__}: {error}",
                    TrackerWarning,
                    stacklevel=2,
                )
            self._has_warned = True

    def __deepcopy__(self, memo: Any) -> LogMetrics:
        # `sklearn.base.clone` copies callbacks; a writer holds files and threads.
        del memo
        return LogMetrics(self.writer, prefix=self.prefix, on_error=self.on_error)


def writing_function(writer: Any) -> Callable[[dict[str, float], int], Any]:
    """Return the function that passes values and a step to a tracker.

    Examples
    --------
    >>> writing_function("runs/1")
    Traceback (most recent call last):
    ...
    ratoon.errors.InvalidParameterError: LogMetrics: `writer` must have `add_scalar`,
      `log_metrics` or `log`, or be a function of values and step; got 'runs/1'.
    """
    if hasattr(writer, "add_scalar"):

        def add_all(values: dict[str, float], step: int) -> None:
            for name, value in values.items():
                writer.add_scalar(name, value, step)

        return add_all
    for name in ("log_metrics", "log"):
        method = getattr(writer, name, None)
        if callable(method):
            return lambda values, step: method(values, step=step)
    if callable(writer):
        return lambda values, step: writer(values, step)
    raise InvalidParameterError(
        f"LogMetrics: `writer` must have `add_scalar`, `log_metrics` or `log`, or be a function of"
        f" values and step; got {writer!r}."
    )

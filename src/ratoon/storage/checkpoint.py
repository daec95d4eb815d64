"""Checkpoint: a callback that makes a killed training resume to the same bits."""

from __future__ import annotations

import logging
import signal
import threading
import warnings
from collections.abc import Collection, Mapping
from types import FrameType
from typing import Any

from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError, RatoonError
from ratoon.history import EpochRecord
from ratoon.kernels import current_isa
from ratoon.storage import strict_json
from ratoon.storage.atomic import PathLike, shown
from ratoon.storage.directory import CheckpointDirectory, CheckpointWarning, LockedError
from ratoon.storage.document import Document
from ratoon.storage.identity import (
    describe_data,
    describe_network,
    describe_plan,
    describe_stopping,
    differences,
    to_json,
)
from ratoon.storage.rules import Fields, Violation, require
from ratoon.storage.training_state import state_from_parts, state_to_parts
from ratoon.training import Callback, Training, TrainingState

logger = logging.getLogger(__name__)

STATUS = 128 + signal.SIGTERM
ON_ERROR = ("warn", "raise")
_FLAT = ("epochs_done", "rewired", "evolving")


class ResumeError(RatoonError, ValueError):
    """A checkpoint belongs to another training; the message lists the differences."""


class Termination:
    """Turns SIGTERM into ``SystemExit(143)``, but never during a write.

    It does nothing outside the main thread, where Python runs signal handlers, and where the
    signal already has a handler.
    """

    def __init__(self) -> None:
        self.requested = False
        self._n_deferred = 0
        self._installed = False

    def install(self) -> None:
        """Install the signal handler."""
        self.requested = False
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._handle)
            self._installed = True

    def remove(self) -> None:
        """Remove the signal handler."""
        if self._installed:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._installed = False

    def __enter__(self) -> None:
        """Defer the signal."""
        self._n_deferred += 1

    def __exit__(self, *_: object) -> None:
        """Exit if the signal arrived while it was deferred."""
        self._n_deferred -= 1
        if self.requested and not self._n_deferred:
            raise SystemExit(STATUS)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.requested = True
        if not self._n_deferred:
            raise SystemExit(STATUS)


class Checkpoint(Callback):
    """Callback that writes a checkpoint every ``every`` epochs, and resumes from the newest.

    A training that was killed or interrupted, and is started again with the same data and
    parameters, ends with the same network as an uninterrupted one, bit for bit.

    Ctrl-C, an error and SIGTERM leave a checkpoint of the last completed epoch; SIGTERM then ends
    the process with status 143.  Put this callback last, after those that can stop training.  The
    random numbers must be the same again, so give the estimator a ``random_state``.

    Parameters
    ----------
    directory : path
        Directory of the checkpoints, created if needed.  The last two are kept.  Only one process
        at a time can use it.
    every : int, default=1
        Epochs between two checkpoints.
    resume : bool, default=True
        Resume from the newest checkpoint in the directory.  If false, there must be none.
    snapshot : bool, default=True
        Between checkpoints, keep a copy of the last completed epoch in memory, in case training
        is interrupted.  It takes the memory of the weights and the optimizer's state.  With
        ``every=1`` there is no copy.
    parameters : dict, optional
        More JSON values that must be the same when training resumes.
    allow : collection of str, optional
        Differences to ignore, by their names in the message: ``{"plan.n_epochs"}``.
    on_error : {"warn", "raise"}, default="warn"
        What to do when a checkpoint cannot be written, for instance because the disk is full.
        The previous one is kept in either case.

    Raises
    ------
    ResumeError
        When training starts and the directory belongs to another one.
    LockedError
        When training starts and another process uses the directory; or later, when the directory
        was deleted and made anew by another process.  The last completed epoch is in the estimator.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from ratoon.network import SparseMLP
    >>> from ratoon.training import TrainingData, TrainingPlan
    >>> x = np.eye(4, dtype=np.float32)
    >>> def train(directory, n_epochs):
    ...     network = SparseMLP.start((4, 16, 4), density=0.5, seed=0)
    ...     data = TrainingData.of(x, x, np.float32)
    ...     plan = TrainingPlan(learning_rate=0.1, n_epochs=n_epochs)
    ...     training = Training(network, data, plan, callbacks=[Checkpoint(directory)])
    ...     training.run()
    ...     return training
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     first = train(directory, n_epochs=3)
    ...     again = train(directory, n_epochs=3)  # finds nothing left to do
    >>> again.epochs_done, again.history[2].loss == first.history[2].loss
    (3, True)
    """

    def __init__(
        self,
        directory: PathLike,
        *,
        every: int = 1,
        resume: bool = True,
        snapshot: bool = True,
        parameters: Mapping[str, Any] | None = None,
        allow: Collection[str] = (),
        on_error: str = "warn",
    ) -> None:
        if every < 1:
            raise InvalidParameterError(f"Checkpoint: `every` must be at least 1, got {every!r}.")
        if on_error not in ON_ERROR:
            raise InvalidParameterError(
                f"Checkpoint: `on_error` must be one of {ON_ERROR}, got {on_error!r}."
            )
        self.directory = directory
        self.every = every
        self.resume = resume
        self.snapshot = snapshot
        self.parameters = parameters
        self.allow = allow
        self.on_error = on_error
        self._checkpoints: CheckpointDirectory | None = None
        self._termination = Termination()
        self._identity: dict[str, Any] = {}
        self._pending: TrainingState | None = None
        self._written = -1

    # ------------------------------------------------------------------------------ callbacks

    def on_fit_begin(self, training: Training) -> None:
        """Lock the directory, and resume from the newest checkpoint."""
        checkpoints = CheckpointDirectory(self.directory)
        checkpoints.acquire()
        try:
            self._pending = None
            self._identity = self._describe(training)
            # After `partial_fit` this callback has written the newest checkpoint itself.
            if checkpoints.numbers() != [] and training.epochs_done != self._written:
                self._resume(checkpoints, training)
        except BaseException:
            checkpoints.release()
            raise
        self._checkpoints = checkpoints
        self._termination.install()

    def on_epoch_end(self, training: Training, record: EpochRecord) -> None:
        """Write a checkpoint if one is due; otherwise keep a copy of the epoch."""
        self._pending = training.state.snapshot()
        is_last = training.should_stop or training.epochs_done >= training.plan.n_epochs
        if is_last or training.epochs_done % self.every == 0:
            with self._termination:
                self._write_pending()
        if self._pending is not None:
            self._pending = self._pending.copy() if self.snapshot else None

    def on_fit_end(self, training: Training) -> None:
        """Write what is not on disk yet, and unlock the directory."""
        if self._checkpoints is None:
            return
        with self._termination:
            try:
                if self._termination.requested:
                    logger.warning(
                        "SIGTERM received: training ends after epoch %d",
                        training.epochs_done,
                        extra={"event": "signal", "facts": {"epoch": training.epochs_done}},
                    )
                self._write_pending()
            finally:
                self._termination.remove()
                self._checkpoints.release()
                self._checkpoints = None
                self._pending = None

    # -------------------------------------------------------------------------------- parts

    def _describe(self, training: Training) -> dict[str, Any]:
        n_threads = training.plan.n_threads
        validation = training.validation
        identity = {
            "plan": describe_plan(training.plan),
            "stopping": describe_stopping(training.stopping),
            "data": describe_data(training.data, training.network, n_threads),
            "validation": None
            if validation is None
            else describe_data(validation, training.network, n_threads),
            "parameters": to_json(dict(self.parameters or {})),
        }
        strict_json.check_plain(identity, "parameters")
        return identity

    def _resume(self, checkpoints: CheckpointDirectory, training: Training) -> None:
        if not self.resume:
            raise ResumeError(
                f"{shown(self.directory)} holds checkpoints of a training, up to epoch"
                f" {checkpoints.numbers()[-1]}.\n"
                "  Choose an empty directory, or set `resume=True`."
            )
        found = checkpoints.latest()
        if found is None:
            return
        number, document = found
        path = checkpoints.path_of(number)
        try:
            state, identity, isa = _from_document(document)
            if state.epochs_done != number:
                raise FormatError(f"epoch {state.epochs_done} under the number {number}.")
        except (FormatError, Violation) as error:
            raise FormatError(f"{shown(path)}: {error}") from None
        self._refuse_differences(path, state, identity, isa, training)
        training.continue_from(state)
        self._written = number
        logger.info(
            "resuming after epoch %d of %d, from %s",
            number,
            training.plan.n_epochs,
            shown(path),
            extra={"event": "resume", "facts": {"epoch": number, "file": str(path)}},
        )

    def _refuse_differences(
        self,
        path: str,
        state: TrainingState,
        identity: dict[str, Any],
        isa: str,
        training: Training,
    ) -> None:
        theirs = {**identity, "network": _describe_state(state.network)}
        ours = {**self._identity, "network": _describe_state(training.network)}
        allowed = set(self.allow)
        if isa != current_isa():
            # Sums of samples differ in their last bits, as the training will.
            allowed |= {"data.samples", "validation.samples"}
            warnings.warn(
                f"{shown(path)} was written with the instruction set {isa} and is resumed with"
                f" {current_isa()}: the result will not be the same to the bit.",
                CheckpointWarning,
                stacklevel=4,
            )
        lines = [line for line in differences(theirs, ours) if line.split(":")[0] not in allowed]
        if lines:
            if any(line.startswith("plan.seed:") for line in lines):
                lines.append("(Without a `random_state` every run draws its own seed.)")
            raise ResumeError(
                f"{shown(path)} belongs to another training:\n  "
                + "\n  ".join(lines)
                + "\n  Resume with the same data and parameters, or choose another directory."
            )

    def _write_pending(self) -> None:
        if self._pending is None or self._checkpoints is None:
            return
        try:
            document = _to_document(self._pending, self._identity)
            self._checkpoints.save(self._pending.epochs_done, document)
        except LockedError:
            self._pending = None  # another training may use the directory: never write to it again
            raise
        except (OSError, FormatError, InvalidInputError) as error:
            if self.on_error == "raise":
                raise
            warnings.warn(
                f"the checkpoint of epoch {self._pending.epochs_done} was not written; training"
                f" continues: {error}",
                CheckpointWarning,
                stacklevel=4,
            )
        else:
            number = self._written = self._pending.epochs_done
            self._pending = None
            path = self._checkpoints.path_of(number)
            logger.info(
                "checkpoint of epoch %d written to %s",
                number,
                shown(path),
                extra={"event": "checkpoint", "facts": {"epoch": number, "file": str(path)}},
            )


def _to_document(state: TrainingState, identity: dict[str, Any]) -> Document:
    values, arrays, networks = state_to_parts(state)
    config = {"progress": values, "identity": identity, "isa": current_isa()}
    return Document(config, arrays, networks, "checkpoint")


def _from_document(document: Document) -> tuple[TrainingState, dict[str, Any], str]:
    """Return the state in a checkpoint, the identity of its training, and its processor's."""
    config = document.config
    if "progress" not in config:
        config = _from_flat_layout(config)
    fields = Fields(config, "content", ("progress", "identity", "isa"))
    identity, isa = fields.mapping("identity", 1000), fields["isa"]
    require(isinstance(isa, str), 5, "config: content.isa must be a text")
    arrays = dict(document.arrays)
    state = state_from_parts(fields["progress"], arrays, document.networks)
    if arrays:
        raise FormatError(f"this checkpoint holds unknown arrays: {sorted(arrays)[:3]}.")
    return state, identity, isa


def _from_flat_layout(config: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a checkpoint of an earlier 0.1 version as it is written today.

    It had no object ``progress``, and kept the parameters of early stopping in the identity only.
    """
    fields = Fields(config, "content", (*_FLAT, "stopping", "identity", "isa"))
    identity, stopping = fields.mapping("identity", 1000), None
    if fields["stopping"] is not None:
        observed = fields.mapping("stopping", 4)
        observed.pop("has_best", None)
        parameters = identity.get("stopping")
        require(isinstance(parameters, dict), 5, "config: identity.stopping must be an object")
        stopping = {**dict(parameters or {}), **observed}
    # Resuming keeps the seed and the cycle of the training itself, so these are not used.
    values = {"seed": "0", "cycle": 0, "stopping": stopping, **{key: config[key] for key in _FLAT}}
    return {"progress": values, "identity": identity, "isa": fields["isa"]}


def _describe_state(network: Any) -> dict[str, Any]:
    n_states = [len(layer.state) for layer in network.layers]
    return {**describe_network(network), "optimizer_arrays": n_states}

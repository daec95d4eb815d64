"""A warning where a network has memorised its training rows."""

from __future__ import annotations

import warnings

from ratoon.history import History

ZERO, ZERO_OF_VALIDATION = 1e-4, 2e-3
"""Training loss up to which training rows count as memorised; also as a part of the smallest
validation loss."""

RISE = 1.1
"""Factor above its minimum from which the validation loss counts as risen."""

MANY_SAMPLES = 1000
"""Fewer samples are often separated without harm."""


class MemorisationWarning(UserWarning):
    """The training loss is at zero while the validation loss rises, or is not known."""


def warn_if_memorised(
    history: History, n_samples: int, *, keeps_best: bool, stacklevel: int
) -> None:
    """Warn if the training loss is at zero and the validation loss has risen or is not known.

    Parameters
    ----------
    history : History
        The records of the training.
    n_samples : int
        Number of training samples.
    keeps_best : bool
        Whether the network of the best epoch was kept; then nothing is lost.
    stacklevel : int
        As in `warnings.warn`.
    """
    if keeps_best or not len(history):
        return
    known = [loss for loss in history.column("validation_loss") if loss is not None]
    if history[-1].loss > max(ZERO, ZERO_OF_VALIDATION * min(known, default=0.0)):
        return
    if known and known[-1] <= RISE * min(known):
        return
    if not known and n_samples < MANY_SAMPLES:
        return
    seen = (
        f"the validation loss has risen from {min(known):.3g} to {known[-1]:.3g}"
        if known
        else "no validation data show how well it predicts"
    )
    warnings.warn(
        f"the training loss is {history[-1].loss:.1g}: the network has memorised the training rows,"
        f" and {seen}.\n"
        f"  Set `early_stopping=True` to keep the best epoch, or use fewer epochs or `dropout`.",
        MemorisationWarning,
        stacklevel=stacklevel,
    )

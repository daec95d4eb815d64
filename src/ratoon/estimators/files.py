"""Save an estimator to a file, and load it."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from ratoon import guard
from ratoon.errors import FormatError
from ratoon.estimators.base import BaseSparseMLP
from ratoon.estimators.state import FINGERPRINTS, from_state, to_state
from ratoon.storage import (
    Document,
    document_from_bytes,
    document_to_bytes,
    read_document,
    write_document,
)
from ratoon.storage.atomic import PathLike, shown


def save(
    estimator: BaseSparseMLP,
    path: PathLike,
    *,
    optimizer: bool = True,
    fingerprints: bool = True,
) -> None:
    """Write a fitted estimator to ``path``, which is replaced as a whole or not at all.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    path : path
        The file to write.
    optimizer : bool, default=True
        Also save the optimizer's state, which is needed to continue training exactly.
    fingerprints : bool, default=True
        Also save fingerprints of the training samples, which `was_trained_on` needs.

    Raises
    ------
    AlreadyTrainingError
        If another thread is training the estimator.
    InvalidParameterError
        If a parameter was set to an impossible value after the fit, which could not be loaded.

    Examples
    --------
    >>> import tempfile
    >>> from ratoon import SparseMLPClassifier, load
    >>> model = SparseMLPClassifier((4,), max_iter=3, random_state=0)
    >>> _ = model.fit([[0.0, 1.0], [1.0, 0.0]], ["ill", "well"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder + "/model.ratoon")
    ...     again = load(folder + "/model.ratoon")
    >>> again.classes_.tolist()
    ['ill', 'well']
    """
    with guard.reading(estimator, name=f"this {type(estimator).__name__}", action="saving"):
        check_is_fitted(estimator)
        config, arrays, networks = to_state(estimator)
        if not fingerprints:
            arrays.pop(FINGERPRINTS, None)
        write_document(Document(config, arrays, networks), path, optimizer=optimizer)


def to_bytes(estimator: BaseSparseMLP) -> bytes:
    """Return the file of a fitted estimator as bytes, as `save` writes it."""
    return document_to_bytes(Document(*to_state(estimator)))


def from_bytes(raw: bytes) -> BaseSparseMLP:
    """Return the estimator in the bytes of its file, with all checks of `load`.

    Examples
    --------
    >>> from ratoon import SparseMLPRegressor
    >>> model = SparseMLPRegressor((4,), max_iter=3, random_state=0)
    >>> _ = model.fit([[0.0, 1.0], [1.0, 0.0]], [0.0, 1.0])
    >>> from_bytes(to_bytes(model)).n_iter_
    3
    """
    document = document_from_bytes(raw)
    return from_state(document.config, document.arrays, document.networks)


def load(path: PathLike) -> Any:
    """Return the estimator in a file, to predict with and to continue training.

    Nothing in the file is executed, and all of it is checked before any of it is used.

    Raises
    ------
    FormatError
        If the file is damaged, or does not hold an estimator.
    """
    document = read_document(path)
    try:
        return from_state(document.config, document.arrays, document.networks)
    except FormatError as error:
        raise FormatError(f"{shown(path)}: {error}") from None

"""What `skops.io` stores of an estimator: plain values, or the bytes of its file.

skops rebuilds an object from the result of its ``__getstate__`` and creates only objects of types
that the caller trusts.  A fitted network is stored as the bytes that `save` writes, so loading it
executes nothing and makes every check of `ratoon.load`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ratoon.errors import FormatError
from ratoon.estimators.plain import NotPlain, from_plain, to_plain

if TYPE_CHECKING:
    from ratoon.estimators.base import BaseSparseMLP

_FILE, _PARAMETERS, _VALUES = "ratoon_file", "ratoon_parameters", "ratoon_values"


def skops_trusted() -> list[str]:
    """Return the types to trust when `skops.io.load` reads an estimator of ratoon.

    These are the estimators, the tables that selectors keep, and what `table_encoder` is made of
    beyond the types that skops trusts itself; no function is needed.

    Examples
    --------
    >>> for name in skops_trusted():
    ...     print(name)
    ratoon.estimators.autoencoder.SparseAutoencoderSelector
    ratoon.estimators.classifier.SparseMLPClassifier
    ratoon.estimators.rbm.SparseBernoulliRBM
    ratoon.estimators.regressor.SparseMLPRegressor
    ratoon.estimators.selectors.SparseFeatureSelector
    ratoon.estimators.survival.SparseMLPSurvival
    ratoon.explain.associations.Associations
    ratoon.explain.ranking.Ranking
    numpy.dtype
    sklearn.compose._column_transformer.make_column_selector

    A pipeline is stored and loaded like this::

        import skops.io

        skops.io.dump(pipeline, "model.skops")
        pipeline = skops.io.load("model.skops", trusted=ratoon.skops_trusted())
    """
    from sklearn.compose import make_column_selector

    from ratoon.estimators import (
        SparseAutoencoderSelector,
        SparseBernoulliRBM,
        SparseFeatureSelector,
        SparseMLPClassifier,
        SparseMLPRegressor,
        SparseMLPSurvival,
    )
    from ratoon.explain.associations import Associations
    from ratoon.explain.ranking import Ranking

    kinds = (
        SparseAutoencoderSelector,
        SparseMLPClassifier,
        SparseBernoulliRBM,
        SparseMLPRegressor,
        SparseFeatureSelector,
        SparseMLPSurvival,
        Associations,
        Ranking,
        np.dtype,
        make_column_selector,
    )
    return [f"{kind.__module__}.{kind.__qualname__}" for kind in kinds]


def plain_state(estimator: BaseSparseMLP) -> dict[str, Any]:
    """Return the file of a fitted estimator, or the parameters of one that is not fitted."""
    if hasattr(estimator, "_state"):
        from ratoon.estimators.files import to_bytes

        return {_FILE: to_bytes(estimator)}
    return plain_parameters(estimator.get_params(deep=False))


def plain_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON values where they can be; others stay as they are.

    Examples
    --------
    >>> from ratoon.evolution import SET
    >>> plain_parameters({"evolution": SET(zeta=0.2), "topology": len})["ratoon_values"]
    {'topology': <built-in function len>}
    """
    plain, others = {}, {}
    for name, value in parameters.items():
        try:
            plain[name] = to_plain(value)
        except NotPlain:
            others[name] = value
    return {_PARAMETERS: plain, _VALUES: others}


def is_plain_state(state: Any) -> bool:
    """Whether a state is one of `plain_state` rather than the attributes of a pickle."""
    return isinstance(state, dict) and (_FILE in state or _PARAMETERS in state)


def restore(estimator: BaseSparseMLP, state: dict[str, Any]) -> None:
    """Give an estimator the state that `plain_state` returned.

    Raises
    ------
    FormatError
        If the state is damaged or that of another class.
    """
    if _FILE not in state:
        estimator.__dict__.update(parameters_from(type(estimator), state))
        return
    from ratoon.estimators.files import from_bytes

    raw = state[_FILE]
    if not isinstance(raw, bytes | bytearray):
        raise FormatError(f"the file of an estimator must be bytes, not {type(raw).__name__}.")
    loaded = from_bytes(bytes(raw))
    if type(loaded) is not type(estimator):
        raise FormatError(
            f"the state of a {type(loaded).__name__} was stored as that of a"
            f" {type(estimator).__name__}."
        )
    estimator.__dict__.update(loaded.__dict__)


def parameters_from(kind: type, state: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that `plain_parameters` was given, for an estimator of this class."""
    plain, others = state[_PARAMETERS], state.get(_VALUES, {})
    if not (isinstance(plain, dict) and isinstance(others, dict)):
        raise FormatError("the parameters of an estimator must be dictionaries.")
    found = {**{name: from_plain(value) for name, value in plain.items()}, **others}
    known = kind().get_params(deep=False)
    if unknown := set(found) - set(known):
        raise FormatError(f"{kind.__name__} has no parameters {sorted(map(str, unknown))}.")
    return {**known, **found}

"""Sparse neural networks that rewire while they learn.

A network is a list of sparse layers; a layer is a topology (which connections exist) plus arrays
of values aligned with it.  Training changes the values; evolution changes the topology and
carries the values along.  Time and memory grow with the number of connections, never with the
product of the layers' widths.
"""

from __future__ import annotations

from typing import Any

__version__ = "1.0.0rc1"

__all__ = [
    "Augment",
    "Prepare",
    "SamplePreparer",
    "SparseAutoencoderSelector",
    "SparseBernoulliRBM",
    "SparseFeatureSelector",
    "SparseMLPClassifier",
    "SparseMLPRegressor",
    "SparseMLPSurvival",
    "__version__",
    "load",
    "skops_trusted",
    "table_encoder",
]

_LAZY = {
    "Augment": "ratoon.samples.augment",
    "Prepare": "ratoon.preparation",
    "SamplePreparer": "ratoon.estimators",
    "SparseAutoencoderSelector": "ratoon.estimators",
    "SparseBernoulliRBM": "ratoon.estimators",
    "SparseFeatureSelector": "ratoon.estimators",
    "SparseMLPClassifier": "ratoon.estimators",
    "SparseMLPRegressor": "ratoon.estimators",
    "SparseMLPSurvival": "ratoon.estimators",
    "load": "ratoon.estimators",
    "skops_trusted": "ratoon.estimators",
    "table_encoder": "ratoon.estimators",
}


def __getattr__(name: str) -> Any:
    """Import what needs scikit-learn only when it is asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

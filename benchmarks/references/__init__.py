"""Other ways to train the same sparse network, to compare with.

All of them start from the same weights, see the same minibatches and follow the same rule

    v = mu v - lr g,    w = w + v - decay w,    g = mean gradient over the minibatch

in float32, and have the same loss, which ``benchmarks/tests/test_references.py`` tests.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

# Name in tables -> where it is, and the package it needs in addition to NumPy, SciPy and ratoon.
REFERENCES = {
    "ratoon": ("references.ratoon_native:RatoonNetwork", "ratoon"),
    "SciPy + NumPy": ("references.scipy_set:ScipyNumpy", "scipy"),
    "SciPy + NumPy by sample": ("references.scipy_set:ScipyNumpyBySample", "scipy"),
    "SciPy + numba": ("references.scipy_numba:ScipyNumba", "numba"),
    "numba": ("references.plain_numba:PlainNumba", "numba"),
    "torch CSR": ("references.torch_csr:TorchCsr", "torch"),
    "torch dense + mask": ("references.torch_masked:TorchMasked", "torch"),
    "sparselab": ("references.sparselab_linear:SparselabNetwork", "sparselab"),
    "scikit-learn MLPClassifier": ("references.sklearn_dense:SklearnDense", "sklearn"),
}


def is_available(name: str) -> bool:
    """Whether the package a reference needs is installed."""
    return importlib.util.find_spec(REFERENCES[name][1]) is not None


def reference_class(name: str) -> Any:
    """Return the class of a reference, importing its package only now."""
    module, attribute = REFERENCES[name][0].split(":")
    return getattr(importlib.import_module(module), attribute)

"""How to repeat the training and its score: command, code, seed and versions."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ratoon.report.context import ReportContext

_PACKAGES = ("ratoon", "numpy", "scipy", "scikit-learn")


def build(context: ReportContext) -> dict[str, Any]:
    """Return what is needed to reproduce the network."""
    versions = [f"Python {platform.python_version()}"]
    for name in _PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:  # pragma: no cover - package not installed
            continue
    estimator = context.estimator
    seed = estimator.get_params(deep=False).get("random_state")
    return {
        "command": context.command,
        "python": context.repeat or f"model = {constructor(estimator)}.fit(X, y)",
        "facts": [
            ("seed", "not set: another run gives another network" if seed is None else str(seed)),
            ("versions", ", ".join(versions)),
            ("machine", f"{platform.system()} on {platform.machine()}"),
        ],
    }


def constructor(estimator: Any) -> str:
    """Return the call that makes the estimator, with the parameters that differ from defaults.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> constructor(SparseMLPClassifier((5,), random_state=0))
    'SparseMLPClassifier(hidden_layer_sizes=(5,), random_state=0)'
    """
    defaults = type(estimator)().get_params(deep=False)
    changed = ", ".join(
        f"{name}={value!r}"
        for name, value in estimator.get_params(deep=False).items()
        if name != "callbacks" and repr(value) != repr(defaults[name])
    )
    return f"{type(estimator).__name__}({changed})"

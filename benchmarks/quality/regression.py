"""Wide regression on generated data: few or all features matter, little or much noise.

Features are independent and normal; those that matter have normal weights; noise is given as its
standard deviation relative to that of the signal.  R^2 is that of 1,000 fresh samples.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common.tables import markdown
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.linear_model import ElasticNetCV, LassoCV, RidgeCV
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ratoon import SparseMLPRegressor

Array = NDArray[Any]

CASES = [
    # samples, features, features that matter, noise
    (60, 500, 5, 0.3),
    (80, 2000, 10, 0.1),
    (80, 2000, 10, 0.5),
    (80, 2000, 10, 1.0),
    (150, 5000, 20, 0.5),
    (300, 2000, 100, 0.5),
    (100, 500, 500, 0.3),
    (150, 2000, 2000, 0.5),
    (300, 1000, 1000, 0.3),
    (300, 1000, 1000, 1.0),
]


def rivals(seed: int) -> dict[str, Any]:
    """Return the models to compare, all with standardised features."""
    return {
        "ratoon": SparseMLPRegressor(random_state=seed, n_jobs=1),
        "ridge": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 6, 17))),
        "lasso": make_pipeline(StandardScaler(), LassoCV(cv=5, random_state=seed)),
        "elastic_net": make_pipeline(
            StandardScaler(), ElasticNetCV(l1_ratio=[0.1, 0.5, 0.9], alphas=30, cv=5)
        ),
    }


def generate(case: tuple[int, int, int, float], seed: int) -> tuple[Array, Array]:
    """Return samples and targets: those to train on first, then 1,000 to test."""
    n_samples, n_features, n_matter, noise = case
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_samples + 1000, n_features))
    matter = rng.choice(n_features, n_matter, replace=False)
    signal = x[:, matter] @ rng.standard_normal(n_matter)
    return x, signal / signal.std() + noise * rng.standard_normal(len(signal))


def run_case(case: tuple[int, int, int, float], seed: int) -> dict[str, Any]:
    """Return R^2 of all models on one draw of one case, and the processor's seconds."""
    x, y = generate(case, seed)
    n = case[0]
    found: dict[str, Any] = {}
    for name, model in rivals(seed).items():
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(x[:n], y[:n])
        found[f"{name} s"] = time.process_time() - started
        found[name] = r2_score(y[n:], model.predict(x[n:]))
    return found


def study(out: Path, n_seeds: int, n_jobs: int, cases: Any = None) -> str:
    """Run all cases and write their table."""
    lines: list[dict[str, Any]] = []
    for case in cases or CASES:
        work = (delayed(run_case)(case, seed) for seed in range(n_seeds))
        runs = list(Parallel(n_jobs=n_jobs)(work))
        lines.append(_line(case, runs))
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(_text(lines, n_seeds))
    return out.read_text()


def _line(case: tuple[int, int, int, float], runs: list[dict[str, Any]]) -> dict[str, Any]:
    names = list(rivals(0))
    mean = {name: float(np.mean([run[name] for run in runs])) for name in names}
    best = max((n for n in names if n != "ratoon"), key=lambda n: mean[n])
    gain = np.array([run["ratoon"] - run[best] for run in runs])
    error = gain.std(ddof=1) / np.sqrt(gain.size) if gain.size > 1 else float("nan")
    return {
        "samples": str(case[0]),
        "features": str(case[1]),
        "that matter": str(case[2]),
        "noise": str(case[3]),
        **{name: f"{mean[name]:.3f}" for name in names},
        "ratoon - best other": f"{gain.mean():+.3f} ± {error:.3f} ({best})",
        "ratoon, CPU s": f"{np.mean([run['ratoon s'] for run in runs]):.1f}",
    }


def _text(lines: list[dict[str, Any]], n_seeds: int) -> str:
    return (
        "# Wide regression on generated data\n\n"
        f"R² on 1,000 fresh samples, mean of {n_seeds} draws; differences with their standard"
        " error over draws.\n`SparseMLPRegressor()` with default parameters."
        "  Written by `python benchmarks/quality.py --regression`.\n\n" + markdown(lines) + "\n"
    )

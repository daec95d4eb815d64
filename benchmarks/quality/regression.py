"""Wide regression on generated data: few or all features matter, little or much noise.

Features are independent and normal; those that matter have normal weights; noise is given as its
standard deviation relative to that of the signal.  R^2 is that of 1,000 fresh samples.
"""

from __future__ import annotations

import csv
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
from threadpoolctl import threadpool_limits

from ratoon import SparseMLPRegressor

Array = NDArray[Any]
Case = tuple[int, int, int, float]

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


def generate(case: Case, seed: int) -> tuple[Array, Array]:
    """Return samples and targets: those to train on first, then 1,000 to test."""
    n_samples, n_features, n_matter, noise = case
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_samples + 1000, n_features))
    matter = rng.choice(n_features, n_matter, replace=False)
    signal = x[:, matter] @ rng.standard_normal(n_matter)
    return x, signal / signal.std() + noise * rng.standard_normal(len(signal))


def run_case(case: Case, seed: int) -> dict[str, Any]:
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


def study(out: Path, n_seeds: int, n_jobs: int, minutes: float, cases: Any = None) -> str:
    """Run what has no row yet until time is up, and write the table of what there is."""
    rows = out.with_suffix(".csv")
    stop = time.monotonic() + 60 * minutes
    wanted = [(case, seed) for seed in range(n_seeds) for case in cases or CASES]
    todo = [key for key in wanted if key not in read_runs(rows)]
    out.parent.mkdir(parents=True, exist_ok=True)
    for first in range(0, len(todo), n_jobs):
        if time.monotonic() > stop:
            break
        some = todo[first : first + n_jobs]
        for key, run in zip(some, _run_some(some, n_jobs), strict=True):
            _append(rows, *key, run)
    found = read_runs(rows)
    lines = []
    for case in dict.fromkeys(case for case, _ in wanted):
        runs = [found[key] for key in wanted if key[0] == case and key in found]
        lines += [_line(case, runs)] if runs else []
    out.write_text(_text(lines))
    return out.read_text()


def _run_some(keys: list[tuple[Case, int]], n_jobs: int) -> list[dict[str, Any]]:
    with threadpool_limits(limits=1):
        return list(Parallel(n_jobs=n_jobs)(delayed(run_case)(*key) for key in keys))


def read_runs(path: Path) -> dict[tuple[Case, int], dict[str, float]]:
    """Return R^2 and seconds by case and seed."""
    if not path.exists():
        return {}
    found: dict[tuple[Case, int], dict[str, float]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            words = [row.pop(name) for name in ("samples", "features", "that_matter", "noise")]
            case = (int(words[0]), int(words[1]), int(words[2]), float(words[3]))
            seed = int(row.pop("seed"))
            found[case, seed] = {name: float(value) for name, value in row.items()}
    return found


def _append(path: Path, case: Case, seed: int, run: dict[str, Any]) -> None:
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(["samples", "features", "that_matter", "noise", "seed", *run])
        writer.writerow([*case, seed, *(round(value, 5) for value in run.values())])


def _line(case: Case, runs: list[dict[str, Any]]) -> dict[str, Any]:
    names = list(rivals(0))
    mean = {name: float(np.mean([run[name] for run in runs])) for name in names}
    best = max((n for n in names if n != "ratoon"), key=lambda n: mean[n])
    return {
        "samples": str(case[0]),
        "features": str(case[1]),
        "that matter": str(case[2]),
        "noise": str(case[3]),
        **{name: f"{mean[name]:.3f}" for name in names},
        "ratoon - ridge": _gain(runs, "ridge"),
        "ratoon - best other": f"{_gain(runs, best)} ({best})",
        "draws": str(len(runs)),
        "ratoon, CPU s": f"{np.mean([run['ratoon s'] for run in runs]):.1f}",
    }


def _gain(runs: list[dict[str, Any]], other: str) -> str:
    gain = np.array([run["ratoon"] - run[other] for run in runs])
    if gain.size == 1:
        return f"{gain[0]:+.3f}"
    return f"{gain.mean():+.3f} ± {gain.std(ddof=1) / np.sqrt(gain.size):.3f}"


def _text(lines: list[dict[str, Any]]) -> str:
    return (
        "# Wide regression on generated data\n\n"
        "R² on 1,000 fresh samples, mean over draws; differences with their standard"
        " error over draws.\n`SparseMLPRegressor()` with default parameters."
        "  Written by `python benchmarks/quality.py --regression`, which resumes if repeated.\n\n"
        + markdown(lines)
        + "\n"
    )

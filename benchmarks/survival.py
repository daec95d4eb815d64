"""Concordance of survival models on held-out samples: ratoon, Coxnet, Cox regression.

Public data come with scikit-survival; generated ones have known risks.  Every split trains on 70 %
of the samples.  Coxnet (elastic net, l1_ratio 0.9 and 0.1) chooses its penalty by 5-fold
cross-validation inside the training rows, on the path that it makes itself; Cox regression has a
ridge penalty chosen in the same way.  Needs scikit-survival.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from common.machine import MachineState, describe
from common.tables import markdown, parser, write_json

EXAMPLES = """\
  survival.py --splits 10 --json survival.json        10 min
  survival.py --data breast,wide5 --splits 2
"""
KIND = [("event", bool), ("time", float)]


def public(name: str) -> Callable[[], tuple[Any, Any]]:
    """Return a function that loads a data set of scikit-survival, categories as 0 and 1."""

    def load() -> tuple[Any, Any]:
        from sksurv import datasets
        from sksurv.preprocessing import OneHotEncoder

        x, y = getattr(datasets, f"load_{name}")()
        found = np.empty(len(y), dtype=KIND)
        found["event"], found["time"] = (y[field] for field in y.dtype.names)
        return OneHotEncoder().fit_transform(x.copy()).to_numpy(float), found

    return load


def generated(seed: int, n: int, p: int, k: int, form: str) -> Callable[[], tuple[Any, Any]]:
    """Return a function that makes samples whose log hazard depends on k of p features."""

    def make() -> tuple[Any, Any]:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n, p))
        if form == "linear":
            risk = x[:, :k].sum(axis=1) / np.sqrt(k)
        elif form == "square":
            risk = (np.square(x[:, :k]) - 1).sum(axis=1) / np.sqrt(2 * k)
        else:
            risk = x[:, 0] * x[:, 1] + x[:, 2]
        when, end = rng.exponential(np.exp(-risk)), rng.exponential(np.exp(-risk).mean(), n)
        y = np.empty(n, dtype=KIND)
        y["event"], y["time"] = when <= end, np.minimum(when, end)
        return x, y

    return make


DATA = {
    "gbsg2": public("gbsg2"),
    "whas500": public("whas500"),
    "veterans": public("veterans_lung_cancer"),
    "pairs": generated(1, 1000, 10, 3, "pairs"),
    "square": generated(2, 1000, 10, 3, "square"),
    "linear": generated(0, 400, 20, 10, "linear"),
    "breast": public("breast_cancer"),
    "wide5": generated(4, 300, 2000, 5, "linear"),
    "wide20": generated(3, 150, 1000, 20, "linear"),
    "wide100": generated(5, 150, 500, 100, "linear"),
}


def folds(y: Any, n_folds: int, seed: int) -> Iterator[tuple[Any, Any]]:
    """Yield training and validation rows, stratified by event."""
    from sklearn.model_selection import StratifiedKFold

    yield from StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(y, y["event"])


def coxnet(x: Any, y: Any, l1_ratio: float) -> Any:
    """Fit the elastic net, its penalty chosen by cross-validation."""
    from sksurv.linear_model import CoxnetSurvivalAnalysis

    # Further down the path of wide data, Coxnet stops with an arithmetic error.
    options = {"l1_ratio": l1_ratio, "alpha_min_ratio": 0.1 if x.shape[1] > 100 else 0.02}
    path = CoxnetSurvivalAnalysis(n_alphas=30, **options).fit(x, y).alphas_
    scores = np.zeros(path.size)
    for train, test in folds(y, 5, 0):
        model = CoxnetSurvivalAnalysis(alphas=path, **options).fit(x[train], y[train])
        for number, alpha in enumerate(path):
            risk = model.predict(x[test], alpha=alpha)
            scores[number] += concordance(y[test], risk)
    # Every penalty of the path starts from the one before; `predict` uses the last.
    return CoxnetSurvivalAnalysis(alphas=path[: int(np.argmax(scores)) + 1], **options).fit(x, y)


def ridge(x: Any, y: Any) -> Any:
    """Fit Cox regression with a ridge penalty, chosen by cross-validation."""
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    penalties = np.logspace(-1, 4, 6)
    scores = np.zeros(penalties.size)
    for train, test in folds(y, 5, 0):
        for number, alpha in enumerate(penalties):
            model = CoxPHSurvivalAnalysis(alpha=alpha).fit(x[train], y[train])
            scores[number] += concordance(y[test], model.predict(x[test]))
    return CoxPHSurvivalAnalysis(alpha=penalties[int(np.argmax(scores))]).fit(x, y)


def concordance(y: Any, risk: Any) -> float:
    """Return Harrell's C."""
    from sksurv.metrics import concordance_index_censored

    return float(concordance_index_censored(y["event"], y["time"], risk)[0])


def methods(n_features: int) -> dict[str, Callable[[Any, Any], Any]]:
    """Return functions that fit a model."""
    from ratoon import SparseMLPSurvival

    found: dict[str, Callable[[Any, Any], Any]] = {
        "ratoon": lambda x, y: SparseMLPSurvival(random_state=0, n_jobs=1).fit(x, y),
        "Coxnet 0.9": lambda x, y: coxnet(x, y, 0.9),
        "Coxnet 0.1": lambda x, y: coxnet(x, y, 0.1),
    }
    if n_features < 100:
        found["ridge"] = ridge
    return found


def main() -> None:
    """Score every method on every split, print a table, write JSON."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument("--splits", type=int, default=10)
    arguments.add_argument("--data", default=",".join(DATA))
    given = arguments.parse_args()
    warnings.simplefilter("ignore")
    rows, raw = [], {}
    with MachineState() as machine:
        for name in given.data.split(","):
            x, y = DATA[name]()
            scores: dict[str, list[float]] = {}
            seconds: dict[str, float] = {}
            for split in range(given.splits):
                order = np.random.default_rng(split).permutation(len(y))
                train, test = np.split(order, [int(0.7 * len(y))])
                mean, std = x[train].mean(axis=0), x[train].std(axis=0)
                z = (x - mean) / np.where(std > 0, std, 1.0)
                for method, fit in methods(x.shape[1]).items():
                    started = time.process_time()
                    model = fit(z[train], y[train])
                    seconds[method] = seconds.get(method, 0.0) + time.process_time() - started
                    scores.setdefault(method, []).append(
                        concordance(y[test], model.predict(z[test]))
                    )
            raw[name] = scores
            row = {"data": f"{name} ({len(y)} x {x.shape[1]}, {int(y['event'].sum())} events)"}
            for method in ("ratoon", "Coxnet 0.9", "Coxnet 0.1", "ridge"):
                row[method] = f"{np.mean(scores[method]):.3f}" if method in scores else ""
            row["s"] = f"{seconds['ratoon'] / given.splits:.2f}"
            row["s Coxnet"] = f"{seconds['Coxnet 0.9'] / given.splits:.2f}"
            rows.append(row)
            print(row, flush=True)
    print(markdown(rows))
    print("\n" + describe(machine.facts()))
    write_json(given.json, {"machine": machine.facts(), "scores": raw})


if __name__ == "__main__":
    main()

"""Recovery of informative features on generated data: ratoon's selectors against the usual ones.

    python benchmarks/selection.py --seeds 3 --markdown benchmarks/results/selection.md

For every generated set it is known which genes carry the class.  Each method ranks all genes by
the training rows; precision at k is the share of informative ones among its first k, with k the
number of informative genes.  Interactions are sets where no gene tells anything on its own.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import f_classif, mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from ratoon import SparseAutoencoderSelector, SparseFeatureSelector
from ratoon.datasets import make_interactions, make_microarray


def sets(seed):
    yield "clear, 2 classes", *make_microarray(100, 2000, 2, 40, effect=3.0, random_state=seed)
    yield "faint, 2 classes", *make_microarray(100, 2000, 2, 40, effect=1.5, random_state=seed)
    yield "5 classes", *make_microarray(150, 2000, 5, 50, effect=3.0, random_state=seed)
    yield "products of 2", *make_interactions(1000, 100, 2, random_state=seed)


def l1(x, y):
    model = LogisticRegression(l1_ratio=1.0, solver="saga", C=0.3, max_iter=200, tol=1e-3)
    return np.abs(model.fit(StandardScaler().fit_transform(x), y).coef_).sum(axis=0)


def forest(x, y):
    return RandomForestClassifier(300, random_state=0).fit(x, y).feature_importances_


METHODS = {
    "SparseFeatureSelector": lambda x, y: SparseFeatureSelector(random_state=0).fit(x, y).strength_,
    "the same, never rewired": lambda x, y: static(y).fit(x, y).strength_,
    "SparseAutoencoderSelector (no labels)": lambda x, y: (
        SparseAutoencoderSelector(random_state=0).fit(x).strength_
    ),
    "ANOVA F": lambda x, y: f_classif(x, y)[0],
    "l1 logistic": l1,
    "random forest": forest,
    "mutual information": lambda x, y: mutual_info_classif(x, y, random_state=0),
}


def static(y):
    from ratoon.estimators.selector import _default_estimator

    model = _default_estimator(y).set_params(evolution="static")
    return SparseFeatureSelector(estimator=model, random_state=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="generated sets of each kind")
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--markdown", type=Path, help="also write the table here")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found, seconds = {}, {}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for kind, data, informative in sets(seed):
            for name, rank in METHODS.items():
                started = time.perf_counter()
                first = np.argsort(-rank(data.X, data.y), kind="stable")[: informative.size]
                seconds.setdefault(name, []).append(time.perf_counter() - started)
                found.setdefault((name, kind), []).append(np.isin(first, informative).mean())
        print(f"seed {seed} done", flush=True)
    kinds = list(dict.fromkeys(kind for _, kind in found))
    lines = [
        f"Precision at k in %, mean of {options.seeds} generated sets of each kind"
        f" (seeds from {options.first_seed}); benchmarks/selection.py.",
        "",
        f"| method | {' | '.join(kinds)} | median seconds |",
        "|---|" + "---|" * (len(kinds) + 1),
    ]
    for name in METHODS:
        cells = " | ".join(f"{100 * np.mean(found[name, kind]):.1f}" for kind in kinds)
        lines.append(f"| {name} | {cells} | {np.median(seconds[name]):.2f} |")
    text = "\n".join(lines) + "\n"
    print(text)
    if options.markdown:
        options.markdown.parent.mkdir(parents=True, exist_ok=True)
        options.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

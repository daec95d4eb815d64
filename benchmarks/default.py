"""The default for many samples, and what users would pick instead: score, CPU seconds.

Real sets have a test part: MNIST its own, others a fifth of the rows, in equal shares of classes.
``MNIST:3100`` uses that many training rows.  Every method gets its defaults and a seed; linear and
dense rivals get z-scores of the training rows.  Nothing is chosen on test rows.  One thread.

Rows are appended to a CSV, and results with a row are not computed again.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse
from sklearn import datasets as toys
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV, SGDClassifier, SGDRegressor
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from ratoon import SparseMLPClassifier, SparseMLPRegressor

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
RESULTS = Path(__file__).parent / "results"
FIELDS = ("set", "rows", "features", "method", "seed", "score", "cpu_s", "how")

TABLES = (
    *("iris", "wine", "breast cancer", "digits", "moons", "classification", "diabetes"),
    *("friedman 2k", "friedman 20k"),
)
REAL = ("Isolet", "COIL20", "madelon", "PCMAC", "BASEHOCK")
GENERATED = ("dense 200k", "sparse 100k", "noisy 20 classes")
GROWING = (500, 1500, 2900, 3100, 6000, 20000, 60000)
GROWING_PRODUCTS = (2900, 3100, 6000, 20000)
CURVES = {
    "MNIST": GROWING,
    "Isolet": (200, 400, 700, 1000, 1248),
    "madelon": (500, 1000, 1500, 2080),
    "digits": (200, 500, 900, 1437),
}
EXAMPLES = """
examples:
  python benchmarks/default.py --sets tables
  python benchmarks/default.py --sets mnist,generated --methods ratoon,lightgbm
  python benchmarks/default.py --sets "dense 200k" --cap 20000      # fewer rows of each set
  python benchmarks/default.py --sets curves --seeds 0,1,2          # for default_curves.py
  python benchmarks/default.py --report                             # only write the table again
"""


def dense_non_linear(n: int) -> tuple[Any, Any]:
    """Return 500 features, 60 of them informative, two classes of 16 clusters each."""
    x, y = toys.make_classification(
        n, 500, n_informative=40, n_redundant=20, n_clusters_per_class=16, flip_y=0.03,
        random_state=0,
    )  # fmt: skip
    return x.astype(np.float32), y


def sparse_linear(n: int, n_features: int = 100_000) -> tuple[Any, Any]:
    """Return rows of 100 values; 8 are of the 500 features of their class; 5 % wrong labels."""
    rng = np.random.default_rng(0)
    y, stored = rng.integers(0, 20, n), 100
    columns = rng.integers(0, n_features, (n, stored))
    pools = rng.integers(0, n_features, (20, 500))
    columns[:, :8] = pools[y[:, None], rng.integers(0, 500, (n, 8))]
    values = rng.random(n * stored).astype(np.float32) + 0.5
    starts = np.arange(0, n * stored + 1, stored, dtype=np.int32)
    x = scipy.sparse.csr_array((values, columns.ravel().astype(np.int32), starts), (n, n_features))
    x.sum_duplicates()
    wrong = rng.random(n) < 0.05
    y[wrong] = rng.integers(0, 20, wrong.sum())
    return x, y


def noisy_classes(n: int) -> tuple[Any, Any]:
    """Return 2,000 features, 100 of them informative, and 20 classes of two clusters each."""
    x, y = toys.make_classification(
        n, 2000, n_informative=60, n_redundant=40, n_classes=20, n_clusters_per_class=2,
        flip_y=0.02, class_sep=1.5, random_state=0,
    )  # fmt: skip
    return x.astype(np.float32), y


def products(n: int) -> tuple[Any, Any]:
    """Return 500 features as of madelon: 20 are about two classes, and none of them alone.

    The 32 corners of a cube in 5 dimensions belong to classes at random.  5 features are points
    near a corner, 15 are sums of these 5; the others are noise.  1 % of the labels are wrong.
    """
    rng = np.random.default_rng(0)
    corners = np.array(np.meshgrid(*[[-2.0, 2.0]] * 5)).reshape(5, -1).T
    classes, corner = rng.permutation(np.repeat([0, 1], 16)), rng.integers(0, 32, n)
    spread = rng.uniform(-1, 1, (32, 5, 5))[corner]
    points = corners[corner] + np.einsum("ni,nij->nj", rng.normal(size=(n, 5)), spread)
    sums = points @ rng.uniform(-1, 1, (5, 15))
    x = np.hstack((points, sums, rng.normal(size=(n, 480))))[:, rng.permutation(500)]
    y = np.where(rng.random(n) < 0.01, 1 - classes[corner], classes[corner])
    return (x / x.std(axis=0)).astype(np.float32), y


def classification() -> tuple[Any, Any]:
    """Return 4,000 x 30 with four classes and 10 % wrong labels."""
    return toys.make_classification(
        4000, 30, n_informative=15, n_redundant=5, n_classes=4, flip_y=0.1, class_sep=0.7,
        random_state=0,
    )  # fmt: skip


MADE: dict[str, Callable[[], tuple[Any, Any]]] = {
    "iris": lambda: toys.load_iris(return_X_y=True),
    "wine": lambda: toys.load_wine(return_X_y=True),
    "breast cancer": lambda: toys.load_breast_cancer(return_X_y=True),
    "digits": lambda: toys.load_digits(return_X_y=True),
    "moons": lambda: toys.make_moons(1000, noise=0.3, random_state=0),
    "classification": classification,
    "diabetes": lambda: toys.load_diabetes(return_X_y=True),
    "friedman 2k": lambda: toys.make_friedman1(2500, 20, noise=1.0, random_state=0),
    "friedman 20k": lambda: toys.make_friedman1(25_000, 20, noise=1.0, random_state=0),
    "dense 200k": lambda: dense_non_linear(250_000),
    "sparse 100k": lambda: sparse_linear(125_000),
    "noisy 20 classes": lambda: noisy_classes(25_000),
    "products": lambda: products(25_000),
}
REGRESSION = ("diabetes", "friedman 2k", "friedman 20k")


def read_real(name: str) -> tuple[Any, Any]:
    """Read a set from the shared folder."""
    if (DATA / f"{name}.npz").exists():
        found = np.load(DATA / f"{name}.npz")
        return found["X"], found["y"]
    found = scipy.io.loadmat(DATA / f"{name}.mat")
    x = found["X"]
    if name in ("PCMAC", "BASEHOCK"):
        x = scipy.sparse.csr_array(x).astype(np.float32)
        x.indices, x.indptr = x.indices.astype(np.int32), x.indptr.astype(np.int32)
    return x, found["Y"].ravel()


def parts_of(name: str, cap: int | None, seed: int) -> tuple[Any, ...]:
    """Return the training and the test rows of a set."""
    name, _, n = name.partition(":")
    cap = int(n) if n else cap
    if name == "MNIST":
        found = np.load(DATA / "mnist.npz")
        x, y, train = found["X"], found["y"], found["train"]
        x, fresh, y, known = x[train], x[~train], y[train], y[~train]
    else:
        x, y = MADE[name]() if name in MADE else read_real(name)
        x, fresh, y, known = train_test_split(
            x, y, test_size=0.2, random_state=seed, stratify=None if name in REGRESSION else y
        )
    if cap is not None and cap < len(y):
        rows = np.random.default_rng(seed).permutation(len(y))[:cap]
        x, y = x[rows], y[rows]
    return x, y, fresh, known


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def _lightgbm(kind: str) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        import lightgbm

        return getattr(lightgbm, kind)(random_state=seed, n_jobs=1, verbose=-1)

    return make


CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "ratoon": lambda seed: SparseMLPClassifier(random_state=seed, n_jobs=1),
    "logistic": lambda seed: _scaled(LogisticRegression(max_iter=200, random_state=seed)),
    "sgd": lambda seed: SGDClassifier(random_state=seed),
    "forest": lambda seed: RandomForestClassifier(random_state=seed, n_jobs=1),
    "lightgbm": _lightgbm("LGBMClassifier"),
    "boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "dense MLP": lambda seed: _scaled(MLPClassifier(random_state=seed)),
}
REGRESSORS: dict[str, Callable[[int], Any]] = {
    "ratoon": lambda seed: SparseMLPRegressor(random_state=seed, n_jobs=1),
    "logistic": lambda seed: _scaled(RidgeCV()),
    "sgd": lambda seed: _scaled(SGDRegressor(random_state=seed)),
    "forest": lambda seed: RandomForestRegressor(random_state=seed, n_jobs=1),
    "lightgbm": _lightgbm("LGBMRegressor"),
    "boosting": lambda seed: HistGradientBoostingRegressor(random_state=seed),
    "dense MLP": lambda seed: _scaled(MLPRegressor(random_state=seed)),
}
DENSE_ONLY = ("logistic", "boosting", "dense MLP")
METHODS = tuple(CLASSIFIERS)


def result(name: str, method: str, seed: int, cap: int | None) -> dict[str, Any] | None:
    """Fit a method to a set; None if it cannot be fitted to it."""
    x, y, fresh, known = parts_of(name, cap, seed)
    if scipy.sparse.issparse(x) and method in DENSE_ONLY:
        return None
    model = (REGRESSORS if name in REGRESSION else CLASSIFIERS)[method](seed)
    if method in ("sgd", "lightgbm") and not scipy.sparse.issparse(x) and name not in REGRESSION:
        model = _scaled(model) if method == "sgd" else model
        x, fresh = (values.astype(np.float32, copy=False) for values in (x, fresh))
    started = time.process_time()
    with threadpool_limits(limits=1):
        model.fit(x, y)
    seconds = time.process_time() - started
    how = ""
    if method == "ratoon":
        shares = getattr(model, "member_shares_", {})
        kept = ", ".join(f"{k} {v:.1f}" for k, v in shares.items() if v > 0)
        how = "closed form" if model.solver_ == "closed form" else kept
    return dict(
        zip(
            FIELDS,
            (name, x.shape[0], x.shape[1], method, seed, model.score(fresh, known), seconds, how),
            strict=True,
        )
    )


def names_of(text: str) -> list[str]:
    """Return the names of sets; a group stands for its members."""
    groups = {
        "tables": list(TABLES),
        "real": list(REAL),
        "generated": list(GENERATED),
        "mnist": [f"MNIST:{n}" for n in GROWING],
        "products": [f"products:{n}" for n in GROWING_PRODUCTS],
        "curves": [f"{name}:{n}" for name, sizes in CURVES.items() for n in sizes],
    }
    return [name for word in text.split(",") for name in groups.get(word, [word])]


def write_table(path: Path, out: Path) -> None:
    """Write the mean scores and CPU seconds of all results as one table."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    lines = [
        "# The default for many samples",
        "",
        "Test accuracy in % (R2 for regression) and, in brackets, CPU seconds of a fit on one"
        " thread. `python benchmarks/default.py`",
        "says what was run. Rivals have their defaults; nothing was chosen on test rows.",
        "",
        "| set | rows x features | " + " | ".join(METHODS) + " | how ratoon was fitted |",
        "|---|---|" + "---|" * (len(METHODS) + 1),
    ]
    keys = dict.fromkeys((row["set"], row["rows"], row["features"]) for row in rows)
    for name, n, p in keys:
        cells, how = [], ""
        for method in METHODS:
            found = [
                row for row in rows if (row["set"], row["rows"], row["method"]) == (name, n, method)
            ]
            if not found:
                cells.append("-")
                continue
            factor, digits = (1, 3) if name in REGRESSION else (100, 2)
            score = factor * np.mean([float(row["score"]) for row in found])
            seconds = np.mean([float(row["cpu_s"]) for row in found])
            cells.append(f"{score:.{digits}f} ({seconds:.2g})")
            how = how or found[0]["how"]
        size = f"{int(n):,} x {int(p):,}"
        lines.append(f"| {name.partition(':')[0]} | {size} | {' | '.join(cells)} | {how} |")
    out.write_text("\n".join(lines) + "\n")


def main() -> None:
    """Run what has no row yet, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default="tables,real,mnist,generated")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", default="0", help="0,1,2")
    parser.add_argument("--cap", type=int, help="use at most so many training rows")
    parser.add_argument("--rows", type=Path, default=RESULTS / "default.csv")
    parser.add_argument("--out", type=Path, default=RESULTS / "default.md")
    parser.add_argument("--report", action="store_true", help="run nothing")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    done = set()
    if given.rows.exists():
        with given.rows.open() as file:
            done = {(r["set"], r["method"], r["seed"]) for r in csv.DictReader(file)}
    for name in [] if given.report else names_of(given.sets):
        for seed in given.seeds.split(","):
            for method in given.methods.split(","):
                if (name, method, seed) in done:
                    continue
                row = result(name, method, int(seed), given.cap)
                if row is None:
                    continue
                print(row, flush=True)
                is_new = not given.rows.exists()
                with given.rows.open("a", newline="") as file:
                    writer = csv.DictWriter(file, FIELDS)
                    if is_new:
                        writer.writeheader()
                    writer.writerow(row)
    write_table(given.rows, given.out)


if __name__ == "__main__":
    main()

"""Thousands of genes predicted from about a thousand, on generated expression profiles.

The task is that of D-GEX (Chen et al., Bioinformatics 2016): a chip measures some 1,000 landmark
genes, and a model infers the others.  Here expression follows from hidden programs: a gene loads on
a few of them, with noise of its own, and part of the target genes respond to a program only above
a threshold, or to two programs together.  The error of a gene is the mean absolute error on fresh
samples, in units of the gene's standard deviation.  Every method runs in its own process, on one
thread.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common.isolate import run_fresh
from common.memory import peak_mb
from common.tables import markdown, parser, write_json
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from threadpoolctl import threadpool_limits

from ratoon import SparseMLPRegressor

Array = NDArray[Any]

EXAMPLES = """
  python benchmarks/genes.py
  python benchmarks/genes.py --samples 2500 --targets 4000
  python benchmarks/genes.py --methods ratoon,ridge
"""
METHODS: dict[str, tuple[str, Any]] = {
    "ratoon": ("**ratoon, default**", lambda: SparseMLPRegressor(random_state=0, n_jobs=1)),
    "linear": ("linear regression", LinearRegression),
    "ridge": ("ridge, cross-validated", lambda: RidgeCV(np.logspace(-1, 5, 13))),
    "knn": ("20 nearest neighbours", lambda: KNeighborsRegressor(20, weights="distance")),
    "mlp": (
        "dense MLP, 1,000 hidden, early stopping",
        lambda: MLPRegressor(hidden_layer_sizes=(1000,), early_stopping=True, random_state=0),
    ),
}
N_PROGRAMS, LOADINGS_PER_GENE, N_TEST = 60, 6, 500


def expression(n_samples: int, n_landmarks: int, n_targets: int, seed: int) -> tuple[Array, Array]:
    """Return standardised expression of landmark and target genes.

    >>> x, y = expression(200, 30, 50, seed=0)
    >>> x.shape, y.shape, bool(np.abs(y.mean(axis=0)).max() < 1e-6)
    ((200, 30), (200, 50), True)
    """
    rng = np.random.default_rng(seed)
    # A few programs vary strongly, most a little, as in the spectrum of real expression.
    size = np.arange(1, N_PROGRAMS + 1) ** -0.5
    programs = rng.standard_normal((n_samples, N_PROGRAMS))

    def linear(n_genes: int) -> Array:
        loadings = np.zeros((N_PROGRAMS, n_genes))
        for gene in range(n_genes):
            chosen = rng.choice(N_PROGRAMS, LOADINGS_PER_GENE, replace=False)
            loadings[chosen, gene] = rng.standard_normal(LOADINGS_PER_GENE)
        return (programs * size) @ loadings

    def noisy(signal: Array, noise: Array) -> Array:
        x = signal / signal.std(axis=0) + noise * rng.standard_normal(signal.shape)
        return ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32)

    landmarks = linear(n_landmarks)
    targets = linear(n_targets)
    a, b = rng.integers(10, size=(2, n_targets))
    kinds = rng.integers(3, size=n_targets)
    response = np.where(
        kinds == 1, np.maximum(programs[:, a], 0.0), programs[:, a] * programs[:, b]
    )
    targets = targets / targets.std(axis=0) + (kinds > 0) * response
    x = noisy(landmarks, 0.6 * np.ones(n_landmarks))
    return x, noisy(targets, rng.uniform(0.3, 1.2, n_targets))


def run(*, method: str, n_samples: int, n_landmarks: int, n_targets: int) -> dict[str, Any]:
    """Fit and score one method; return the error of every gene, seconds and memory."""
    x, y = expression(n_samples + N_TEST, n_landmarks, n_targets, seed=1)
    before = peak_mb()
    started = time.process_time()
    model = METHODS[method][1]()
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x[:n_samples], y[:n_samples])
        fitted = time.process_time()
        predicted = model.predict(x[n_samples:])
    errors = np.abs(predicted - y[n_samples:]).mean(axis=0)
    return {
        "errors": errors.tolist(),
        "fit_s": fitted - started,
        "predict_s": time.process_time() - fitted,
        "more_mb": peak_mb() - before,
    }


def lines(results: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the table."""
    rows = []
    for method, found in results.items():
        errors = np.array(found["errors"])
        row = {
            "": METHODS[method][0],
            "error per gene": f"{errors.mean():.4f}",
            "median gene": f"{np.median(errors):.4f}",
        }
        if "ratoon" in results:
            better = np.mean(np.array(results["ratoon"]["errors"]) < errors)
            row["genes where ratoon is better"] = (
                "-" if method == "ratoon" else f"{100 * better:.0f} %"
            )
        row["fit, CPU s"] = f"{found['fit_s']:.1f}"
        row["prediction, CPU s"] = f"{found['predict_s']:.2f}"
        row["memory, MB"] = f"{found['more_mb']:.0f}"
        rows.append(row)
    return rows


def main() -> None:
    """Run all methods and print the table."""
    options = parser(__doc__, EXAMPLES)
    options.add_argument("--samples", type=int, default=1500, help="training samples")
    options.add_argument("--landmarks", type=int, default=943)
    options.add_argument("--targets", type=int, default=2000, help="genes to predict")
    options.add_argument("--methods", default=",".join(METHODS))
    options.add_argument("--out", type=Path, help="write the table to this file as well")
    given = options.parse_args()
    results = {}
    for method in given.methods.split(","):
        results[method] = run_fresh(
            "genes:run",
            method=method,
            n_samples=given.samples,
            n_landmarks=given.landmarks,
            n_targets=given.targets,
        )
        if "failed" in results[method]:
            raise SystemExit(f"{method}: {results[method]['failed']}")
    text = (
        "# Target genes predicted from landmark genes, generated data\n\n"
        f"Written by `python benchmarks/genes.py`: {given.samples:,} training samples,"
        f" {given.landmarks:,} landmark genes, {given.targets:,} target genes,\n{N_TEST} test"
        " samples, one thread.  The error of a gene is its mean absolute error in standard"
        " deviations; memory is the peak\nabove that of the data.\n\n"
        + markdown(lines(results))
        + "\n"
    )
    print(text)
    if given.out:
        given.out.write_text(text)
    write_json(given.json, {"results": results})


if __name__ == "__main__":
    main()

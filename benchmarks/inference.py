"""Prediction away from training: kernels, onnxruntime and NumPy alone; and what an export takes.

A classifier with epsilon 10 predicts probabilities for 1 and for 64 samples, on one thread.  For
the export: size of the file, and how far memory rose above the model while it was written.
"""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from common.isolate import run_fresh
from common.machine import MachineState
from common.memory import forget_peak, peak_mb, resident_mb
from common.tables import markdown, parser, write_json
from common.timing import repeat

from ratoon import SparseMLPClassifier

EXAMPLES = """\
  inference.py --json results/inference.json
  inference.py --models digits
"""
MODELS = {
    "digits": (784, 1000, 1000, 10),
    "b": (11_340, 9_000, 9_000, 5),
    "f": (54_675, 27_500, 27_500, 18),
}


def measure(widths: list[int], batches: list[int]) -> dict[str, Any]:
    """Fit hardly, export, and let all three predict."""
    import onnx  # noqa: F401 (its own memory is not that of an export)
    import onnxruntime

    from ratoon.export import to_onnx
    from ratoon.inference import Predictor

    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, widths[0]), dtype=np.float32)
    y = np.arange(64) % widths[-1]
    model = SparseMLPClassifier(
        tuple(widths[1:-1]), epsilon=10.0, max_iter=1, dtype="float32", n_jobs=1, random_state=0
    ).fit(x, y)
    n_connections = model.network_.n_connections
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        forget_peak()
        before = resident_mb()
        to_onnx(model, path)
        export_mb = peak_mb() - before
        size_mb = path.stat().st_size / 1e6
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options)
    predictor = Predictor.of(model)
    found: dict[str, Any] = {
        "connections": n_connections,
        "file_mb": size_mb,
        "dense_mb": 4e-6 * sum(a * b for a, b in pairwise(widths)),
        "export_peak_mb": export_mb,
        "export_bytes_per_connection": 1e6 * export_mb / n_connections,
    }
    expected = model.predict_proba(x)
    found["largest_difference"] = max(
        float(np.abs(expected - other).max())
        for other in (session.run(None, {"X": x})[0], predictor.predict_proba(x))
    )
    for batch in batches:
        part = x[:batch]
        ways = {
            "kernels": lambda part=part: model.predict_proba(part),
            "onnxruntime": lambda part=part: session.run(None, {"X": part}),
            "numpy": lambda part=part: predictor.predict_proba(part),
        }
        for name, run in ways.items():
            timing = repeat(run, repeats=5, at_least_s=0.5, budget_s=10.0)
            found[f"{name}_{batch}_ms"] = 1e3 * timing.cpu_s
    return found


def main() -> None:
    """Measure and print."""
    options = parser(__doc__ or "", EXAMPLES)
    options.add_argument("--models", default=",".join(MODELS), help=f"of {','.join(MODELS)}")
    given = options.parse_args()
    rows = []
    with MachineState() as machine:
        for name in given.models.split(","):
            found = run_fresh("inference:measure", widths=list(MODELS[name]), batches=[1, 64])
            rows.append({"network": "-".join(map(str, MODELS[name])), **found})
    print(markdown(rows))
    write_json(given.json, {"networks": rows, "machine": machine.facts()})


if __name__ == "__main__":
    main()

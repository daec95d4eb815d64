"""Latency and memory of serving: ratoon, NumPy alone, onnxruntime, scikit-learn's MLP, LightGBM.

Classifiers of 784 features and 10 classes predict probabilities for 1 and 1,000 samples on one
thread.  Every way loads its model from a file in a process of its own; memory is that of the whole
process, libraries included.  The models differ in accuracy: this is about cost only.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common.isolate import run_fresh
from common.machine import MachineState
from common.memory import resident_mb
from common.tables import markdown, parser, write_json
from common.timing import repeat

EXAMPLES = """\
  latency.py --json results/latency.json
  latency.py --ways ratoon,numpy,onnxruntime
"""
FEATURES, CLASSES, HIDDEN, TREES = 784, 10, (1000, 1000), 100
WAYS = ("ratoon", "numpy", "onnxruntime", "onnxruntime int8", "sklearn", "lightgbm")
BATCHES = (1, 1000)


def samples(n: int) -> tuple[Any, Any]:
    """Return random samples with classes that can be learnt."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, FEATURES), dtype=np.float32)
    return x, x[:, :CLASSES].argmax(axis=1)


def train(way: str, folder: str) -> dict[str, Any]:
    """Fit a model and write its file."""
    path = Path(folder)
    x, y = samples(2000)
    if way == "ratoon":
        from ratoon import SparseMLPClassifier
        from ratoon.export import to_onnx

        model = SparseMLPClassifier(
            HIDDEN, epsilon=10.0, max_iter=3, dtype="float32", n_jobs=1, random_state=0
        ).fit(x, y)
        model.save(path / "ratoon", optimizer=False)
        to_onnx(model, path / "onnxruntime")
        to_onnx(model, path / "onnxruntime int8", weights="int8")
    elif way == "sklearn":
        import pickle
        import warnings

        from sklearn.neural_network import MLPClassifier

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dense = MLPClassifier(HIDDEN, max_iter=3, random_state=0).fit(x, y)
        (path / "sklearn").write_bytes(pickle.dumps(dense))
    elif way == "lightgbm":
        import lightgbm

        parameters = {
            "objective": "multiclass",
            "num_class": CLASSES,
            "verbose": -1,
            "num_threads": 1,
        }
        lightgbm.train(parameters, lightgbm.Dataset(x, y), TREES).save_model(path / "lightgbm")
    return {}


def opened(way: str, path: Path) -> Callable[[Any], Any]:
    """Load a model and return its function from samples to probabilities."""
    if way == "ratoon":
        import ratoon

        return ratoon.load(path).set_params(n_jobs=1).predict_proba
    if way == "numpy":
        from ratoon.inference import Predictor

        return Predictor.load(path).predict_proba
    if way.startswith("onnxruntime"):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options)
        return lambda x: session.run(["probabilities"], {"X": x})[0]
    if way == "sklearn":
        import pickle

        return pickle.loads(path.read_bytes()).predict_proba
    import lightgbm

    booster = lightgbm.Booster(model_file=path)
    return lambda x: booster.predict(x, num_threads=1)


def measure(way: str, file: str) -> dict[str, Any]:
    """Load and predict in this process."""
    started = time.process_time()
    predict = opened(way, Path(file))
    found: dict[str, Any] = {
        "way": way,
        "file_mb": Path(file).stat().st_size / 1e6,
        "load_cpu_s": time.process_time() - started,
    }
    x, _ = samples(max(BATCHES))
    for batch in BATCHES:
        part = x[:batch]
        timing = repeat(lambda part=part: predict(part), repeats=5, at_least_s=0.2, budget_s=8.0)
        found[f"ms_{batch}"] = 1e3 * timing.cpu_s
    found["process_mb"] = resident_mb()
    return found


def main() -> None:
    """Measure and print."""
    options = parser(__doc__ or "", EXAMPLES)
    options.add_argument("--ways", default=",".join(WAYS), help=f"of {','.join(WAYS)}")
    given = options.parse_args()
    ways = given.ways.split(",")
    rows = []
    with MachineState() as machine, tempfile.TemporaryDirectory() as folder:
        for way in ("ratoon", "sklearn", "lightgbm"):
            if way == "ratoon" or way in ways:
                failed = run_fresh("latency:train", way=way, folder=folder)
                if "failed" in failed:
                    rows.append({"way": way, **failed})
        for way in ways:
            file = Path(folder) / ("ratoon" if way == "numpy" else way)
            if file.exists():
                rows.append({"way": way, **run_fresh("latency:measure", way=way, file=str(file))})
    print(markdown(rows))
    write_json(given.json, {"ways": rows, "machine": machine.facts()})


if __name__ == "__main__":
    main()

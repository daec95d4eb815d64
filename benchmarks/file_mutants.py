"""What slightly damaged model files do to the libraries that load them.

Every library writes one small file.  The same mutator changes one to three places in it, and the
mutant is loaded and used once in a child process.  A child that is ended by a signal died; an
exception is a clean error; an accepted mutant is a file that is still valid, or whose damage was
not detected.

ratoon's file is tested twice: unchanged, where the digest detects all damage, and *sealed*, with a
new digest for every mutant, as an attacker would compute it, so that only the other checks protect
native code.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common.machine import MachineState
from common.mutants import Repair, try_mutants
from common.tables import markdown, parser, write_json

EXAMPLES = """\
  file_mutants.py --mutants 2000 --json results/file_mutants.json
  file_mutants.py --loaders "ratoon sealed,LightGBM text" --mutants 200
"""
N_FEATURES = 20


def samples() -> tuple[Any, Any]:
    """Return the data that every library learns from."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, N_FEATURES)).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] > 0).astype(int)


def a_sparse_matrix() -> Any:
    import scipy.sparse

    return scipy.sparse.random(60, N_FEATURES, 0.2, format="csr", random_state=0, dtype="f4")


# ------------------------------------------------------------------ how to write and use a file


def write_ratoon(path: str) -> None:
    from ratoon import SparseMLPClassifier

    how = {"density": 0.3, "max_iter": 2, "solver": "sgd", "random_state": 0}
    SparseMLPClassifier((20,), **how).fit(*samples()).save(path)


def use_ratoon(path: str) -> None:
    import ratoon

    ratoon.load(path).predict(samples()[0][:5])


def sealed(raw: bytes) -> bytes:
    """Make the digest right again, where there still is one."""
    found = re.search(rb"sha256:[0-9a-f]{64}", raw)
    if found is None:
        return raw
    first, last = found.start() + 7, found.end()
    digest = hashlib.sha256(raw[:first] + b"0" * 64 + raw[last:]).hexdigest()
    return raw[:first] + digest.encode() + raw[last:]


def write_lightgbm(path: str) -> None:
    import lightgbm

    x, y = samples()
    options = {"objective": "binary", "num_leaves": 7, "verbose": -1, "num_threads": 1}
    lightgbm.train(options, lightgbm.Dataset(x, y), 5).save_model(path)


def use_lightgbm(path: str) -> None:
    import lightgbm

    lightgbm.Booster(model_file=path).predict(samples()[0][:5], num_threads=1)


def write_xgboost(path: str) -> None:
    import xgboost

    x, y = samples()
    options = {"max_depth": 3, "nthread": 1, "objective": "binary:logistic"}
    xgboost.train(options, xgboost.DMatrix(x, y, nthread=1), 5).save_model(path)


def use_xgboost(path: str) -> None:
    import xgboost

    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(path)
    booster.predict(xgboost.DMatrix(samples()[0][:5], nthread=1))


def write_mat(path: str) -> None:
    import scipy.io

    scipy.io.savemat(path, {"W": a_sparse_matrix()}, do_compression=False, appendmat=False)


def use_mat(path: str) -> None:
    import scipy.io

    scipy.io.loadmat(path, appendmat=False)["W"] @ np.ones(N_FEATURES, np.float32)


def write_npz(path: str) -> None:
    import scipy.sparse

    with open(path, "wb") as file:
        scipy.sparse.save_npz(file, a_sparse_matrix(), compressed=False)


def use_npz(path: str) -> None:
    import scipy.sparse

    with open(path, "rb") as file:
        scipy.sparse.load_npz(file) @ np.ones(N_FEATURES, np.float32)


def write_torch(path: str) -> None:
    import torch

    matrix = a_sparse_matrix()
    parts = (matrix.indptr.astype("i8"), matrix.indices.astype("i8"), matrix.data)
    made = torch.sparse_csr_tensor(*map(torch.from_numpy, parts), size=matrix.shape)
    torch.save({"weight": made}, path)


def use_torch(path: str) -> None:
    import torch

    torch.load(path, weights_only=True)["weight"] @ torch.ones(N_FEATURES, 1)


def write_safetensors(path: str) -> None:
    import safetensors.numpy

    matrix = a_sparse_matrix()
    parts = {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data}
    safetensors.numpy.save_file(parts, path)


def use_safetensors(path: str) -> None:
    """Do what a library does that trusts the container: no look at the indices."""
    import safetensors.numpy
    import scipy.sparse

    parts = safetensors.numpy.load_file(path)
    matrix = scipy.sparse.csr_matrix((60, N_FEATURES), dtype="f4")
    matrix.indptr, matrix.indices, matrix.data = parts["indptr"], parts["indices"], parts["data"]
    matrix @ np.ones(N_FEATURES, np.float32)


@dataclass(frozen=True)
class Loader:
    """How a library writes a file, and what is done with what it reads."""

    needs: str
    ending: str
    write: Callable[[str], None]
    use: Callable[[str], None]
    repair: Repair | None = None


LOADERS = {
    "ratoon": Loader("ratoon", ".ratoon", write_ratoon, use_ratoon),
    "ratoon sealed": Loader("ratoon", ".ratoon", write_ratoon, use_ratoon, sealed),
    "LightGBM text": Loader("lightgbm", ".txt", write_lightgbm, use_lightgbm),
    "XGBoost JSON": Loader("xgboost", ".json", write_xgboost, use_xgboost),
    "XGBoost UBJ": Loader("xgboost", ".ubj", write_xgboost, use_xgboost),
    "SciPy sparse .mat": Loader("scipy", ".mat", write_mat, use_mat),
    "SciPy sparse .npz": Loader("scipy", ".npz", write_npz, use_npz),
    "torch CSR": Loader("torch", ".pt", write_torch, use_torch),
    "safetensors into SciPy": Loader("safetensors", ".st", write_safetensors, use_safetensors),
}


def measure(name: str, count: int, seed: int) -> dict[str, Any]:
    """Return what became of the mutants of one loader."""
    loader = LOADERS[name]
    if importlib.util.find_spec(loader.needs) is None:
        return {"loader": name, "skipped": f"{loader.needs} is not installed"}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "file" + loader.ending))
        # Written in a process of its own: a library may start threads, and those end at a fork.
        subprocess.run([sys.executable, __file__, "--write", name, path], check=True)
        content = Path(path).read_bytes()
        ending = loader.ending

        def load(mutant: str) -> None:
            # XGBoost detects the format by the name of the file.
            Path(mutant).replace(mutant + ending)
            loader.use(mutant + ending)

        importlib.import_module(loader.needs)
        found = try_mutants(
            content, load, count=count, seed=seed, folder=folder, repair=loader.repair
        )
    return {"loader": name, "file_bytes": len(content), **found}


def main() -> None:
    options = parser(__doc__ or "", EXAMPLES)
    options.add_argument("--mutants", type=int, default=2000, help="of every loader's file")
    options.add_argument("--loaders", default=",".join(LOADERS))
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--write", nargs=2, metavar=("LOADER", "PATH"), help="only write a file")
    given = options.parse_args()
    if given.write:
        LOADERS[given.write[0]].write(given.write[1])
        return
    names = [name.strip() for name in given.loaders.split(",")]
    rows = []
    with MachineState() as machine:
        for name in names:
            rows.append(measure(name, given.mutants, given.seed))
            print(rows[-1], file=sys.stderr, flush=True)
    print(markdown(rows))
    write_json(given.json, {"machine": machine.facts(), "seed": given.seed, "loaders": rows})


if __name__ == "__main__":
    main()

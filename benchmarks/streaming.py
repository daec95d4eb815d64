"""One epoch on a CSR matrix in an .h5ad file that stays on disk: seconds and peak memory.

The file is generated in ``--folder`` and removed afterwards: cells with ``--per-cell`` counts each,
at random genes, and two kinds of cells.  Training runs in a process of its own; its memory is the
peak of the resident set, and what it was before the file was opened.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

from common.isolate import run_fresh
from common.machine import MachineState, describe
from common.tables import markdown, parser, write_json

EXAMPLES = """\
  streaming.py --folder /var/tmp --json streaming.json     1 M cells x 20,000 genes, 1.7 GB of disk
  streaming.py --cells 1e4                                 a hundredth of it
"""
GENES_AT_ONCE = 20_000


def generate(path: Path, n_cells: int, n_genes: int, per_cell: int, seed: int = 0) -> None:
    """Write the file, some thousand cells at a time."""
    import h5py
    import numpy as np

    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 2, n_cells)
    stored = n_cells * per_cell
    with h5py.File(path, "w") as file:
        x = file.create_group("X")
        x.attrs.update({"encoding-type": "csr_matrix", "shape": (n_cells, n_genes)})
        values = x.create_dataset("data", (stored,), "f4", chunks=(2**18,))
        indices = x.create_dataset("indices", (stored,), "i4", chunks=(2**18,))
        x["indptr"] = np.arange(n_cells + 1, dtype=np.int64) * per_cell
        step = n_genes / per_cell
        for first in range(0, n_cells, GENES_AT_ONCE):
            rows = np.arange(first, min(first + GENES_AT_ONCE, n_cells))
            # One gene in each interval, so that the genes of a cell ascend and differ.
            places = np.floor((np.arange(per_cell) + rng.random((rows.size, per_cell))) * step)
            counts = rng.geometric(0.5, (rows.size, per_cell)).astype(np.float32)
            counts += 2.0 * (places < n_genes // 10) * kinds[rows][:, None]
            here = slice(first * per_cell, (first + rows.size) * per_cell)
            values[here], indices[here] = counts.ravel(), places.astype(np.int32).ravel()
        for name, size in (("obs", n_cells), ("var", n_genes)):
            frame = file.create_group(name)
            frame.attrs["_index"] = "_index"
            frame["_index"] = np.array([f"{name}{i}" for i in range(size)], dtype="S")
        column = file["obs"].create_group("kind")
        column["codes"] = kinds.astype(np.int8)
        column["categories"] = np.array(["a", "b"], dtype="S")


def train(path: str, hidden: int) -> dict[str, Any]:
    """Open the file, train for one epoch, predict some cells."""
    from ratoon import SparseMLPClassifier
    from ratoon.datasets import open_stored

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    before, started = peak(), time.process_time()
    data = open_stored(path, label="kind")
    opened, opened_at = peak(), time.process_time()
    model = SparseMLPClassifier(
        (hidden,), max_iter=1, batch_size=128, random_state=0, n_jobs=1, solver="adam"
    )
    model.fit(data)
    trained_at = time.process_time()
    part = data.take(range(min(10_000, data.n_samples)))
    return {
        "before_mb": before,
        "opened_mb": opened,
        "peak_mb": peak(),
        "open_seconds": opened_at - started,
        "fit_seconds": trained_at - opened_at,
        "accuracy_on_training_rows": float(model.score(part, part.labels)),
        "connections": int(model.network_.n_connections),
    }


def main() -> None:
    """Generate, train, print a table, write JSON."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument("--cells", type=float, default=1e6)
    arguments.add_argument("--genes", type=float, default=2e4)
    arguments.add_argument("--per-cell", type=int, default=200, help="stored counts per cell")
    arguments.add_argument("--hidden", type=int, default=200)
    arguments.add_argument("--folder", default=".")
    given = arguments.parse_args()
    path = Path(given.folder) / "streaming.h5ad"
    try:
        generate(path, int(given.cells), int(given.genes), given.per_cell)
        size = path.stat().st_size
        with MachineState() as machine:
            found = run_fresh(
                "streaming:train", n_threads=1, timeout_s=3600, path=str(path), hidden=given.hidden
            )
    finally:
        path.unlink(missing_ok=True)
    if "failed" in found:
        raise SystemExit(found["failed"])
    found["file_mb"] = size / 2**20
    rows = [{"what": name, "value": f"{value:,.2f}"} for name, value in found.items()]
    print(markdown(rows))
    print("\n" + describe(machine.facts()))
    write_json(given.json, {"machine": machine.facts(), **vars(given), **found})


if __name__ == "__main__":
    main()

"""Reading a GEO series matrix: seconds and memory, plain and gzipped.

A file of the size asked for is written first, with values as GEO has them, and read in a process
of its own.  The goal is 300 samples x 54,675 probes in under 10 s and 1 GB.

`--csv` reads CSV files of several shapes instead: with ratoon, with ratoon where pyarrow is not
installed, and with pyarrow into an array of the same type.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common.isolate import run_fresh
from common.machine import MachineState, describe
from common.tables import markdown, parser, write_json

SHAPES = ((300_000, 8, 5), (80_000, 30, 6), (20_000, 100, 6), (4_000, 500, 17), (2_000, 2_000, 6))
"""Rows, columns and decimals of CSV files."""

EXAMPLES = """\
  reading.py --json reading.json
  reading.py --csv
  reading.py --samples 30 --probes 5000
"""


def write_series_matrix(path: Path, n_samples: int, n_probes: int) -> None:
    """Write a series matrix with a label and random log2 values."""
    rng = np.random.default_rng(0)
    names = [f'"GSM{900_000 + k}"' for k in range(n_samples)]
    kinds = [f'"disease state: {"ALL" if k % 3 else "AML"}"' for k in range(n_samples)]
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.write('!Series_title\t"generated"\n')
        file.write("\t".join(["!Sample_geo_accession", *names]) + "\n")
        file.write("\t".join(["!Sample_characteristics_ch1", *kinds]) + "\n")
        file.write("!series_matrix_table_begin\n")
        file.write("\t".join(['"ID_REF"', *names]) + "\n")
        for probe in range(n_probes):
            values = rng.normal(7.0, 2.0, n_samples)
            file.write(f'"{200_000 + probe}_at"\t' + "\t".join(f"{v:.5f}" for v in values) + "\n")
        file.write("!series_matrix_table_end\n")


def read_once(path: str) -> dict[str, Any]:
    """Read the file; the process that calls this has nothing else to do."""
    from ratoon.datasets import read

    started, used = time.perf_counter(), time.process_time()
    data = read(path, label="disease state")
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - used,
        "shape": f"{data.n_samples} x {data.n_features}",
        "classes": data.n_classes,
    }


def read_several(path: Path, repeats: int) -> dict[str, Any]:
    """Return the quickest of several readings, and the highest peak."""
    runs = [run_fresh("reading:read_once", path=str(path)) for _ in range(repeats)]
    if failed := [run["failed"] for run in runs if "failed" in run]:
        raise SystemExit(f"{path.name}: {failed[0]}")
    best = min(runs, key=lambda run: run["seconds"])
    peak = max(run["peak_rss_mb"] for run in runs)
    return {
        "file": path.name,
        "file_mb": path.stat().st_size / 1e6,
        **best,
        "peak_rss_mb": peak,
    }


def write_csv(path: Path, n_rows: int, n_columns: int, decimals: int) -> None:
    """Write normal numbers with a label of two words at the end."""
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        file.write(",".join([*(f"f{k}" for k in range(n_columns)), "outcome"]) + "\n")
        for row in range(n_rows):
            cells = [f"{value:.{decimals}f}" for value in rng.normal(size=n_columns)]
            file.write(",".join([*cells, "ill" if row % 3 else "well"]) + "\n")


def read_csv(path: str, how: str, repeats: int) -> dict[str, Any]:
    """Return the fewest CPU seconds of several readings into float32 numbers and labels."""
    if how == "without pyarrow":
        sys.modules["pyarrow"] = None  # type: ignore[assignment]

    def by_pyarrow() -> object:
        import pyarrow.csv

        table = pyarrow.csv.read_csv(path, pyarrow.csv.ReadOptions(use_threads=False))
        *numbers, labels = table.columns
        return np.column_stack([c.to_numpy() for c in numbers]).astype("float32"), labels

    def by_ratoon() -> object:
        from ratoon.datasets import read

        return read(path, label="outcome")

    run = by_pyarrow if how == "pyarrow" else by_ratoon
    seconds = []
    for _ in range(repeats):
        used = time.process_time()
        run()
        seconds.append(time.process_time() - used)
    return {"cpu_seconds": min(seconds)}


def compare_csv(folder: Path, repeats: int, shrink: int = 1) -> list[dict[str, Any]]:
    """Return CPU seconds of every shape and reader."""
    rows = []
    for n_rows, n_columns, decimals in SHAPES:
        path = folder / "table.csv"
        write_csv(path, max(2, n_rows // shrink), n_columns, decimals)
        row: dict[str, Any] = {
            "rows": max(2, n_rows // shrink),
            "columns": n_columns,
            "decimals": decimals,
            "file_mb": path.stat().st_size / 1e6,
        }
        for how in ("ratoon", "without pyarrow", "pyarrow"):
            found = run_fresh("reading:read_csv", path=str(path), how=how, repeats=repeats)
            if "failed" in found:
                raise SystemExit(f"{how}: {found['failed']}")
            row[how] = found["cpu_seconds"]
        rows.append({**row, "ratoon / pyarrow": row["ratoon"] / row["pyarrow"]})
    return rows


def main() -> None:
    """Write, read and print."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument("--samples", type=int, default=300)
    arguments.add_argument("--probes", type=int, default=54_675)
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--csv", action="store_true", help="CSV files of several shapes")
    arguments.add_argument("--shrink", type=int, default=1, help="so many times fewer rows of CSV")
    options = arguments.parse_args()
    if options.csv:
        with tempfile.TemporaryDirectory() as folder, MachineState() as machine:
            rows = compare_csv(Path(folder), options.repeats, options.shrink)
        print(markdown(rows))
        print("\n" + describe(machine.facts()))
        return write_json(options.json, {"machine": machine.facts(), "files": rows})
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"GSE_series_matrix{kind}" for kind in (".txt", ".txt.gz")]
        for path in paths:
            write_series_matrix(path, options.samples, options.probes)
        with MachineState() as machine:
            rows = [read_several(path, options.repeats) for path in paths]
    print(markdown(rows))
    print("\n" + describe(machine.facts()))
    write_json(options.json, {"machine": machine.facts(), "files": rows})


if __name__ == "__main__":
    main()

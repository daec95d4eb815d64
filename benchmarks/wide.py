"""The default for wide data on the published folds of a benchmark of tabular foundation models.

TabPFN-Wide (https://github.com/not-a-feature/TabPFN-Wide) publishes the accuracy and ROC AUC of
TabPFN v2, six checkpoints of TabPFN-Wide, TabICL and a random forest for every fold of
``RepeatedStratifiedKFold(n_splits=3, n_repeats=10, random_state=42)`` after
``shuffle(X, y, random_state=42)``; 3 repeats from 2,500 samples on.  This script makes the same
folds, checks the labels of every test part against the published checksum, and runs ratoon's
default and five alternatives on them.  A set without published results gets the same folds and is
compared with the alternatives only.

Rows are appended to a CSV, and folds with a row are not computed again.
"""

from __future__ import annotations

import argparse
import csv
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from common.tables import markdown
from numpy.typing import NDArray
from quality.compare import Table, difference
from quality.rows import METHODS
from quality.sets import MANY, WIDE, Split, default_folder, load, names_in
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.utils import shuffle
from threadpoolctl import threadpool_limits

Array = NDArray[Any]

RESULTS = Path(__file__).parent / "results"
PUBLISHED = "foundation_models_folds.csv"
COLUMNS = ("method", "set", "fold", "accuracy", "roc_auc", "cpu_seconds")
RUN_HERE = ("ratoon", "ridge", "f_ridge", "l1", "two_phase", "lightgbm")
SHAPED_THE_METHOD = (
    *WIDE, *MANY, "lung_discrete", "khan", "gordon", "christensen", "ORL", "COIL20", "Isolet",
)  # fmt: skip
BEST, SINGLE = "best TabPFN-Wide", "single TabPFN-Wide"
LABELS = {
    "ratoon": "**ratoon, default**",
    "ridge": "ridge, cross-validated",
    "f_ridge": "F-weighted ridge",
    "l1": "l1 logistic, tuned",
    "two_phase": "ANOVA + SVM, tuned",
    "lightgbm": "LightGBM, 200 trees",
    "random_forest": "random forest (published)",
    "TabPFN-v2": "TabPFN v2 (published)",
    "TabICL": "TabICL (published)",
    SINGLE: "TabPFN-Wide, checkpoint with the best mean (published)",
    BEST: "TabPFN-Wide, best of six on each set (published)",
}
EXAMPLES = """
examples:
  python benchmarks/wide.py --methods ratoon,ridge --sets colon,ALLAML
  python benchmarks/wide.py --folds 9 --sets PCMAC,BASEHOCK
  python benchmarks/wide.py --data my_sets/     # any .mat or .npz with X and Y or y
  python benchmarks/wide.py --again ratoon      # run the default again, after a change
  python benchmarks/wide.py --report            # only write the tables again
"""

Rows = dict[tuple[str, str, int], dict[str, float]]


# ------------------------------------------------------------------------------ folds


def folds(x: Array, y: NDArray[np.int64]) -> list[Split]:
    """Return the folds of the published benchmark.

    >>> parts = folds(np.arange(60.0)[:, None], np.arange(60) % 2)
    >>> len(parts), parts[0].y.size, parts[0].y_test.size
    (30, 40, 20)
    """
    x, y = shuffle(x, y, random_state=42)
    n_repeats = 10 if len(y) < 2500 else 3
    made = RepeatedStratifiedKFold(n_splits=3, n_repeats=n_repeats, random_state=42)
    return [Split(x[a], x[b], y[a], y[b]) for a, b in made.split(x, y)]


def checksum(y_test: NDArray[np.int64]) -> int:
    """Return the published checksum of the labels of a test part.

    >>> checksum(np.array([0, 1, 1]))
    1434379354
    """
    return zlib.crc32(" ".join(map(str, y_test.tolist())).encode())


def published(path: Path) -> tuple[Rows, dict[tuple[str, int], int]]:
    """Return published results, accuracy in percent, and the checksum of every fold."""
    rows: Rows = {}
    checksums = {}
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                name, fold = _plain(row["set"]), int(row["fold"])
                rows[row["method"], name, fold] = {
                    "accuracy": 100 * float(row["accuracy"]),
                    "roc_auc": float(row["roc_auc"]),
                }
                checksums[name, fold] = int(row["labels_crc32"])
    return rows, checksums


def _plain(name: str) -> str:
    """TOX_171 is published where the file is TOX-171."""
    return name.replace("_", "-")


def check(name: str, parts: list[Split], checksums: dict[tuple[str, int], int]) -> str:
    """Compare the labels of all test parts with the published checksums; raise if they differ."""
    expected = [checksums.get((_plain(name), fold)) for fold in range(len(parts))]
    if not any(expected):
        return f"{name}: no published results"
    wrong = [f for f, part in enumerate(parts) if checksum(part.y_test) != expected[f]]
    if wrong:
        raise SystemExit(
            f"{name}: the labels of {len(wrong)} of {len(parts)} folds differ from the published"
            " checksums.\n  The file holds other samples, or in another order: leave the set out"
            f" with --sets, or remove it from {PUBLISHED}."
        )
    return f"{name}: {len(parts)} folds, all labels as published"


# ------------------------------------------------------------------------------ runs


def run(method: str, part: Split) -> dict[str, float]:
    """Fit one method to one fold; ROC AUC of several classes is the mean of one against rest."""
    started = time.process_time()
    with threadpool_limits(limits=1):
        predicted, chances = METHODS[method](part, 0)
    seconds = time.process_time() - started
    classes = np.arange(chances.shape[1])
    score = chances[:, 1] if classes.size == 2 else chances / chances.sum(axis=1, keepdims=True)
    auc = roc_auc_score(part.y_test, score, multi_class="ovr", labels=classes)
    accuracy = 100 * float(np.mean(predicted == part.y_test))
    return {"accuracy": accuracy, "roc_auc": float(auc), "cpu_seconds": seconds}


def read_rows(path: Path) -> Rows:
    """Return results by method, set and fold."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            (row["method"], row["set"], int(row["fold"])): {k: float(row[k]) for k in COLUMNS[3:]}
            for row in csv.DictReader(file)
        }


def write_rows(path: Path, rows: Rows, mode: str = "a") -> None:
    """Append rows, or with mode "w" write them to a new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = mode == "w" or not path.exists()
    with path.open(mode, newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        for key, row in rows.items():
            writer.writerow([*key, *(f"{row[name]:.6g}" for name in COLUMNS[3:])])


def run_missing(
    path: Path, parts: dict[str, list[Split]], methods: Iterable[str], n_folds: int
) -> None:
    """Run the folds that have no row yet, one set and method at a time."""
    done = read_rows(path)
    for method in methods:
        for name, made in parts.items():
            for fold in range(min(n_folds, len(made))):
                key = (method, name, fold)
                if key not in done:
                    write_rows(path, {key: run(method, made[fold])})


# ------------------------------------------------------------------------------ tables


def table_of(rows: Rows, column: str) -> Table:
    """Return ``{(method, set): {fold: value}}``."""
    table: Table = {}
    for (method, name, fold), row in rows.items():
        table.setdefault((method, name), {})[fold] = row[column]
    return table


def best_wide(table: Table, sets: list[str]) -> str | None:
    """Return the TabPFN-Wide checkpoint with the highest mean accuracy over some sets."""
    names = {method for method, name in table if method.startswith("TabPFN-Wide") and name in sets}
    accuracy = {
        name: np.mean(
            [np.mean(list(table[name, of].values())) for of in sets if (name, of) in table]
        )
        for name in sorted(names)
    }
    return max(accuracy, key=lambda name: accuracy[name]) if accuracy else None


def with_published(own: Rows, theirs: Rows, sets: list[str]) -> Rows:
    """Return both kinds of rows, the best checkpoints under names of their own."""
    rows = dict(own)
    table = table_of(theirs, "accuracy")
    single = best_wide(table, [_plain(name) for name in sets])
    for name in sets:
        best = best_wide(table, [_plain(name)])
        for (method, of, fold), row in theirs.items():
            if of == _plain(name):
                if method in LABELS:
                    rows[method, name, fold] = row
                if method == best:
                    rows[BEST, name, fold] = row
                if method == single:
                    rows[SINGLE, name, fold] = row
    return rows


def means(table: Table, sets: list[str], digits: int) -> list[dict[str, Any]]:
    """Return the mean of every method on every set, and over the sets where all are there."""
    lines = []
    for method, label in LABELS.items():
        cells = [table.get((method, name)) for name in sets]
        values = [np.mean(list(cell.values())) if cell else None for cell in cells]
        if any(value is not None for value in values):
            line: dict[str, Any] = {"": label}
            for name, value in zip(sets, values, strict=True):
                line[name] = None if value is None else f"{value:.{digits}f}"
            whole = None not in values
            line["mean"] = f"{np.mean(values):.{digits}f}" if whole else None  # type: ignore[arg-type]
            lines.append(line)
    return lines


def differences(table: Table, sets: list[str]) -> list[dict[str, Any]]:
    """Return what the default gains on every method, paired by fold, with standard errors."""
    lines = []
    for method, label in LABELS.items():
        shared = [s for s in sets if table.keys() >= {(method, s), ("ratoon", s)}]
        found = difference(table, "ratoon", method, shared) if shared else None
        if method == "ratoon" or found is None:
            continue
        line: dict[str, Any] = {"ratoon minus": label}
        for name in sets:
            gains = found.by_set.get(name)
            line[name] = None if gains is None else _with_error(gains)
        half = found.half_over_sets()
        line["mean"] = f"{found.mean:+.1f}"
        line["over sets, 95 %"] = f"{found.mean - half:+.1f} to {found.mean + half:+.1f}"
        lines.append(line)
    return lines


def _with_error(gains: Array) -> str:
    if gains.size < 2:
        return f"{gains.mean():+.1f}"
    return f"{gains.mean():+.1f} ± {gains.std(ddof=1) / np.sqrt(gains.size):.1f}"


def report(rows: Rows, sets: list[str]) -> str:
    """Return all tables as Markdown."""
    accuracy = table_of(rows, "accuracy")
    timed = {key: row for key, row in rows.items() if "cpu_seconds" in row}
    marked = [name for name in sets if name in SHAPED_THE_METHOD]
    counts = {name: len(accuracy[key]) for name in sets if (key := ("ratoon", name)) in accuracy}
    checked = ", ".join(f"{name} {count}" for name, count in counts.items())
    return "\n".join(
        (
            "# Wide data, on the folds of TabPFN-Wide's benchmark",
            "",
            "Written by `python benchmarks/wide.py`.  `SparseMLPClassifier()` with default"
            " parameters and raw features, on one\nthread.  Lines marked as published come from"
            " the authors of TabPFN-Wide; the best of its six checkpoints is chosen by\naccuracy"
            " *on the test parts*, once for all sets and once for each.  Differences are paired by"
            " fold, ± their standard error\nover folds, which share samples, so it is somewhat too"
            " small; the interval takes sets as the unit.",
            f"Folds of the default: {checked}.",
            f"Sets that shaped the default, so that its figures are optimistic there:"
            f" {', '.join(marked) or 'none'}.",
            "",
            "## Accuracy in %",
            "",
            markdown(means(accuracy, sets, 1)),
            "",
            "## Difference in accuracy, in points",
            "",
            markdown(differences(accuracy, sets)),
            "",
            "## ROC AUC",
            "",
            markdown(means(table_of(rows, "roc_auc"), sets, 3)),
            "",
            "## Seconds of processor time per fold, fit and prediction",
            "",
            markdown(means(table_of(timed, "cpu_seconds"), sets, 2)),
            "",
        )
    )


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of .mat, .npz")
    parser.add_argument("--sets", help="names; without it all with published results, or all")
    parser.add_argument("--methods", default=",".join(RUN_HERE), help=f"of {', '.join(METHODS)}")
    parser.add_argument("--folds", type=int, default=30, help="only the first folds of every set")
    parser.add_argument("--published", type=Path, help=f"default: {PUBLISHED} in the folder")
    parser.add_argument("--rows", type=Path, default=RESULTS / "wide.csv")
    parser.add_argument("--out", type=Path, default=RESULTS / "wide.md")
    parser.add_argument("--again", default="", help="methods whose rows are forgotten first")
    parser.add_argument("--report", action="store_true", help="run nothing")
    return parser.parse_args()


def main() -> None:
    """Run what is missing and write the tables."""
    given = arguments()
    path = given.published or given.data / PUBLISHED
    theirs, checksums = published(path if path.exists() else default_folder() / PUBLISHED)
    known = {name for name, _ in checksums}
    names = names_in(given.data)
    sets = given.sets.split(",") if given.sets else [n for n in names if _plain(n) in known]
    sets = sets or names
    if given.again:
        dropped = set(given.again.split(","))
        rows = read_rows(given.rows)
        write_rows(given.rows, {k: v for k, v in rows.items() if k[0] not in dropped}, mode="w")
    if not given.report:
        parts = {name: folds(*load(name, given.data)) for name in sets}
        for name, made in parts.items():
            print(check(name, made, checksums), flush=True)
        run_missing(given.rows, parts, given.methods.split(","), given.folds)
    text = report(with_published(read_rows(given.rows), theirs, sets), sets)
    given.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()

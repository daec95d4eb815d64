"""Rankings of features by sparse networks, compared with the usual rankings.

Recovery: on generated sets it is known which genes carry the class; precision at k is the share of
informative ones among the first k, with k their number.  In "products of 2" no single
feature is informative.

Panels: on real sets, a support vector machine sees only the first k features of each ranking, and
is scored on rows that neither the ranking nor the machine has seen.

Rows are appended to a CSV, and results with a row are not computed again.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from quality.sets import default_folder, names_in
from ranking.methods import METHODS, SHOWN
from ranking.report import draw, panel_table, recovery_table
from ranking.rows import append_rows, missing, read_rows
from ranking.studies import ALL, GENERATED, PANEL_SETS, panels, recovery

RESULTS = Path(__file__).parent / "results"
EXAMPLES = """
examples:
  python benchmarks/selection.py --seeds 10 --splits 10
  python benchmarks/selection.py --minutes 4          # stop then; the same command continues
  python benchmarks/selection.py --report             # only write tables and picture again
"""


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10, help="generated sets of each kind")
    parser.add_argument("--splits", type=int, default=10, help="splits of each real set")
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of real sets")
    parser.add_argument("--methods", help=f"of {', '.join(METHODS)}")
    parser.add_argument("--rows", type=Path, default=RESULTS / "selection.csv")
    parser.add_argument("--out", type=Path, default=RESULTS / "selection.md")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing after")
    parser.add_argument("--report", action="store_true", help="run nothing")
    return parser.parse_args()


def main() -> None:
    """Run what is missing, and write tables and picture."""
    given = arguments()
    methods = list(SHOWN) if given.methods is None else given.methods.split(",")
    there = names_in(given.data) if given.data.is_dir() else []
    sets = [name for name in PANEL_SETS if name in there]
    # Seed by seed, so that all methods have seen the same whenever the study is stopped.
    wanted = []
    for number in range(max(given.seeds, given.splits)):
        if number < given.seeds:
            wanted += [("recovery", kind, number, m) for kind in GENERATED for m in methods]
        if number < given.splits:
            wanted += [("panels", name, number, m) for name in sets for m in (*methods, ALL)]
    ends = time.monotonic() + 60 * given.minutes
    todo = [] if given.report else missing(given.rows, wanted)
    for done, (study, data, number, method) in enumerate(todo):
        if time.monotonic() > ends:
            print(f"{len(todo) - done} rankings are left; the same command continues", flush=True)
            break
        if study == "recovery":
            rows = recovery(data, number, method)
        else:
            rows = panels(data, number, method, given.data)
        append_rows(given.rows, rows)
    rows = read_rows(given.rows)
    text = recovery_table(rows)
    if any(row["study"] == "panels" for row in rows):
        text += "\n" + panel_table(rows)
        draw(rows, given.out.with_suffix(".png"))
    given.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

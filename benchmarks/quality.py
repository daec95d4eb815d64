"""The accuracy of the default, compared with the alternatives that users would pick.

Every set is split two thirds to one third, classes in equal shares, as often as ``--splits`` says.
``SparseMLPClassifier()`` gets the raw features and no parameter but its seed; rivals get z-scores
of the training rows and are tuned on training rows.  Nothing is fitted to or chosen on test rows;
the one exception, the paper's habit of reporting the best test epoch, is marked as optimistic.
Text sets are used dense by all.

Rows are appended to a CSV, and results with a row are not computed again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from quality import guided_forms
from quality.guided_forms_report import write_forms
from quality.regression import study
from quality.report import write_report
from quality.rewiring_report import (
    found_beside,
    run_missing,
    run_missing_found,
    run_missing_sizes,
    write_map,
)
from quality.rows import METHODS, read_rows, run_all
from quality.sets import MANY, WIDE, default_folder, names_in, remarks
from quality.starts import run_missing_starts, write_starts

from ratoon.errors import RatoonError

RESULTS = Path(__file__).parent / "results"
EXAMPLES = """
examples:
  python benchmarks/quality.py --splits 0-19 --methods ratoon,ridge,f_ridge,l1,two_phase
  python benchmarks/quality.py --data my_sets/ --splits 0-4 --jobs 4
  python benchmarks/quality.py --quick
  python benchmarks/quality.py --report        # only write the tables again
  python benchmarks/quality.py --regression    # generated data, against ridge, lasso, elastic net
  python benchmarks/quality.py --rewiring --minutes 30   # where rewiring helps; resumes if repeated
  python benchmarks/quality.py --guided-forms --minutes 30   # forms of SET in the paper's model
  python benchmarks/quality.py --starts --minutes 30   # starts by strength, and rewiring after them
"""


def numbers(text: str) -> list[int]:
    """Read ``0-19`` or ``0,3,5``.

    >>> numbers("0-2,7")
    [0, 1, 2, 7]
    """
    found: list[int] = []
    for word in text.split(","):
        first, _, last = word.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of .mat, .npz")
    parser.add_argument("--sets", help="names, or 'wide' for the seven wide development sets")
    parser.add_argument("--splits", type=numbers, default=numbers("0-19"))
    parser.add_argument("--methods", help=f"of {', '.join(METHODS)}")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rows", type=Path, default=RESULTS / "quality.csv")
    parser.add_argument("--out", type=Path, default=RESULTS / "quality.md")
    parser.add_argument("--quick", action="store_true", help="two splits, three cheap methods")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--regression", action="store_true", help="the regression study instead")
    parser.add_argument("--rewiring", action="store_true", help="the map of rewiring instead")
    parser.add_argument("--guided-forms", action="store_true", help="forms of GuidedSET instead")
    parser.add_argument("--starts", action="store_true", help="starts and rewiring instead")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop these studies after")
    return parser.parse_args()


def is_told(name: str, folder: Path) -> bool:
    """Say what a set of the user's holds, or why it is left out; and which of the two it was."""
    try:
        print(remarks(name, folder))
    except RatoonError as error:
        print(f"{name}: left out. {error}")
        return False
    return True


def wide_or_given(given: argparse.Namespace) -> list[str]:
    """Return the sets that were named, or the wide ones that are there."""
    wide = [name for name in WIDE if name in names_in(given.data)]
    return wide if given.sets in (None, "wide") else given.sets.split(",")


def main() -> None:
    """Run what is missing, and write tables and picture."""
    given = arguments()
    if given.regression:
        n_seeds = 2 if given.quick else 20
        out = given.out.with_name("quality-regression.md")
        print(study(out, n_seeds, given.jobs, given.minutes))
        return
    if given.rewiring:
        rows = given.rows.with_name("rewiring.csv")
        seeds = [0] if given.quick else list(range(20))
        if not given.report:
            folder = given.data if given.data.is_dir() else None
            if run_missing(rows, folder, seeds, given.minutes):
                run_missing_found(found_beside(rows), seeds[:5], given.minutes)
                run_missing_sizes(found_beside(rows, "size"), seeds[:5], given.minutes)
        print(write_map(rows, given.out.with_name("rewiring.md")))
        return
    if given.guided_forms:
        rows = given.rows.with_name("guided-forms.csv")
        splits = list(guided_forms.SPLITS)[: 1 if given.quick else None]
        if not given.report:
            guided_forms.run_missing(rows, wide_or_given(given), splits, given.data, given.minutes)
        print(write_forms(rows, given.out.with_name("guided-forms.md")))
        return
    if given.starts:
        rows = given.rows.with_name("rewiring-starts.csv")
        if not given.report:
            folder = given.data if given.data.is_dir() else None
            run_missing_starts(rows, folder, list(range(1 if given.quick else 20)), given.minutes)
        print(write_starts(rows, given.out.with_name("rewiring-starts.md")))
        return
    sets = names_in(given.data) if given.sets is None else given.sets.split(",")
    if given.sets == "wide" or (given.quick and given.sets is None):
        sets = [name for name in WIDE if name in names_in(given.data)]
    methods = list(METHODS) if given.methods is None else given.methods.split(",")
    splits = given.splits
    if given.quick:
        splits = splits[:2]
        methods = methods if given.methods else ["ratoon", "ridge", "f_ridge"]
    if not given.report:
        sets = [name for name in sets if name in (*WIDE, *MANY) or is_told(name, given.data)]
        wanted = [(m, name, number) for number in splits for name in sets for m in methods]
        print(run_all(given.rows, wanted, given.data, given.jobs), "fits")
    print(write_report(read_rows(given.rows), given.out))


if __name__ == "__main__":
    main()

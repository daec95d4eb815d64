"""Dynamic sparse training beside dense training: test accuracy against CPU seconds.

Multilayer perceptrons of the same widths on MNIST, CIFAR-10, Isolet, COIL20 and digits: every
strategy at several densities, and PyTorch's dense network, each on one thread.  Runs are lines of
the CSV file of rows; those that are there already are not repeated, so the benchmark can be stopped
and resumed at any time.  Sets that are not in the folder are left out and named.

Protocol.  Fixed training and test rows; the test accuracy is that of the last epoch, and earlier
epochs are recorded but choose nothing.  A sixth of the training rows is held back to choose
learning rates, on CIFAR-10 with the size of minibatches (one recipe for all sparse networks, one
for dense ones), and the longer recipes; the final trainings use all training rows.  A density is
that of the whole network, divided among the layers by Erdos-Renyi, so the output layer is denser
than the others.  All networks have He's start, minibatches of 32 where nothing was chosen, SGD
with momentum 0.9, weight decay 0.0005 and a learning rate that falls linearly to 0.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from common.machine import MachineState, describe
from common.tables import numbers, parser, write_json
from dynamic.cells import DENSE, METHODS
from dynamic.choices import reference
from dynamic.lines import lines_of
from dynamic.picture import draw
from dynamic.report import choices_text, panels_of, text_of
from dynamic.rows import read_rows, run_missing
from dynamic.sets import SETS, default_folder, is_there
from dynamic.studies import DENSITIES, PHASES, Wanted

EXAMPLES = """\
  dynamic.py --sets digits --densities 5 --seeds 0                 a minute
  dynamic.py --sets mnist --densities 1 --methods static,rigl      two minutes
  dynamic.py --minutes 60 --jobs 2                                 resumes for an hour
  dynamic.py --report --out dynamic.md --picture dynamic.svg       runs nothing
"""
RESULTS = Path(__file__).parent / "results"


def arguments() -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__ or "", EXAMPLES)
    made.add_argument("--sets", help=f"of {','.join(SETS)}")
    made.add_argument("--densities", help="in per cent, such as 0.5,1,5")
    made.add_argument("--methods", help=f"of {','.join((DENSE, *METHODS))}")
    made.add_argument("--seeds", type=numbers, default=[0, 1, 2])
    made.add_argument("--dense-seeds", type=numbers, default=[0], help="of whole dense trainings")
    made.add_argument("--epochs", type=int, help="instead of those of the set")
    made.add_argument("--no-longer", action="store_true", help="without the longer recipes")
    made.add_argument("--data", type=Path, default=default_folder(), help="folder with the files")
    made.add_argument("--rows", type=Path, default=RESULTS / "dynamic.csv")
    made.add_argument("--jobs", type=int, default=1)
    made.add_argument("--minutes", type=float, default=1e6, help="stop after so many")
    made.add_argument("--report", action="store_true", help="run nothing")
    made.add_argument("--out", type=Path, metavar="OUT", help="write the tables there")
    made.add_argument("--picture", type=Path, metavar="OUT", help="draw to this file")
    return made.parse_args()


def wanted_by(given: argparse.Namespace) -> Wanted:
    """Return what to run; name the sets that are not there."""
    names = given.sets.split(",") if given.sets else list(SETS)
    for name in names:
        if name not in SETS:
            raise SystemExit(f"there is no set {name!r}; there are {', '.join(SETS)}.")
        if not is_there(name, given.data):
            print(f"{name} is not in {given.data}: left out", flush=True)
    methods = given.methods.split(",") if given.methods else [DENSE, *METHODS]
    for name in methods:
        if name not in (DENSE, *METHODS):
            raise SystemExit(
                f"there is no method {name!r}; there are {', '.join((DENSE, *METHODS))}."
            )
    densities = (
        [float(word) / 100 for word in given.densities.split(",")] if given.densities else ()
    )
    return Wanted(
        [name for name in names if is_there(name, given.data)],
        methods,
        densities or DENSITIES,
        given.seeds,
        given.dense_seeds,
        given.epochs,
        not given.no_longer,
    )


def main() -> None:
    """Run what is missing, then write tables and picture of all there is."""
    given = arguments()
    wanted = wanted_by(given)
    complete = True
    with MachineState() as machine:
        ends = time.monotonic() + 60.0 * given.minutes
        for phase in () if given.report else PHASES:
            cells = phase(wanted, read_rows(given.rows))
            left = (ends - time.monotonic()) / 60.0
            complete = run_missing(given.rows, cells, given.data, n_jobs=given.jobs, minutes=left)
            if not complete:
                break
    rows = read_rows(given.rows)
    lines = lines_of(rows)
    recipes = {name: reference(name, "sparse", wanted.epochs_of(name), rows) for name in SETS}
    text = f"{text_of(lines, recipes)}\n\n{choices_text(lines_of(rows, of_choices=True))}"
    text += f"\n\n{describe(machine.facts())}\n"
    print(text if complete else f"{text}\nnot complete: run again to continue\n")
    write_json(given.json, {"machine": machine.facts(), "lines": [line.facts() for line in lines]})
    if given.out:
        given.out.write_text(text)
    if given.picture and (panels := panels_of(lines, recipes)):
        draw(panels, given.picture)


if __name__ == "__main__":
    main()

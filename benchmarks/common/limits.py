"""What one core can do at most in a sparse pass: the probe in ``probes/roofline.cpp``."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "probes" / "roofline.cpp"
BLOCKS = (32, 64, 128)  # lanes that a minibatch may be cut into


@dataclass(frozen=True)
class Limit:
    """GFlop/s of one core with so many lanes, and rows picked from so many."""

    lanes: int
    rows: int
    forward: float
    input_gradient: float
    weight_gradient: float
    both: float

    def better(self, other: Limit) -> Limit:
        """Return the higher figure of each pass."""
        return Limit(
            self.lanes,
            self.rows,
            max(self.forward, other.forward),
            max(self.input_gradient, other.input_gradient),
            max(self.weight_gradient, other.weight_gradient),
            max(self.both, other.both),
        )


class Probe:
    """The compiled probe.  It measures CPU time, the best of many passes."""

    def __init__(self, flags: tuple[str, ...] = ("-march=native",)) -> None:
        compiler = shutil.which("g++") or shutil.which("clang++")
        if compiler is None:
            raise SystemExit("no C++ compiler found; ratoon needs one to be built, too")
        self._folder = tempfile.TemporaryDirectory()
        self._program = str(Path(self._folder.name) / "roofline")
        command = [compiler, "-std=c++20", "-O3", *flags, str(SOURCE), "-o", self._program]
        subprocess.run(command, check=True)

    def measure(
        self, cases: Iterable[tuple[int, int]], repeats: int = 1
    ) -> tuple[float, list[Limit]]:
        """Return the peak of multiply-adds, and the limits of (lanes, rows), in GFlop/s."""
        given = [str(number) for case in cases for number in case]
        peak, best = 0.0, {}
        for _ in range(repeats):
            done = subprocess.run(
                [self._program, *given], capture_output=True, text=True, check=True
            )
            head, *lines = done.stdout.splitlines()
            peak = max(peak, float(head))
            for line in lines:
                lanes, rows, *rates = line.split()
                limit = Limit(int(lanes), int(rows), *map(float, rates))
                key = limit.lanes, limit.rows
                best[key] = limit.better(best[key]) if key in best else limit
        return peak, list(best.values())

    def best_blocks(self, batch: int, rows: int, repeats: int = 1) -> Limit:
        """Return the limit of each pass over a batch, cut into whichever blocks suit it."""
        cases = [(lanes, rows) for lanes in BLOCKS if lanes <= batch]
        _, limits = self.measure(cases, repeats)
        found = limits[0]
        for limit in limits[1:]:
            found = found.better(limit)
        return found

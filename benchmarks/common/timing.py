"""Timers: wall and CPU time, the minimum over repeats."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Timing:
    """Seconds of one piece of work, over several runs.

    On one thread CPU time is the better figure on a busy machine: waiting for a core does not
    count.  On several threads it is the sum over threads, and says little about speed.
    """

    walls: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)

    def add(self, work: Callable[[], Any]) -> Any:
        """Run the work once, take its time and hand back what it returned."""
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        self.cpus.append(time.process_time() - cpu)
        self.walls.append(time.perf_counter() - wall)
        return result

    @property
    def wall_s(self) -> float:
        """Least wall time."""
        return min(self.walls)

    @property
    def cpu_s(self) -> float:
        """Least CPU time, summed over threads."""
        return min(self.cpus)

    @property
    def median_s(self) -> float:
        """Median wall time; if far above the minimum, the machine was busy."""
        return statistics.median(self.walls)

    def best(self, n_threads: int) -> float:
        """Return the figure to compare with: CPU time on one thread, wall time on several."""
        return self.cpu_s if n_threads == 1 else self.wall_s


def repeat(
    work: Callable[[], Any], *, repeats: int, at_least_s: float = 0.0, budget_s: float = 60.0
) -> Timing:
    """Time the work ``repeats`` times, and more until ``at_least_s`` have passed.

    Short work needs many repeats to meet a quiet moment.  Whatever is asked for, it ends when one
    more run would exceed the budget.

    >>> len(repeat(lambda: None, repeats=3).walls)
    3
    """
    timing = Timing()
    started = time.perf_counter()
    while True:
        timing.add(work)
        passed = time.perf_counter() - started
        if len(timing.walls) >= repeats and (passed >= at_least_s or len(timing.walls) >= 1000):
            return timing
        if passed + timing.wall_s > budget_s:
            return timing

"""The parts that benchmarks share."""

from __future__ import annotations

import doctest
import importlib
import mmap

import pytest
from common.isolate import run_fresh
from common.machine import MachineState
from common.memory import forget_peak, peak_mb, resident_mb
from common.models import PAPER
from common.timing import Timing, repeat


@pytest.mark.parametrize("name", ["machine", "timing", "tables", "models", "roofline"])
def test_examples_in_docstrings_are_correct(name):
    found = doctest.testmod(importlib.import_module(f"common.{name}"))
    assert found.failed == 0


def test_paper_models_have_the_papers_sizes():
    assert PAPER["e"].n_neurons == 1_054_693
    assert PAPER["a"].connections == 1_646_930
    assert [PAPER[name].minibatches for name in "abcdef"] == [280, 15, 25, 56, 280, 280]


def test_a_timer_keeps_the_minimum_and_returns_the_result():
    timing = Timing()
    assert timing.add(lambda: 7) == 7
    timing.walls += [0.0, 5.0]
    assert timing.wall_s == 0.0
    assert len(repeat(lambda: None, repeats=2, at_least_s=0.01).walls) > 2


def test_peak_memory_includes_released_memory():
    before = resident_mb()
    forget_peak()
    # Pages of its own: an array might lie where this process had pages already.
    with mmap.mmap(-1, 80_000_000) as pages:
        for at in range(0, len(pages), mmap.PAGESIZE):
            pages[at] = 1
    assert peak_mb() > before + 60


def test_a_new_process_returns_results_and_failures():
    assert run_fresh("common.roofline:measure", threads=1, elements=1000)["peak_rss_mb"] > 10
    assert "TypeError" in run_fresh("common.roofline:measure", threads=1)["failed"]


def test_the_machine_reports_its_load():
    with MachineState() as machine:
        sum(range(3_000_000))
    assert (
        machine.facts()["load"]["others_cores"] is None
        or machine.facts()["load"]["others_cores"] >= 0
    )

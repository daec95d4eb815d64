"""Benchmarks are scripts: their folder is on the path of those who run them, and so here."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"

# They are not part of a wheel, and tests of a wheel may come without them.
collect_ignore_glob = [] if FOLDER.exists() else ["test_*.py"]

if str(FOLDER) not in sys.path:
    sys.path.insert(0, str(FOLDER))

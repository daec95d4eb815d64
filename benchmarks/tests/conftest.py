"""The scripts import each other from their folder, so it is on the path here too."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1]

if str(FOLDER) not in sys.path:
    sys.path.insert(0, str(FOLDER))

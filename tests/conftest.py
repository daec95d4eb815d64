"""Fixtures and settings of all tests."""

import signal
import sys
from pathlib import Path

from hypothesis import settings

# A shell that starts the suite in the background has it ignore Ctrl-C; some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests import helpers as `tests.kernels.cases`, so the root must be on the path.
sys.path.insert(0, str(Path(__file__).parent.parent))

# A run of the suite tries the same examples every time, and no example is judged by its time.
# To look for new ones: pytest --hypothesis-profile=explore.
settings.register_profile("suite", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("suite")

"""Libraries of tables that do not work under every sanitizer."""

import pytest

from tests.processes import LOOKS_FOR_RACES


def polars():
    """Return polars, whose allocator is incompatible with the thread sanitizer's."""
    if LOOKS_FOR_RACES:
        pytest.skip("importing polars under the thread sanitizer ends the process")
    import polars as pl

    return pl

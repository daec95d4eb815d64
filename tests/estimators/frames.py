"""Libraries of tables that do not go with everything."""

import pytest

from tests.processes import LOOKS_FOR_RACES


def polars():
    """Return polars, whose allocator does not bear the thread sanitizer's."""
    if LOOKS_FOR_RACES:
        pytest.skip("importing polars under the thread sanitizer ends the process")
    import polars as pl

    return pl

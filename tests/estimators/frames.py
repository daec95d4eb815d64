"""Libraries of tables that do not go with everything."""

import os

import pytest


def polars():
    """Return polars, whose allocator does not bear the thread sanitizer's."""
    if "libtsan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("importing polars under the thread sanitizer ends the process")
    import polars as pl

    return pl

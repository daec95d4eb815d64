"""The native fuzz targets still fit the code they call; `make fuzz` runs them."""

import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "native"
TARGETS = ["validator", "network", "evolve"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
@pytest.mark.skipif(not NATIVE.exists(), reason="the native sources are not here")
def test_targets_compile():
    sources = [str(NATIVE / "fuzz" / f"{target}.cpp") for target in TARGETS]
    options = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-psabi", "-Werror"]
    done = subprocess.run(
        ["g++", *options, f"-I{NATIVE}", *sources], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

"""Other interpreters for tests to run code in."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What is inherited holds for children too, which is why a sanitizer sees all of these.
IS_SANITIZED = "san.so" in os.environ.get("LD_PRELOAD", "")
LOOKS_FOR_RACES = "libtsan.so" in os.environ.get("LD_PRELOAD", "")
CAN_FIND_LEAKS = "libasan.so" in os.environ.get("LD_PRELOAD", "")


def with_tests_importable(**more):
    """Return an environment in which a child can import what tests share."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **more}


def run_python(code, *arguments, timeout=120, **variables):
    """Run code in a fresh interpreter and return how it ended and what it said."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=with_tests_importable(**variables),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def run_script(path, *arguments, timeout=600):
    """Run a script of the tests, which must succeed, and return the JSON it prints."""
    found = subprocess.run(
        [sys.executable, str(ROOT / "tests" / path), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)

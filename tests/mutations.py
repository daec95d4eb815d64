"""Mutation testing: break one promise at a time, and see the tests that guard it fail.

Run it with ``make mutations``.  Every mutation of ``mutations.toml`` is applied to a temporary copy
of the sources.  Its tests must pass without it and fail with it.  A mutation that survives is an
error: the tests guard nothing, or the code it changed is redundant.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = Path(__file__).with_suffix(".toml")
# An editable installation imports from the working tree whatever the path says.
SITE = """
import sys
sys.meta_path = [one for one in sys.meta_path if "ScikitBuild" not in type(one).__name__]
"""
PASSED, FAILED = 0, 1
MISTAKES = ("NameError", "SyntaxError", "IndentationError", "ImportError")
"""A test that fails with one of these has found a mistake in the mutation, not a broken promise."""


@dataclass(frozen=True)
class Mutation:
    """A promise, the change that breaks it, and the tests that must notice."""

    promise: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def read_table() -> list[Mutation]:
    """Return the mutations of the table; files are in the package, tests in ``tests/``."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))["mutation"]
    return [
        Mutation(
            promise=entry["promise"],
            file=f"src/ratoon/{entry['file']}",
            old=entry["old"],
            new=entry["new"],
            tests=tuple(f"tests/{test}" for test in entry["tests"]),
        )
        for entry in table
    ]


def prepare(folder: Path) -> dict[str, str]:
    """Copy the sources and tests into a folder; return an environment that imports from there."""
    import ratoon._native

    skipped = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for name in ("src", "tests", "docs", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=skipped)
    for name in ("pyproject.toml", "conftest.py", "README.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, folder)
    shutil.copy(str(ratoon._native.__file__), folder / "src" / "ratoon")
    (folder / "sitecustomize.py").write_text(SITE)
    path = os.pathsep.join([str(folder), str(folder / "src"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "Agg"}


def run(folder: Path, environment: dict[str, str], tests: list[str]) -> tuple[int, str]:
    """Run tests of the copy; return pytest's exit code and output."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=line"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    found = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return found.returncode, found.stdout + found.stderr


def outcome_of(mutation: Mutation, folder: Path, environment: dict[str, str]) -> str:
    """Apply a mutation, run its tests, undo it; return "killed" or what went wrong."""
    path = folder / mutation.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        return f"NOT APPLIED: {mutation.old!r} occurs {text.count(mutation.old)} times"
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        code, output = run(folder, environment, list(mutation.tests))
    finally:
        path.write_text(text, encoding="utf-8")
    failed = [line for line in output.splitlines() if line.startswith("FAILED")]
    if code == FAILED and not any(mistake in output for mistake in MISTAKES):
        return f"killed by {failed[0].split(' ')[1]}" if failed else "killed"
    return "SURVIVED" if code == PASSED else f"NOT VALID: exit code {code}\n{output[-2000:]}"


def main() -> int:
    """Try every mutation; return 1 if one of them was not killed."""
    parser = argparse.ArgumentParser(description="Break promises, and see their tests fail.")
    parser.add_argument("--only", default="", help="text that the promise or the file contains")
    only = parser.parse_args().only
    chosen = [one for one in read_table() if only in one.promise or only in one.file]
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="ratoon-mutations-") as name:
        folder = Path(name)
        environment = prepare(folder)
        tests = sorted({test for one in chosen for test in one.tests})
        code, output = run(folder, environment, tests)
        if code != PASSED:
            print(f"{output}\nThe tests must pass without a mutation.")
            return 1
        n_killed = 0
        for one in chosen:
            outcome = outcome_of(one, folder, environment)
            n_killed += outcome.startswith("killed")
            print(f"{one.promise} ({one.file}): {outcome}", flush=True)
    seconds = time.perf_counter() - started
    print(f"{n_killed} of {len(chosen)} mutations killed in {seconds:.0f} s")
    return int(n_killed < len(chosen))


if __name__ == "__main__":
    sys.exit(main())

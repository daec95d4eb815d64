"""Mutation testing: break one promise at a time, and see the tests that guard it fail.

Run it with ``make mutations``.  Every mutation is applied to a temporary copy of the sources.  Its
tests must pass without it and fail with it.  A mutation that survives is an error: the tests
guard nothing, or the code it changed is redundant.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
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

    @classmethod
    def of(cls, promise: str, file: str, old: str, new: str, *tests: str) -> Mutation:
        """Return a mutation of a file of the package; tests are relative to ``tests/``."""
        return cls(promise, f"src/ratoon/{file}", old, new, tuple(f"tests/{t}" for t in tests))


M = Mutation.of
MUTATIONS = (
    # ------------------------------------------------ same bits for the same seed, on any threads
    M(
        "every epoch has an order of its own",
        "training/loop.py",
        'derive_generator(self.plan.seed, "shuffle", epoch)',
        'derive_generator(self.plan.seed, "shuffle", 0)',
        "training/test_loop.py::test_every_epoch_has_an_order_of_its_own_and_all_samples_in_it",
    ),
    M(
        "all random numbers follow from the seed",
        "training/loop.py",
        'derive_seed(self.plan.seed, "rewire", clock.step)',
        'derive_seed(0, "rewire", clock.step)',
        "training/test_loop.py::test_every_use_of_random_numbers_depends_on_the_seed",
    ),
    M(
        "a seed never changes its meaning",
        "rng.py",
        "zlib.crc32(purpose.encode())",
        "zlib.adler32(purpose.encode())",
        "test_rng.py::test_seeds_equal_the_recorded_values",
    ),
    M(
        "layers of equal shape have different connections",
        "network.py",
        'derive_seed(seed, "layer", index)',
        'derive_seed(seed, "layer", 0)',
        "test_network.py::test_layers_of_equal_shape_have_different_connections",
    ),
    M(
        "the number of threads changes no bit",
        "training/loop.py",
        'dropout_seed=derive_seed(self.plan.seed, "dropout"),\n            first_step',
        'dropout_seed=derive_seed(self.plan.seed, "dropout") + self.plan.n_threads,\n'
        "            first_step",
        "training/test_loop.py::test_the_number_of_threads_changes_no_byte",
    ),
    M(
        "rewiring in place and by the general path are the same",
        "evolution/set.py",
        "kept = strongest_of_each_sign(layer.weights, self.fraction(clock))",
        "kept = strongest_of_each_sign(abs(layer.weights), self.fraction(clock))",
        "evolution/test_set.py",
    ),
    # ------------------------------------------------------------------------ resuming is exact
    M(
        "the memory of a strategy is in a checkpoint",
        "storage/training_state.py",
        '"evolving": state.evolution_state is not None,',
        '"evolving": False,',
        "storage/test_training_state.py",
    ),
    M(
        "a resumed training has the memory of its strategy",
        "training/state.py",
        "        self.evolution_state = other.evolution_state\n",
        "",
        "storage/test_checkpoint.py::test_every_strategy_resumes_to_the_same_bits",
    ),
    M(
        "momentum is in a checkpoint",
        "storage/write.py",
        "replace_file(path, _filler(document), check=verify_file)",
        "replace_file(path, _filler(document.without_optimizer()), check=verify_file)",
        "storage/test_checkpoint.py::test_a_stopped_training_resumes_to_the_same_bits",
    ),
    M(
        "patience counts across a resumption",
        "training/stopping.py",
        "        self.n_waited = other.n_waited\n",
        "",
        "storage/test_checkpoint.py::test_early_stopping_resumes_to_the_same_bits",
    ),
    M(
        "replaced connections count across a resumption",
        "training/state.py",
        "        self.rewired_by_layer = list(other.rewired_by_layer)\n",
        "",
        "storage/test_checkpoint.py::test_every_strategy_resumes_to_the_same_bits",
    ),
    M(
        "another training is refused",
        "storage/checkpoint.py",
        "        if lines:\n            if any",
        "        if not lines:\n            if any",
        "storage/test_checkpoint.py::test_another_training_is_refused_with_what_differs",
    ),
    M(
        "a snapshot does not change with later epochs",
        "training/state.py",
        "return replace(self.snapshot(), network=self.network.copy())",
        "return self.snapshot()",
        "storage/test_checkpoint.py::test_a_signal_within_an_epoch_leaves_the_last_completed_epoch",
        "training/test_state.py",
    ),
    # --------------------------------------------------------------------------- files are safe
    M(
        "every flipped bit is refused",
        "storage/read.py",
        """self._digest == f"sha256:{self._seen.hexdigest()}\"""",
        "len(self._digest) == 71",
        "storage/test_damage.py::test_every_flipped_bit_is_refused",
    ),
    M(
        "a key that occurs twice is refused",
        "storage/strict_json.py",
        "if len(found) != len(pairs):",
        "if len(found) > len(pairs):",
        "storage/test_damage.py::test_headers_that_are_not_strict_json_are_refused",
    ),
    M(
        "NaN in a header is refused",
        "storage/strict_json.py",
        "    parse_constant=_refuse_constant,\n",
        "",
        "storage/test_damage.py::test_headers_that_are_not_strict_json_are_refused",
    ),
    M(
        "a file is on disk before it gets its name",
        "storage/atomic.py",
        "        fill(descriptor)\n        _sync(descriptor)\n",
        "        fill(descriptor)\n",
        "storage/test_atomic.py::test_files_are_brought_to_disk_before_they_get_their_name",
    ),
    M(
        "a write that fails leaves no temporary file",
        "storage/atomic.py",
        "left = not done and not _removed(temporary)",
        "left = not done",
        "storage/test_atomic.py::test_a_full_disk_keeps_the_old_file_and_raises_a_clear_error",
    ),
    M(
        "prediction without compiled code notices damage",
        "inference.py",
        "len(digest) != 64 or found.hexdigest().encode() != digest",
        "len(digest) != 64",
        "test_inference.py::test_a_flipped_byte_anywhere_is_noticed",
    ),
    M(
        "no index of a sparse matrix from outside is trusted",
        "samples/csr.py",
        '    _check_range(indices, n_minor, "", source, error)\n',
        "",
        "samples/test_csr.py::test_damaged_indices_are_refused",
    ),
    M(
        "no index pointer of a sparse matrix from outside is trusted",
        "samples/csr.py",
        "indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]) or",
        "indptr[0] != 0 or",
        "samples/test_csr.py::test_damaged_indices_are_refused",
        "samples/test_checked.py::test_index_pointers_out_of_order_are_refused",
    ),
)


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
    chosen = [one for one in MUTATIONS if only in one.promise or only in one.file]
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

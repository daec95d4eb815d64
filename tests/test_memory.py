"""Memory: measured before a network is drawn, and a network that cannot fit is refused."""

import sys

import numpy as np
import pytest

from ratoon import (
    SparseBernoulliRBM,
    SparseMLPClassifier,
    SparseMLPRegressor,
    SparseMLPSurvival,
    memory,
)
from ratoon.errors import InvalidParameterError, NotEnoughMemoryError
from ratoon.network import SparseMLP
from tests.processes import IS_SANITIZED, run_python

X = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
WIDE = np.random.default_rng(0).normal(size=(20, 3000)).astype(np.float32)
Y = np.arange(20) % 2


@pytest.fixture
def proc(tmp_path, monkeypatch):
    """Files as Linux has them, on a machine with 4,000 kB of memory."""
    monkeypatch.delenv(memory.VARIABLE, raising=False)
    monkeypatch.setattr(memory, "_PROC", tmp_path)
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory, "_SMALL", 0)
    (tmp_path / "self").mkdir()
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 4000 kB\n")
    (tmp_path / "self/cgroup").write_text("0::/\n")
    (tmp_path / "self/statm").write_text("10 5 1 1 0 1 0\n")
    return tmp_path


def group(folder, limit, usage, prefix="", inactive=0):
    folder.mkdir(parents=True, exist_ok=True)
    v1 = bool(prefix)
    (folder / ("memory.limit_in_bytes" if v1 else "memory.max")).write_text(f"{limit}\n")
    (folder / ("memory.usage_in_bytes" if v1 else "memory.current")).write_text(f"{usage}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{prefix}inactive_file {inactive}\n")


def smallest():
    return min(memory.available())


def test_the_free_memory_of_the_machine_is_the_limit(proc):
    assert smallest() == (4_096_000, "free memory and swap space of this machine")


def test_the_limit_of_a_control_group_and_of_those_above_hold(proc):
    (proc / "self/cgroup").write_text("0::/outer/inner\n")
    group(proc / "groups/outer", 100_000, 50_000, inactive=20_000)
    group(proc / "groups/outer/inner", "max", 10)
    assert smallest() == (70_000, "limit of the control group")


def test_control_groups_of_version_1_are_read(proc):
    (proc / "self/cgroup").write_text("5:cpu:/\n4:memory:/a\n0::/\n")
    group(proc / "groups/memory", 2**63 - 4096, 9, prefix="total_")
    group(proc / "groups/memory/a", 90_000, 50_000, prefix="total_", inactive=10_000)
    assert smallest() == (50_000, "limit of the control group")


@pytest.mark.parametrize("text", ["", "garbage", "MemAvailable: x kB"])
def test_files_that_cannot_be_read_limit_nothing(proc, text):
    (proc / "meminfo").write_text(text)
    (proc / "self/cgroup").write_text(text)
    assert all(n_bytes >= 10**8 for n_bytes, _ in memory.available())


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500", 500), ("8GB", 8 * 10**9), ("2 gib", 2**31), ("0.5M", 500_000), ("1k", 1000)],
)
def test_a_size_is_read(text, expected):
    assert memory.size_in_bytes(text) == expected


@pytest.mark.parametrize("text", ["8XB", "-1", "GB", "1e9", "8 G B"])
def test_an_unreadable_limit_is_refused(text, monkeypatch):
    monkeypatch.setenv(memory.VARIABLE, text)
    with pytest.raises(InvalidParameterError, match=r'RATOON_MEMORY_LIMIT must be .*"8GB"'):
        SparseMLPRegressor((10,), solver="sgd", max_iter=1).fit(X, Y)


@pytest.mark.parametrize(
    "train",
    [
        lambda: SparseMLPRegressor((10**6,), epsilon=3, solver="sgd", max_iter=1).fit(X, Y),
        lambda: SparseMLPClassifier((10**6,), density=0.5, solver="sgd").partial_fit(X, Y, [0, 1]),
        lambda: SparseBernoulliRBM(10**6, epsilon=3).fit(np.clip(X, 0, 1)),
        lambda: SparseBernoulliRBM(10_000, epsilon=1, batch_size=20).fit(np.clip(X, 0, 1)),
        lambda: SparseMLP.start((5, 10**6, 2), epsilon=3, seed=0),
        lambda: SparseMLPRegressor(solver="ridge").fit(WIDE, Y),
        lambda: SparseMLPSurvival().fit(WIDE, np.c_[Y + 1, Y]),
        lambda: SparseMLPRegressor().fit(WIDE, np.tile(Y, (3000, 1)).T),
    ],
)
def test_a_network_larger_than_the_limit_is_refused_with_both_figures(train, monkeypatch):
    monkeypatch.setenv(memory.VARIABLE, "1MB")
    with pytest.raises(NotEnoughMemoryError, match=r"needs about \d.* but 1 MB are available"):
        train()


@pytest.mark.parametrize("limit", ["none", "10GB"])
def test_the_environment_overrides_the_measurement(proc, limit, monkeypatch):
    model = SparseMLPRegressor((30_000,), epsilon=5, solver="sgd", max_iter=1, random_state=0)
    with pytest.raises(NotEnoughMemoryError, match="`hidden_layer_sizes` or `epsilon`"):
        model.fit(X, Y)
    monkeypatch.setenv(memory.VARIABLE, limit)
    assert model.fit(X, Y).n_iter_ == 1


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce the limit")
@pytest.mark.skipif(IS_SANITIZED, reason="sanitizers need the address space")
def test_a_network_of_a_billion_neurons_under_4_gb_is_refused_at_once():
    code = """
import resource, time
resource.setrlimit(resource.RLIMIT_AS, (4 * 10**9, 4 * 10**9))
import numpy as np
from ratoon import SparseMLPClassifier
from ratoon.errors import NotEnoughMemoryError
X, y = np.random.default_rng(0).normal(size=(20, 5)), np.arange(20) % 2
started = time.perf_counter()
try:
    SparseMLPClassifier((10**9,), epsilon=3).fit(X, y)
except NotEnoughMemoryError as error:
    print("limit of the address space" in str(error), time.perf_counter() - started < 1.0)
"""
    done = run_python(code, RATOON_MEMORY_LIMIT="")
    assert done.stdout == "True True\n", done.stderr

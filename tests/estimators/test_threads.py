import os
import subprocess
import sys

import joblib
import numpy as np
import pytest

import ratoon
from ratoon.errors import InvalidParameterError
from ratoon.estimators import threads
from ratoon.estimators.threads import SMALL_WORK, available_cores, threads_for


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def test_small_work_is_done_by_one_thread():
    assert threads_for(None, SMALL_WORK - 1) == 1


def test_large_work_is_shared_by_all_cores_up_to_a_limit(monkeypatch):
    assert threads_for(None, SMALL_WORK) == 8
    monkeypatch.setattr(joblib, "cpu_count", lambda: 128)
    assert threads_for(None, SMALL_WORK) == threads.MOST_THREADS


@pytest.mark.parametrize(
    ("variable", "cores"), [("3", 3), ("3,2", 3), ("64", 8), ("", 8), ("x", 8)]
)
def test_the_environment_can_lower_the_number_of_cores(monkeypatch, variable, cores):
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    assert available_cores() == cores


def test_numbers_are_taken_as_given_and_negative_ones_count_from_the_cores():
    assert threads_for(3, 1) == 3
    assert threads_for(np.int64(12), 1) == 12
    assert threads_for(-1, 1) == 8
    assert threads_for(-2, 1) == 7
    assert threads_for(-100, 1) == 1


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2", True])
def test_other_values_are_refused(n_jobs):
    with pytest.raises(InvalidParameterError, match="`n_jobs` must be None"):
        threads_for(n_jobs, 1)


def test_workers_of_joblib_use_their_part_of_the_cores(monkeypatch):
    monkeypatch.undo()
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        [found] = joblib.Parallel(n_jobs=2)([joblib.delayed(available_cores)()])
    assert found == 1


def cores_found_after(preparation):
    code = preparation + "from ratoon.estimators.threads import available_cores\n"
    code += "print(available_cores())\n"
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    return int(done.stdout)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no CPU affinity")
def test_a_process_with_one_allowed_core_uses_one_thread():
    assert (
        cores_found_after("import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n")
        == 1
    )


FAKED_QUOTA = """
import builtins, io, os
real_open, real_exists, quota = builtins.open, os.path.exists, "/sys/fs/cgroup/cpu.max"
os.path.exists = lambda path: path == quota or real_exists(path)
def fake_open(path, *rest, **more):
    return io.StringIO("100000 100000") if path == quota else real_open(path, *rest, **more)
builtins.open = fake_open
"""


@pytest.mark.skipif(sys.platform != "linux", reason="containers limit cores on Linux")
def test_the_quota_of_a_container_is_honoured():
    assert cores_found_after(FAKED_QUOTA) == 1


@pytest.mark.parametrize("n_jobs", [10**12, 10**30, 4097])
@pytest.mark.parametrize("name", ["SparseMLPClassifier", "SparseFeatureSelector"])
def test_a_number_of_threads_that_no_machine_has_is_refused(name, n_jobs):
    estimator = getattr(ratoon, name)(n_jobs=n_jobs)
    x = np.random.default_rng(0).normal(size=(12, 3))
    with pytest.raises(InvalidParameterError, match="`n_jobs` must be at most 4096"):
        estimator.fit(x, np.arange(12) % 2)

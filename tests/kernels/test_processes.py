"""Children of a process that has used its threads: by fork and by spawn."""

import multiprocessing
import threading

from ratoon import _native
from tests.kernels.jobs import Job, forks, in_fork, needs_fork, trained


@needs_fork
@forks
def test_a_forked_child_trains_with_threads_of_its_own():
    expected = trained(n_threads=2)
    assert _native.pool_size() >= 1, "the parent has used its threads"

    def child():
        same = _native.pool_size() == 0 and trained(n_threads=2) == expected
        return same and _native.pool_size() >= 1

    assert in_fork(child)
    assert in_fork(lambda: in_fork(child)), "and so does its own child"
    assert trained(n_threads=2) == expected, "the parent continues"


@needs_fork
@forks
def test_a_child_forked_while_others_train_does_not_wait():
    expected = trained(n_threads=2)
    stop = threading.Event()

    def keep_training():
        job = Job(n_threads=2, seed=5)
        while not stop.is_set():
            job.train()

    others = [threading.Thread(target=keep_training) for _ in range(2)]
    for other in others:
        other.start()
    try:
        assert all(in_fork(lambda: trained(n_threads=2) == expected) for _ in range(5))
    finally:
        stop.set()
        for other in others:
            other.join()


def test_a_spawned_process_gives_the_same_bytes():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(trained, (2,)) == trained(n_threads=1)

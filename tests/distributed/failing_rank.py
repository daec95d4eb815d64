"""One rank of a training in which rank 1 fails or differs; run by `test_failures_over_mpi.py`.

Writes what this rank has raised, or the number of its epochs, to a file named after the rank.
"""

import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np

from ratoon import SparseMLPClassifier
from ratoon.distributed import DataParallel, MPICommunicator, RankFailedError
from ratoon.training import Callback


class At(Callback):
    """Runs an action at the end of the second epoch."""

    def __init__(self, action):
        self.action = action

    def on_epoch_end(self, training, record):
        if len(training.history) == 2:
            self.action(training)


def fail(training):
    raise RuntimeError("out of memory")


def leave(training):
    raise SystemExit(143)


def stop(training):
    training.should_stop = True


def diverge(training):
    training.network.layers[0].weights[:] = np.nan


def interrupt_soon(training):
    # In the middle of steps and of operations of MPI.
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()


ACTIONS = {"error": fail, "exit": leave, "stop": stop, "nan": diverge, "ctrl-c": interrupt_soon}
ACTIONS["retry"] = fail


def fit(case, communicator):
    is_odd = communicator.rank == 1
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((60, 20)), rng.integers(0, 3, 60)
    how = {"hidden_layer_sizes": (12,), "max_iter": 5, "random_state": 0}
    every, callbacks = None, []
    if case == "nan":
        how["evolution"] = "static"  # a rewiring takes over the weights of rank 0
    if case == "ctrl-c":
        how["max_iter"] = 1_000_000
    if is_odd:
        if case in ACTIONS:
            callbacks = [At(ACTIONS[case])]
        elif case == "uncaught":
            raise FileNotFoundError("no data.npz")
        elif case == "sys.exit":
            sys.exit("no data")
        elif case == "invalid":
            x[3, 3] = np.nan
        elif case == "samples":
            x, y = x[:-7], y[:-7]
        elif case == "values":
            x[59, 19] += 1.0
        elif case == "targets":
            y[0] = (y[0] + 1) % 3
        elif case == "widths":
            how["hidden_layer_sizes"] = (13,)
        elif case == "average_every":
            every = 2
        elif case in how or case == "batch_size":
            how[case] = {"max_iter": 6, "random_state": 1, "batch_size": 7}[case]
    callbacks.append(DataParallel(communicator, every))
    return SparseMLPClassifier(callbacks=callbacks, **how).fit(x, y)


def main(case, folder):
    communicator = MPICommunicator()
    outcome = Path(folder) / f"{communicator.rank}.txt"
    try:
        try:
            model = fit(case, communicator)
            if case == "afterwards" and communicator.rank == 1:
                raise RuntimeError("no space left")
        except RankFailedError:
            if case != "retry":
                raise
            model = fit("", communicator)  # rank 1 has ended
    except BaseException as error:
        outcome.write_text(f"{type(error).__name__}: {error}")
        raise
    outcome.write_text(f"{model.n_iter_} epochs")


if __name__ == "__main__":
    main(*sys.argv[1:])

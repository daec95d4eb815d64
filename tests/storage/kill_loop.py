"""Kill a training repeatedly at random times, and check its result.

    python tests/storage/kill_loop.py DIRECTORY --kills 20 --threads 1

A child trains with a checkpoint after every epoch; the parent kills it, starts it again, and so on.
Whenever a training gets to its end, its network must be that of an undisturbed one, and the next
training begins.  Prints a JSON object.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from ratoon.storage import Checkpoint, CheckpointDirectory
from tests.storage.cases import a_training, network_hash

LONGEST_RUN = 0.25
"""Seconds after which a child is killed at the latest, where the machine is not slow or busy."""


def train(directory, result, n_threads, n_epochs):
    """Train to the end, or as far as one gets, and write down the hash of the network."""
    callbacks = [Checkpoint(directory)] if directory else []
    training = a_training(callbacks=callbacks, n_epochs=n_epochs, n_threads=n_threads)
    training.run()
    Path(result).write_text(network_hash(training.network))


def in_child(function, *arguments):
    """Run a function in a child process and return its number."""
    child = os.fork()
    if child:
        return child
    try:
        function(*arguments)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def ended(child, seconds):
    """Wait for a child, at most so long; whether it ended by itself, and well."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            if status:
                raise RuntimeError(f"a training failed with status {status}")
            return True
        time.sleep(0.001)
    return False


def run(directory, *, kills, minutes, n_threads, n_epochs, seed):
    directory = Path(directory)
    rng = random.Random(seed)
    run_path, result = directory / "run", directory / "result"
    started = time.monotonic()
    if not ended(in_child(train, None, result, n_threads, n_epochs), 600):
        raise RuntimeError("the undisturbed training did not end")
    longest = max(LONGEST_RUN, 2 * (time.monotonic() - started))
    expected = result.read_text()
    found = {"kills": 0, "trainings": 0, "lost": 0, "different": 0, "furthest": 0}
    stop = time.monotonic() + 60 * minutes
    newest = 0
    while time.monotonic() < stop:
        enough = found["kills"] >= kills
        child = in_child(train, run_path, result, n_threads, n_epochs)
        if not ended(child, 600 if enough else rng.uniform(0.0, longest)):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            found["kills"] += 1
            latest = CheckpointDirectory(run_path).latest()
            number = 0 if latest is None else latest[0]
            found["lost"] += number < newest
            newest = max(newest, number)
            found["furthest"] = max(found["furthest"], number)
            continue
        found["trainings"] += 1
        found["different"] += result.read_text() != expected
        shutil.rmtree(run_path)
        newest = 0
        if enough:
            break
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(
        json.dumps(
            run(
                given.directory,
                kills=given.kills,
                minutes=given.minutes,
                n_threads=given.threads,
                n_epochs=given.epochs,
                seed=given.seed,
            )
        )
    )

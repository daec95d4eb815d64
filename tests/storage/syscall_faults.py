"""Let every system call of a training with checkpoints fail once, by strace, and check the files.

    python tests/storage/syscall_faults.py DIRECTORY --part 0.1

The training writes three checkpoints.  For each of its calls and each fault (a kill, a full disk, a
broken disk) a fresh one is started and hit there.  It must then either report the error or
be complete; its files must be complete; and it must continue to the network of an undisturbed
training.  Prints a JSON
object.
"""

import argparse
import json
import os
import random
import re
import select
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from ratoon.storage import Checkpoint, CheckpointDirectory
from ratoon.storage.container import writer
from tests.storage.cases import a_training, network_hash
from tests.storage.kill_loop import in_child

CALLS = ["write", "fsync", "?rename", "?renameat", "?renameat2", "openat", "close", "?unlink"]
CALLS += ["lseek", "ftruncate", "fchmod", "read"]
FAULTS = {"kill": "signal=SIGKILL", "full": "error=ENOSPC", "broken": "error=EIO"}
N_EPOCHS = 3
SAID_SO = 3
CALL = re.compile(r"(\w+)\(")


def can_trace():
    """Whether strace is there and may watch another process; if not, why."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    reading, writing = os.pipe()
    with subprocess.Popen(["cat"], stdin=reading, stdout=subprocess.DEVNULL) as child:
        os.close(reading)
        tracer = attach(child.pid, Path(os.devnull), [])
        os.close(writing)
        child.wait()
    tracer.wait()
    return "" if tracer.returncode == 0 else "strace may not watch other processes here"


def attach(child, log, injections):
    """Start strace on a waiting child, and return once it watches."""
    command = ["strace", "-y", "-o", str(log), "-e", f"trace={','.join(CALLS)}"]
    for injection in injections:
        command += ["-e", f"inject={injection}"]
    tracer = subprocess.Popen([*command, "-p", str(child)], stderr=subprocess.DEVNULL)
    while tracer.poll() is None:
        status = Path(f"/proc/{child}/status").read_text()
        if "TracerPid:\t0\n" not in status:
            break
        time.sleep(0.001)
    return tracer


def traced(function, *arguments, log=os.devnull, injections=()):
    """Run a function in a child under strace; return the child's status."""
    reading, writing = os.pipe()

    def wait_and_run():
        os.close(writing)
        select.select([reading], [], [])  # until the other end is closed; not one of the calls
        function(*arguments)

    child = in_child(wait_and_run)
    os.close(reading)
    tracer = attach(child, Path(log), injections)
    os.close(writing)
    status = os.waitpid(child, 0)[1]
    tracer.wait()
    return status


def train(directory, result=None):
    """Train to the end; leave with SAID_SO when a checkpoint could not be written."""
    callbacks = [Checkpoint(directory, on_error="raise")] if directory else []
    training = a_training(callbacks=callbacks, n_epochs=N_EPOCHS)
    try:
        training.run()
    except (OSError, ValueError) as error:
        os._exit(SAID_SO if str(error) else 1)
    if result is not None:
        Path(result).write_text(network_hash(training.network))


def calls_of_a_training(directory):
    """Return the names of the calls an undisturbed training makes, in order."""
    log = Path(directory, "log")
    traced(train, Path(directory, "counted"), log=log)
    return [found.group(1) for found in map(CALL.match, log.read_text().splitlines()) if found]


def run(directory, *, part, minutes, seed):
    directory = Path(directory)
    result, log = directory / "result", directory / "log"
    writer()  # looks for the library's version once, which is no part of a training
    os.waitpid(in_child(train, None, result), 0)
    expected = result.read_text()
    calls = calls_of_a_training(directory)
    points = [(name, n + 1) for name in sorted(set(calls)) for n in range(calls.count(name))]
    trials = [(point, fault) for point in points for fault in FAULTS]
    random.Random(seed).shuffle(trials)
    trials = trials[: max(1, round(part * len(trials)))]
    found = {"points": len(points), "trials": 0, "said": 0, "killed": 0, "harmless": 0}
    troubles = []
    stop = time.monotonic() + 60 * minutes
    for (name, when), fault in trials:
        if time.monotonic() > stop:
            break
        where = f"{fault} at {name} {when}"
        run_path = directory / "run"
        shutil.rmtree(run_path, ignore_errors=True)
        injection = f"{name}:{FAULTS[fault]}:when={when}"
        status = traced(train, run_path, log=log, injections=[injection])
        code = os.waitstatus_to_exitcode(status)
        found["trials"] += 1
        found["killed" if code < 0 else "said" if code == SAID_SO else "harmless"] += 1
        if code not in (0, SAID_SO, -9):
            troubles.append(f"{where}: status {status}")
        troubles += [f"{where}: {trouble}" for trouble in look(run_path, code)]
        result.unlink(missing_ok=True)
        os.waitpid(in_child(train, run_path, result), 0)
        if not result.exists() or result.read_text() != expected:
            troubles.append(f"{where}: it did not continue to the same network")
    return {**found, "troubles": troubles}


def look(run_path, code):
    """Return what is wrong with what a training left."""
    if not run_path.exists():
        return []
    checkpoints = CheckpointDirectory(run_path)
    troubles = []
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        latest = checkpoints.latest()
    if raised:
        troubles.append("a checkpoint under its final name is not whole")
    if code == 0 and (latest is None or latest[0] != N_EPOCHS):
        troubles.append("success was reported without a checkpoint")
    if code == SAID_SO and any(name.endswith(".tmp") for name in os.listdir(run_path)):
        troubles.append("a temporary file is left")
    with checkpoints:
        if any(name.endswith(".tmp") for name in os.listdir(run_path)):
            troubles.append("a temporary file was not cleared")
    return troubles


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--part", type=float, default=1.0)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(json.dumps(run(given.directory, part=given.part, minutes=given.minutes, seed=given.seed)))

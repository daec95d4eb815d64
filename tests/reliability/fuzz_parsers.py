"""Feed ratoon's parsers with mutants and random input for some time.

    python tests/reliability/fuzz_parsers.py --seconds 60

Readers of data files, the header of model files, strict JSON, and the state of estimators.  Each
may accept an input or refuse it with one of ratoon's own exceptions; anything else ends the run and
is reported with the seed that reproduces the input.  Prints a JSON object.
"""

import argparse
import contextlib
import json
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from ratoon.datasets import read
from ratoon.errors import RatoonError
from ratoon.storage import strict_json
from ratoon.storage.container import parse_header
from ratoon.storage.rules import Violation
from tests.datasets.test_mutants import GOOD, SMALL
from tests.datasets.test_mutants import mutant as mutant_of_data
from tests.storage.cases import a_document, from_bytes, to_bytes
from tests.storage.mutate import mutant as mutant_of_model
from tests.storage.test_mutants import an_estimator_document, use, use_estimator

MODEL = to_bytes(a_document())
ESTIMATOR = to_bytes(an_estimator_document())
HEADER = MODEL[8 : 8 + int.from_bytes(MODEL[:8], "little")]


def header(rng, folder):
    with contextlib.suppress(Violation):
        parse_header(mutant_of_data(HEADER, rng))


def json_text(rng, folder):
    with contextlib.suppress(ValueError):
        strict_json.parse(mutant_of_data(HEADER, rng).decode("utf-8", "replace"), max_depth=16)


def model(rng, folder):
    with contextlib.suppress(Violation):
        use(from_bytes(mutant_of_model(rng, MODEL)))


def estimator(rng, folder):
    with contextlib.suppress(Violation):
        use_estimator(from_bytes(mutant_of_model(rng, ESTIMATOR)))


def reader_of(name):
    def data(rng, folder):
        path = folder / name
        path.write_bytes(mutant_of_data(GOOD[name], rng))
        with contextlib.suppress(RatoonError), np.errstate(all="ignore"):
            found = read(path, limits=SMALL, missing="keep", duplicates="keep")
            found.X @ np.ones(found.n_features, dtype=found.X.dtype)

    return data


TARGETS = {
    "header": header,
    "strict JSON": json_text,
    "model": model,
    "estimator": estimator,
    **{name: reader_of(name) for name in GOOD},
}


def run(*, seconds, seed):
    found = dict.fromkeys(TARGETS, 0)
    stop = time.monotonic() + seconds
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < stop:
            for name, target in TARGETS.items():
                try:
                    target(np.random.default_rng([seed, number]), Path(folder))
                except Exception as error:
                    error.add_note(f"{name}: input {number} of seed {seed}")
                    raise
                found[name] += 1
            number += 1
    return {"seed": seed, "inputs": found}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    given = parser.parse_args()
    print(json.dumps(run(seconds=given.seconds, seed=given.seed)))

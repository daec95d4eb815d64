"""A file with changed settings is refused, or the model in it can be used."""

import contextlib
import copy
import random

import numpy as np
import pytest

import ratoon
from ratoon.errors import RatoonError
from ratoon.storage import Document, read_document, write_document

VALUES = (None, -1, 0, 1, 1.5, 1e308, -1e308, 2**63, "", "x", True, [], {}, [1], "auto", 10**6)


USES = (
    lambda model, x, y, path: str(model.report_),
    lambda model, x, y, path: model.predict(x),
    lambda model, x, y, path: model.partial_fit(x, y),
    lambda model, x, y, path: model.save(path),
)


def places(value, place=()):
    if place:
        yield place
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        yield from places(value[key], (*place, key))


@pytest.mark.filterwarnings("ignore")
def test_what_load_accepts_raises_no_other_errors(tmp_path):
    x = np.random.default_rng(0).normal(size=(20, 4))
    y = (x[:, 0] > 0).astype(int)
    model = ratoon.SparseMLPClassifier((6,), epsilon=3, max_iter=2, random_state=0).fit(x, y)
    path = tmp_path / "m.ratoon"
    model.save(path)
    document = read_document(path)
    choose, n_loaded = random.Random(0), 0
    where = list(places(document.config))
    for _ in range(200):
        config = copy.deepcopy(document.config)
        *above, last = choose.choice(where)
        target = config
        for key in above:
            target = target[key]
        target[last] = choose.choice(VALUES)
        try:
            write_document(Document(config, document.arrays, document.networks), path)
            loaded = ratoon.load(path)
        except RatoonError:
            continue
        n_loaded += 1
        for use in USES:
            with contextlib.suppress(RatoonError):
                use(loaded, x, y, path)
    assert n_loaded > 10

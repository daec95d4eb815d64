import warnings
from contextlib import suppress

import numpy as np
import pytest

from ratoon import SparseMLPClassifier
from ratoon.errors import FormatError, RatoonError
from ratoon.estimators.state import UnsavedParameterWarning, from_state, to_state
from ratoon.storage import Document, read_document
from ratoon.storage.rules import Violation
from tests.storage.cases import a_document, from_bytes, to_bytes
from tests.storage.mutate import mutant

N_MUTANTS = 1500


def use(document):
    """Do with a document what would crash if an index in it were wrong."""
    for network in document.networks:
        n_in = network.widths[0]
        if n_in <= 100_000:
            x = np.ones((3, n_in), dtype=network.dtype)
            assert network.outputs(x).shape == (3, network.widths[-1])
        for layer in network.layers:
            inputs, outputs = layer.topology.degrees()
            assert inputs.sum() == outputs.sum() == layer.n_connections


def use_estimator(document):
    """Make the estimator and predict; false if the document does not make one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsavedParameterWarning)
        try:
            model = from_state(document.config, document.arrays, document.networks)
        except FormatError:
            return False
        # A parameter or a weight may be unusable, which must raise an error.
        with suppress(RatoonError):
            if model.n_features_in_ <= 100_000:
                model.predict(np.ones((3, model.n_features_in_)))
    return True


def an_estimator_document():
    x = np.random.default_rng(0).normal(size=(30, 8))
    y = np.array(["ill", "well", "young"])[np.argmax(x[:, :3], axis=1)]
    how = {"epsilon": 3, "max_iter": 3, "random_state": 0, "evolution": "dsr"}
    model = SparseMLPClassifier((6,), early_stopping=True, n_iter_no_change=5, **how)
    return Document(*to_state(model.fit(x, y)))


def test_mutants_of_an_estimator_are_refused_or_harmless():
    rng = np.random.default_rng(0)
    raw = to_bytes(an_estimator_document())
    assert use_estimator(from_bytes(raw))
    n_used = 0
    for _ in range(400):
        try:
            found = from_bytes(mutant(rng, raw))
        except Violation:
            continue
        n_used += use_estimator(found)
    assert n_used > 20


@pytest.mark.parametrize(
    "document",
    [a_document(n_states=2), a_document(widths=(40, 700), dtype=np.float64, n_states=0)],
    ids=["small", "several tiles"],
)
def test_mutants_sealed_by_an_attacker_are_refused_or_harmless(document):
    rng = np.random.default_rng(0)
    raw = to_bytes(document)
    accepted = 0
    for _ in range(N_MUTANTS):
        try:
            found = from_bytes(mutant(rng, raw))
        except Violation:
            continue
        use(found)
        accepted += 1
    # Not all are refused: other weights, for instance, make another good network.
    assert 0.02 * N_MUTANTS < accepted < 0.5 * N_MUTANTS


def test_mutants_on_disk_raise_nothing_but_format_errors(tmp_path):
    rng = np.random.default_rng(1)
    raw = to_bytes(a_document("checkpoint"))
    path = tmp_path / "m.ratoon"
    messages = []
    for _ in range(300):
        path.write_bytes(mutant(rng, raw))
        try:
            use(read_document(path))
        except FormatError as error:
            messages.append(str(error))
    assert len(messages) > 150
    assert all("m.ratoon: " in message and "(rule " in message for message in messages)

import numpy as np
import pytest

from ratoon.errors import FormatError
from ratoon.storage import read_document
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

"""Files of every released format version: each loads for ever, and predicts the same.

The weights are small multiples of powers of two, so that sums of products are exact, in any order
and on any processor.
"""

from pathlib import Path

import numpy as np
import pytest

from ratoon.kernels import Scaling, available_isas, use_isa
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.storage import Document, read_document
from ratoon.topology import Topology
from tests.storage.cases import same_network

FIXTURES = Path(__file__).parent / "fixtures"

# Inputs to outputs of the first layer; a dot is an absent connection.
#
#              0      1      2
#     0      0.5      .  -0.25
#     1        .    1.0      .
#     2     -1.5      .   2.0
#     3        .  -0.75     .
FIRST = {(0, 0): 0.5, (0, 2): -0.25, (1, 1): 1.0, (2, 0): -1.5, (2, 2): 2.0, (3, 1): -0.75}
SECOND = {(0, 0): 1.0, (0, 1): -1.0, (1, 1): 0.5, (2, 0): -0.125}

SAMPLES = [[0, 0, 0, 0], [1, 2, 3, 4], [-2, 0.5, 8, -1], [100, -100, 0.25, 0]]
OUTPUTS = [[1.375, -0.375], [0.46875, -0.46875], [-2.03125, 3.65625], [5.75, -5.625]]


def a_layer(shape, weights, bias, **how):
    inputs, outputs = zip(*weights, strict=True)
    topology, order = Topology.from_pairs_with_order(shape, inputs, outputs)
    values = np.array(list(weights.values()), dtype=np.float32)[order]
    layer = SparseLayer(topology, values, np.array(bias, dtype=np.float32), **how)
    layer.clear_state(1)
    layer.state[0] += values / 2
    layer.bias_state[0] += layer.bias / 4
    return layer


def the_document():
    scaling = Scaling(np.full(4, 0.5), np.array([2.0, 1.0, 0.5, 4.0]), 8.0)
    layers = [
        a_layer((4, 3), FIRST, [0.5, -1.0, 0.25], activation="leaky_relu", slope=0.25, dropout=0.5),
        a_layer((3, 2), SECOND, [1.0, 0.0]),
    ]
    arrays = {
        "classes": np.array(["lung", "ébène"]),
        "feature_names": np.array(["a", "b", "c", "d"], dtype=object),
        "counts": np.array([3, 5], dtype=np.int64),
    }
    config = {"estimator": "none", "parameters": {"zeta": 0.3, "sizes": [3], "seed": None}}
    return Document(config, arrays, [SparseMLP(layers, scaling.of_type(np.float32))])


@pytest.fixture(params=sorted(FIXTURES.glob("model-*.ratoon")), ids=lambda path: path.stem)
def found(request):
    return read_document(request.param, kind="model")


def test_an_old_model_loads_and_predicts_the_same_to_the_bit(found):
    [network] = found.networks
    samples, outputs = np.array(SAMPLES, dtype=np.float32), np.array(OUTPUTS, dtype=np.float32)
    for name in available_isas():
        with use_isa(name):
            assert network.outputs(samples).tolist() == outputs.tolist(), name


def test_an_old_model_keeps_all_its_content(found):
    expected = the_document()
    assert found.config == expected.config
    assert same_network(found.networks[0], expected.networks[0])
    for name, array in expected.arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].tolist() == array.tolist()


def test_there_is_a_file_of_version_1():
    assert [path.name for path in FIXTURES.glob("model-*.ratoon")] == ["model-version-1.ratoon"]

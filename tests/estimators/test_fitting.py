import numpy as np
import pytest
import scipy.sparse

from ratoon import SparseMLPClassifier
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.estimators.fitting import checked_topologies, learn_scaling
from ratoon.topology import Topology


def test_a_fit_starts_from_given_connections(two_classes):
    X, y = two_classes
    pathways = scipy.sparse.csr_array(np.eye(8, 4) * 3)
    model = SparseMLPClassifier(topology=[pathways], evolution="static", max_iter=5).fit(X, y)
    assert model.network_.widths == (8, 4, 2)
    assert (model.coefs_[0].toarray() != 0).tolist() == (np.eye(8, 4) != 0).tolist()
    assert model.report_.layers[0].requested_density is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([scipy.sparse.eye_array(4, 4)], "is 4 -> 4, but layer 0 of this network is 4 -> 3"),
        ([None, None, None], "names 3 layers, the network has 2"),
    ],
)
def test_topologies_that_do_not_fit_are_refused(given, message):
    with pytest.raises(InvalidParameterError, match=message):
        checked_topologies(given, (4, 3, 2))


def test_topologies_can_be_given_for_some_layers():
    last = Topology.full((3, 2))
    assert checked_topologies([None, last], (4, 3, 2)) == [None, last]


def test_sparse_samples_are_scaled_and_not_centred():
    x = np.array([[0.0, 2.0], [4.0, 2.5]])
    dense, _ = learn_scaling(x, None, scale="standard", clip=3.0, dtype="float64")
    sparse, _ = learn_scaling(
        scipy.sparse.csr_array(x), None, scale="standard", clip=3.0, dtype="float64"
    )
    assert dense.shift.tolist() == [2.0, 2.25]
    assert sparse.shift is None
    assert dense.scale.tolist() == sparse.scale.tolist() == [0.5, 4.0]
    assert dense.clip == 3.0


def test_without_scaling_samples_are_read_as_they_are():
    scaling, _ = learn_scaling(np.eye(2), None, scale=None, clip=0.0, dtype="float32")
    assert (scaling.shift, scaling.scale, scaling.clip) == (None, None, 0.0)
    with pytest.raises(InvalidInputError, match="too large for float32"):
        learn_scaling(np.eye(2) * 1e39, None, scale=None, clip=0.0, dtype="float32")


def test_tiny_spreads_do_not_become_infinite_in_float32():
    x = np.array([[0.0], [1e-40]])
    scaling, _ = learn_scaling(x, None, scale="standard", clip=0.0, dtype="float32")
    assert np.isfinite(scaling.of_type(np.float32).scale).all()

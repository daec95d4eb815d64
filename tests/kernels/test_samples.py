"""Samples: every kind of array and sparse matrix, and damaged ones."""

import gc
import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.errors import InvalidInputError
from ratoon.kernels import NativeNetwork, Rule, Scaling, Step, as_samples
from ratoon.topology import Topology
from tests.kernels.cases import RTOL


def network_for(n_in, dtype=np.float32):
    """Return a network of two layers whose outputs distinguish features."""
    network = NativeNetwork(dtype, "squared_error", 1)
    rng = np.random.default_rng(0)
    for topology in (
        Topology.random((n_in, 40), 10 * n_in, seed=1),
        Topology.random((40, 3), 60, seed=2),
    ):
        weights = rng.normal(size=topology.n_connections).astype(dtype)
        bias = rng.normal(size=topology.shape[1]).astype(dtype)
        network.add_layer(topology, weights, bias)
    return network


@pytest.fixture
def x():
    # Quarters, which float16 and float32 hold exactly, and many zeros.
    rng = np.random.default_rng(3)
    return (rng.integers(-8, 9, (37, 50)) / 4 * (rng.random((37, 50)) < 0.5)).astype(np.float32)


def unaligned(x):
    raw = np.zeros(x.nbytes + 1, dtype=np.uint8)
    array = raw[1:].view(x.dtype).reshape(x.shape)
    array[:] = x
    assert not array.flags.aligned
    return array


def read_only(x):
    array = x.copy()
    array.flags.writeable = False
    return array


DENSE = {
    "float64": lambda x: x.astype(np.float64),
    "columns first": np.asfortranarray,
    "every second row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "every second column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "columns backwards": lambda x: x[:, ::-1].copy()[:, ::-1],
    "part of a wider array": lambda x: np.pad(x, ((2, 3), (5, 4)))[2:-3, 5:-4],
    "turned": lambda x: x.T.copy().T,
    "float16": lambda x: x.astype(np.float16),
    "the other byte order": lambda x: x.astype(">f4"),
    "the other byte order, float64": lambda x: x.astype(">f8"),
    "unaligned": unaligned,
    "read-only": read_only,
    "lists": lambda x: x.tolist(),
    "long double": lambda x: x.astype(np.longdouble),
}


@pytest.mark.parametrize("form", DENSE)
def test_dense_samples_of_any_form_predict_the_same_bytes(x, form):
    network = network_for(50)
    expected = network.predict(as_samples(x, np.float32))
    assert_array_equal(network.predict(as_samples(DENSE[form](x), np.float32)), expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_single_feature_may_be_a_column_of_a_table(x, order):
    column = np.asarray(x, order=order)[:, 1:2]
    network = network_for(1)
    expected = network.predict(as_samples(np.ascontiguousarray(column), np.float32))
    assert_array_equal(network.predict(as_samples(column, np.float32)), expected)


def test_integers_and_booleans_are_read_as_numbers():
    network = network_for(50)
    x = np.random.default_rng(0).integers(0, 2, (9, 50))
    expected = network.predict(as_samples(x.astype(np.float32), np.float32))
    for kind in (np.int64, np.uint8, np.bool_):
        assert_array_equal(network.predict(as_samples(x.astype(kind), np.float32)), expected)


def test_a_memory_map_is_read_where_it_is(x, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, x)
    network = network_for(50)
    mapped = np.load(path, mmap_mode="r")
    expected = network.predict(as_samples(x, np.float32))
    assert_array_equal(network.predict(as_samples(mapped, np.float32)), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr"])
def test_sparse_samples_of_any_form_predict_the_same_bytes(x, form, kind, dtype):
    network = network_for(50, dtype)
    expected = network.predict(as_samples(scipy.sparse.csr_array(x), dtype))
    assert_array_equal(network.predict(as_samples(kind(x).asformat(form), dtype)), expected)


def assert_alike(actual, expected):
    """Compare what was added up from numbers of size 1 to 10 in two different orders."""
    rtol = RTOL[actual.dtype]
    assert_allclose(actual, expected, rtol=rtol, atol=10 * rtol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_samples_predict_what_dense_ones_predict_in_any_batch(x, dtype):
    network = network_for(50, dtype)
    sparse = network.predict(as_samples(scipy.sparse.csr_array(x), dtype))
    assert_alike(sparse, network.predict(as_samples(x.astype(dtype), dtype)))
    for rows in ([5], [3, 30], list(range(9)), list(range(36, -1, -1))):
        part = network.predict(as_samples(scipy.sparse.csr_array(x[rows]), dtype))
        assert_array_equal(part, sparse[rows])


def test_sparse_samples_are_scaled_and_clipped_as_dense_ones(x):
    network = network_for(50)
    scaling = Scaling(None, np.linspace(0.5, 3, 50), clip=1.25).of_type(np.float32)
    expected = network.predict(as_samples(x, np.float32), scaling=scaling)
    sparse = as_samples(scipy.sparse.csr_array(x), np.float32)
    assert_alike(network.predict(sparse, scaling=scaling), expected)
    with pytest.raises(ValueError, match="shifted"):
        network.predict(sparse, scaling=Scaling(shift=np.zeros(50, np.float32)))


def test_unsorted_and_duplicate_entries_are_read_as_scipy_reads_them_and_left_alone():
    indptr, indices = np.array([0, 3, 3, 5]), np.array([4, 0, 4, 2, 1])
    data = np.array([1.0, 2.0, 3.0, 4.0, 5.0], np.float32)
    matrix = scipy.sparse.csr_array((data, indices, indptr), shape=(3, 5))
    network = network_for(5)
    summed = scipy.sparse.csr_array(matrix.toarray())
    expected = network.predict(as_samples(summed, np.float32))
    untouched = scipy.sparse.csr_array((data, indices, indptr), shape=(3, 5))

    assert_array_equal(network.predict(as_samples(untouched, np.float32)), expected)
    assert_array_equal(untouched.indices, [4, 0, 4, 2, 1])
    assert_array_equal(untouched.data, [1, 2, 3, 4, 5])


@given(
    shape=st.tuples(st.integers(1, 40), st.integers(1, 60)),
    density=st.sampled_from([0.0, 0.1, 0.6, 1.0]),
    scaled=st.booleans(),
    batch=st.integers(1, 12),
)
def test_training_on_sparse_samples_is_training_on_dense_ones(shape, density, scaled, batch):
    rng = np.random.default_rng(0)
    x = rng.random(shape) * (rng.random(shape) < density)
    scaling = Scaling(None, np.linspace(0.5, 3, shape[1]), clip=0.5) if scaled else Scaling()
    targets, order = np.ones((shape[0], 3)), np.arange(shape[0])
    predictions = []
    for samples in (scipy.sparse.csr_array(x), x):
        network = network_for(shape[1], np.float64)
        network.train(
            as_samples(samples, np.float64),
            targets,
            order,
            batch,
            Rule.SGD,
            [Step(lr=0.01)] * -(-shape[0] // batch),
            scaling=scaling,
        )
        predictions.append(network.predict(as_samples(samples, np.float64), scaling=scaling))
    assert_alike(predictions[0], predictions[1])


# ------------------------------------------------------------------------------------- refusals


def damaged(form, **parts):
    """Return a 4 x 6 matrix in compressed form with parts of it replaced after it was made."""
    matrix = scipy.sparse.csr_array(np.arange(24.0).reshape(4, 6)).asformat(form)
    for name, value in parts.items():
        setattr(matrix, name, np.asarray(value))
    return matrix


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


GOOD = {form: damaged(form) for form in ("csr", "csc")}
DAMAGE = {
    "index too high": lambda m: {"indices": changed(m.indices, 3, 6 + 10**6)},
    "index one too high": lambda m: {"indices": changed(m.indices, 3, max(m.shape))},
    "negative index": lambda m: {"indices": changed(m.indices, 3, -1)},
    "index that wraps to 0": lambda m: {"indices": changed(m.indices.astype(np.int64), 3, 2**32)},
    "start too high": lambda m: {"indptr": changed(m.indptr, 2, 10**6)},
    "negative start": lambda m: {"indptr": changed(m.indptr, 2, -4)},
    "starts that fall": lambda m: {"indptr": changed(m.indptr, 2, m.indptr[1] - 1)},
    "first start not 0": lambda m: {"indptr": changed(m.indptr, 0, 1)},
    "end beyond the entries": lambda m: {"indptr": changed(m.indptr, -1, 1000)},
    "too few starts": lambda m: {"indptr": m.indptr[:-1]},
    "no starts": lambda m: {"indptr": m.indptr[:0]},
    "too few values": lambda m: {"data": m.data[:-1]},
    "too few indices": lambda m: {"indices": m.indices[:-5]},
}


@pytest.mark.parametrize("form", GOOD)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_matrix_is_refused(damage, form):
    matrix = damaged(form, **DAMAGE[damage](GOOD[form]))
    with pytest.raises(InvalidInputError):
        as_samples(matrix, np.float32)


def test_damaged_coordinates_are_refused():
    matrix = scipy.sparse.coo_array(np.eye(4))
    matrix.coords[1][2] = 10**6
    with pytest.raises(InvalidInputError):
        as_samples(matrix, np.float32)


@pytest.mark.parametrize("value", [-1, 500, 2**31 - 1])
@pytest.mark.parametrize("density", [0.01, 0.9])
def test_a_matrix_damaged_after_it_was_checked_is_refused_when_it_is_read(density, value):
    rng = np.random.default_rng(0)
    matrix = scipy.sparse.csr_array((rng.random((20, 500)) < density).astype(np.float32))
    network, targets, order = network_for(500), np.zeros((20, 3), np.float32), np.arange(20)
    samples = as_samples(matrix, np.float32)
    matrix.indices[3], matrix.indptr[5] = value, 2**30
    with pytest.raises(ValueError, match="changed"):
        network.predict(samples)
    with pytest.raises(ValueError, match="changed"):
        network.train(samples, targets, order, 8, Rule.SGD, [Step(lr=0.0)] * 3)
    with pytest.raises(ValueError, match="changed"):
        network.gradients(samples, targets, order)


@pytest.mark.parametrize("x", [np.ones(3), np.ones((2, 3, 4)), 5.0, [1.0, 2.0]])
def test_samples_have_two_dimensions(x):
    with pytest.raises(InvalidInputError, match="rows of features"):
        as_samples(x, np.float32)


@pytest.mark.parametrize("x", [[["a", "b"]], [[None, object()]], [[1, 2], [3]]])
def test_samples_of_other_types_are_refused(x):
    with pytest.raises((ValueError, TypeError)):
        as_samples(np.asarray(x, dtype=object), np.float32)


def test_samples_of_another_width_are_refused(x):
    network = network_for(50)
    for samples in (x[:, :-1], np.ones((3, 51), np.float32), np.ones((3, 0), np.float32)):
        with pytest.raises(ValueError, match="features"):
            network.predict(as_samples(samples, np.float32))
    with pytest.raises(ValueError, match="features"):
        network.predict(as_samples(scipy.sparse.csr_array(x[:, :-1]), np.float32))


# ------------------------------------------------------------------------------------- ownership


def test_samples_keep_their_arrays_alive_and_release_them():
    class Array(np.ndarray):
        pass

    x = np.ones((5, 50), np.float32).view(Array)
    matrix = scipy.sparse.csr_array(np.eye(5, 50, dtype=np.float32))
    gone = weakref.ref(x), weakref.ref(matrix)
    samples, sparse = as_samples(x, np.float32), as_samples(matrix, np.float32)
    expected = network_for(50).predict(samples)
    del x, matrix
    gc.collect()
    assert_array_equal(network_for(50).predict(samples), expected)
    assert network_for(50).predict(sparse).shape == (5, 3)
    del samples, sparse
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


def test_a_network_keeps_its_arrays_alive_and_releases_them():
    class Array(np.ndarray):
        pass

    weights = np.ones(6, np.float32).view(Array)
    gone = weakref.ref(weights)
    network = NativeNetwork(np.float32, "squared_error", 1)
    network.add_layer(Topology.full((3, 2)), weights, np.zeros(2, np.float32))
    del weights
    gc.collect()
    assert_array_equal(network.predict(as_samples(np.ones((1, 3)), np.float32)), [[3, 3]])
    del network
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(sys.platform != "linux", reason="other systems report memory in other units")
def test_hundreds_of_calls_leak_no_memory():
    # In a process of its own, so that nothing else moves its memory.
    script = """
        import resource
        import numpy as np
        import scipy.sparse
        from ratoon.kernels import NativeNetwork, Rule, Step, as_samples, rewire_by_sign
        from ratoon.topology import Topology

        x = np.ones((20, 300), np.float32)
        sparse = scipy.sparse.csr_array(x)
        y, order, steps = np.ones((20, 40), np.float32), np.arange(20), [Step(lr=0.0)] * 3

        def work(count):
            topology = Topology.random((300, 40), 4000, seed=0)
            weights = np.ones(4000, np.float32)
            for k in range(count):
                topology, _ = rewire_by_sign(topology, weights, [], 0.3, seed=k)
                network = NativeNetwork(np.float32, "squared_error", 1)
                network.add_layer(topology, weights, np.zeros(40, np.float32))
                for samples in (as_samples(x, np.float32), as_samples(sparse, np.float32)):
                    network.train(samples, y, order, 8, Rule.SGD, steps, progress=lambda n: None)
                    network.predict(samples)
                topology.pairs(), topology.degrees(), topology.packed

        work(50)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        work(400)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    # In KiB.  A topology forgotten at each turn would be 6 MB, an array of samples 9 MB.
    assert int(done.stdout) < 3000


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scaling_is_applied_to_float64_samples_in_the_type_of_the_network(dtype):
    x = np.random.default_rng(0).normal(1e3, 1, (12, 20))
    scaling = Scaling(np.full(20, 1e3), np.full(20, 2.0), clip=3.0).of_type(dtype)
    out = network_for(20, dtype).predict(as_samples(x, dtype), scaling=scaling)
    exact = network_for(20, np.float64).predict(
        as_samples(np.clip((x - 1e3) * 2, -3, 3), np.float64)
    )
    # A float32 near 1000 is rounded by up to 3e-5, then doubled and multiplied by weights near 1.
    assert_allclose(out, exact, atol=1e-2 if dtype == np.float32 else 1e-9)

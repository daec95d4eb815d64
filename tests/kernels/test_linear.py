import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon import kernels
from ratoon.kernels import ACTIVATIONS, Rule, Step, available_isas, reference, use_isa
from ratoon.kernels.linear import padded
from ratoon.topology import Topology
from tests.kernels.cases import DTYPES, THREADS, Case, assert_close, cases, large_topologies
from tests.kernels.models import SLOPES

LARGE = large_topologies()
STEP = Step(lr=0.5, mu=0.8, l2=0.1, shrink=0.01, beta2=0.9, adam_eps=0.01, correction=1.5)


def state(case, rule):
    """Return arrays for a rule: means of squares well above 0, others of any sign."""
    rng = np.random.default_rng(9)
    size = case.weights.size
    first, second = rng.uniform(-1, 1, size), rng.uniform(0.5, 1, size)
    if rule == Rule.RMSPROP:
        first, second = second, first
    return first.astype(case.weights.dtype), second.astype(case.weights.dtype)


def check_forward(case, n_threads=1):
    weights, bias, x, _ = case.exact()
    y = kernels.forward(case.topology, case.weights, case.bias, case.x, n_threads=n_threads)
    exact = reference.forward(case.topology, weights, bias, x)
    assert_close(y[:, : case.batch], exact, case.magnitudes()[0])


def check_backward(case, rule, with_dx=True):
    w, (v, s) = case.weights.copy(), state(case, rule)
    exact_w, _, x, dy = case.exact()
    exact_v, exact_s = v.astype(np.float64), s.astype(np.float64)

    dx = kernels.backward(
        case.topology, rule, w, case.x, case.dy, first=v, second=s, step=STEP, with_dx=with_dx
    )
    exact_dx = reference.backward(
        case.topology, rule, exact_w, x, dy, first=exact_v, second=exact_s, step=STEP
    )

    _, size_of_dx, size_of_g = case.magnitudes()
    if with_dx:
        assert_close(dx[:, : case.batch], exact_dx, size_of_dx)
        assert_array_equal(dx[:, case.batch :], 0)
    else:
        assert dx is None
    # Weights and states are of size 1, every factor of STEP is at most 1.5.
    assert_close(w, exact_w, 3 + size_of_g)
    assert_close(v, exact_v, 3 + size_of_g)
    assert_close(s, exact_s, (3 + size_of_g) ** 2)


@pytest.mark.parametrize("isa", available_isas())
@given(case=cases())
def test_forward_agrees_with_its_twin(isa, case):
    with use_isa(isa):
        check_forward(case)


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("isa", available_isas())
@given(case=cases(), with_dx=st.booleans())
def test_backward_agrees_with_its_twin_under_every_rule(isa, rule, case, with_dx):
    with use_isa(isa):
        check_backward(case, rule, with_dx)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize(
    ("batch", "dtype"), [(1, np.float32), (5, np.float32), (40, np.float32), (13, np.float64)]
)
@pytest.mark.parametrize("kind", LARGE)
def test_large_layers_agree_with_their_twin(kind, batch, dtype, isa):
    case = Case.of(LARGE[kind], batch, dtype, seed=7)
    with use_isa(isa):
        check_forward(case)
        check_backward(case, Rule.MOMENTUM)


def test_large_layers_have_the_properties_in_their_names():
    assert len(LARGE["many tiles"].starts) > 16
    assert LARGE["many tiles"].grouped
    assert LARGE["far rows"].tile[1] > 16384, "8 lanes of float32 exceed 512 KiB"
    assert not LARGE["far rows"].grouped
    assert len(LARGE["wider than a tile"].starts) > 4
    assert len(LARGE["narrow"].starts) > 2


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [1, 5, 40])
@pytest.mark.parametrize("kind", LARGE)
def test_the_number_of_threads_changes_no_bit(kind, batch, dtype, isa):
    case = Case.of(LARGE[kind], batch, dtype, seed=8)
    results = set()
    for n_threads in THREADS:
        with use_isa(isa):
            results.add(bits_of_all_rules(case, n_threads))
    assert len(results) == 1


def bits_of_all_rules(case, n_threads):
    """Return all that comes out of a pass forward and, under every rule, one backward."""
    y = kernels.forward(case.topology, case.weights, case.bias, case.x, n_threads=n_threads)
    found = [y]
    for rule in Rule:
        w, (v, s) = case.weights.copy(), state(case, rule)
        dx = kernels.backward(
            case.topology,
            rule,
            w,
            case.x,
            case.dy,
            first=v,
            second=s,
            step=STEP,
            with_dx=rule != Rule.SGD,
            n_threads=n_threads,
        )
        found += [w, v, s] if dx is None else [w, v, s, dx]
    return b"".join(array.tobytes() for array in found)


@given(case=cases())
def test_the_result_of_a_sample_does_not_depend_on_its_minibatch(case):
    together = kernels.forward(case.topology, case.weights, case.bias, case.x)
    last = case.batch - 1
    alone = padded(np.repeat(case.x[:, last : case.batch], 2, axis=1))
    y = kernels.forward(case.topology, case.weights, case.bias, alone)
    assert_array_equal(y[:, 0], together[:, last])


@given(
    rule=st.sampled_from(Rule),
    size=st.integers(0, 40),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 2**32),
    isa=st.sampled_from(available_isas()),
)
def test_update_agrees_with_its_twin(rule, size, dtype, seed, isa):
    rng = np.random.default_rng(seed)
    w, v, g = (rng.uniform(-1, 1, size).astype(dtype) for _ in range(3))
    s = rng.uniform(0.5, 1, size).astype(dtype)
    if rule == Rule.RMSPROP:
        v, s = s, v
    exact_w, exact_v, exact_g, exact_s = (array.astype(np.float64) for array in (w, v, g, s))

    with use_isa(isa):
        kernels.update(rule, w, g, STEP, first=v, second=s)
    reference.update(rule, exact_w, exact_g, STEP, first=exact_v, second=exact_s)

    for actual, exact in ((w, exact_w), (v, exact_v), (s, exact_s)):
        assert_close(actual, exact, 3.0)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_activations_and_derivatives_agree_with_their_twins(kind, dtype, isa):
    slope = SLOPES.get(kind, 0.0)
    z = np.concatenate((np.linspace(-20, 20, 999), [0.0, -0.0, 1e4, -1e4])).astype(dtype)
    y, exact = z.copy(), z.astype(np.float64)
    with use_isa(isa):
        kernels.activate(kind, y, slope=slope)
        reference.activate(kind, exact, slope=slope)
        assert_close(y, exact, np.abs(exact) + 1e-30)

        told_by = z if kind == "all_relu" else y
        d, exact_d = np.full_like(z, 3), np.full(z.size, 3.0)
        kernels.derive(kind, told_by, d, slope=slope)
        reference.derive(kind, told_by.astype(np.float64), exact_d, slope=slope)
        # 1 - y and 1 - y^2 cancel where y is near 1: what was added up is of size 3.
        assert_close(d, exact_d, 3.0)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("kind", ["tanh", "logistic", "elu"])
def test_activations_are_precise_to_three_units_in_the_last_place(kind, isa):
    rng = np.random.default_rng(0)
    z = np.concatenate([scale * rng.normal(size=20_001) for scale in (1e-4, 0.1, 1, 10, 30)])
    z = z.astype(np.float32)
    y, exact = z.copy(), z.astype(np.float64)
    with use_isa(isa):
        kernels.activate(kind, y, slope=1.0)
    reference.activate(kind, exact, slope=1.0)
    is_normal = np.abs(exact) > 1e-37
    units = np.abs(y - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert units[is_normal].max() < 3.0
    assert np.abs(y[~is_normal]).max(initial=0.0) < 2e-37


@pytest.mark.parametrize("kind", ["tanh", "logistic", "elu", "silu"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_activation_of_a_number_does_not_depend_on_its_place(kind, dtype):
    z = np.linspace(-9, 9, 37, dtype=dtype)
    whole = z.copy()
    kernels.activate(kind, whole, slope=0.5)
    for first in range(9):
        part = z[first:].copy()
        kernels.activate(kind, part, slope=0.5)
        assert_array_equal(part, whole[first:])


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_activations_keep_nan(kind):
    y = np.full(19, np.nan, dtype=np.float32)
    kernels.activate(kind, y, slope=0.5)
    assert np.isnan(y).all()


@given(
    rate=st.floats(0, 0.99),
    size=st.integers(0, 70),
    seed=st.integers(0, 2**64 - 1),
    dtype=st.sampled_from(DTYPES),
    isa=st.sampled_from(available_isas()),
)
def test_dropout_drops_the_entries_that_its_twin_drops(rate, size, seed, dtype, isa):
    ours, twin = np.ones(size, dtype=dtype), np.ones(size, dtype=dtype)
    with use_isa(isa):
        kernels.drop(rate, ours, seed=seed)
    reference.drop(rate, twin, seed=seed)
    assert_array_equal(ours, twin)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sign_of_a_zero_shows_whether_it_was_dropped(isa, dtype):
    d, kept = np.full(333, -0.0, dtype=dtype), np.ones(333, dtype=dtype)
    with use_isa(isa):
        kernels.drop(0.3, d, seed=5)
        kernels.drop(0.3, kept, seed=5)
    assert not d.any()
    assert_array_equal(np.signbit(d), kept == 0)
    assert np.signbit(d).any()


def test_dropout_keeps_the_mean():
    d = np.ones(100_000)
    kernels.drop(0.3, d, seed=5)
    assert set(np.unique(d)) == {0.0, 1 / 0.7}
    # One deviation of the mean is sqrt(0.3 / 0.7 / 100,000) = 0.0021; allow five.
    assert abs(d.mean() - 1) < 5 * 0.0021


@given(
    size=st.integers(0, 300),
    sigma=st.floats(0.01, 100),
    seed=st.integers(0, 2**64 - 1),
    dtype=st.sampled_from(DTYPES),
    isa=st.sampled_from(available_isas()),
)
def test_normal_deviates_are_those_of_the_twin(size, sigma, seed, dtype, isa):
    with use_isa(isa):
        ours = kernels.normal(size, sigma, dtype, seed=seed)
    # The radius is at most sqrt(2 log 2^24) = 5.8, the angle 6.3: products are below 40.
    assert_close(ours, reference.normal(size, sigma, np.float64, seed=seed), 40 * sigma)


def test_normal_deviates_are_normal_on_any_number_of_threads():
    size = 200_000
    drawn = [kernels.normal(size, 2.0, np.float64, seed=1, n_threads=n) for n in THREADS]
    assert len({array.tobytes() for array in drawn}) == 1

    z = drawn[0] / 2
    # Deviations of mean, variance, third and fourth moment of n normal numbers are the roots of
    # 1, 2, 15 and 96 over n; of the correlation of neighbours, of 1 over n.  Allow five of each.
    for moment, expected, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**moment).mean() - expected) < 5 * np.sqrt(variance / size)
    assert abs((z[:-1] * z[1:]).mean()) < 5 / np.sqrt(size)
    assert abs((np.abs(z) > 1.959964).mean() - 0.05) < 5 * np.sqrt(0.05 * 0.95 / size)


def wrong_calls():
    topology = Topology.random((20, 10), 50, seed=0)
    w, b = np.zeros(50, np.float32), np.zeros(10, np.float32)
    x, dy = np.zeros((20, 8), np.float32), np.zeros((10, 8), np.float32)

    def forward(**changed):
        given = {"weights": w, "bias": b, "x": x} | changed
        return lambda: kernels.forward(topology, **given)

    def backward(rule, **changed):
        given = {"weights": w, "x": x, "dy": dy} | changed
        return lambda: kernels.backward(topology, rule, **given)

    return {
        "too few weights": forward(weights=w[:-1]),
        "too many weights": forward(weights=np.zeros(51, np.float32)),
        "wrong bias": forward(bias=b[:-1]),
        "wrong rows of x": forward(x=x[:-1]),
        "12 lanes": forward(x=np.zeros((20, 12), np.float32)),
        "0 lanes": forward(x=np.zeros((20, 0), np.float32)),
        "mixed number types": forward(x=x.astype(np.float64)),
        "half precision": forward(weights=w.astype(np.float16)),
        "columns first": forward(x=np.asfortranarray(x)),
        "every second weight": forward(weights=np.zeros(100, np.float32)[::2]),
        "wrong rows of dy": backward(Rule.SGD, dy=dy[:-1]),
        "other lanes in dy": backward(Rule.SGD, dy=np.zeros((10, 16), np.float32)),
        "momentum without momentum": backward(Rule.MOMENTUM),
        "nowhere to store": backward(Rule.STORE),
        "adam with one array": backward(Rule.ADAM, first=w.copy()),
        "short momentum": backward(Rule.MOMENTUM, first=w[:-1].copy()),
        "unknown rule": backward(99),
        "negative rule": backward(-1),
        "update of other size": lambda: kernels.update(Rule.SGD, w, b, Step(lr=1.0)),
        "derivative of other size": lambda: kernels.derive("relu", w, b.copy()),
        "dropout of 1": lambda: kernels.drop(1.0, w.copy(), seed=0),
        "dropout of nan": lambda: kernels.drop(np.nan, w.copy(), seed=0),
        "negative dropout": lambda: kernels.drop(-0.1, w.copy(), seed=0),
    }


@pytest.mark.parametrize("call", wrong_calls().values(), ids=wrong_calls().keys())
def test_mismatched_arrays_are_refused(call):
    with pytest.raises((ValueError, TypeError)):
        call()


def test_read_only_weights_are_refused():
    topology = Topology.full((2, 2))
    w, x = np.ones(4, np.float32), np.ones((2, 1), np.float32)
    w.flags.writeable = False
    with pytest.raises(TypeError):
        kernels.backward(topology, Rule.SGD, w, x, x, step=Step(lr=1.0))
    assert_array_equal(w, 1)


@pytest.mark.parametrize(("batch", "lanes"), [(1, 1), (2, 8), (8, 8), (9, 16), (40, 40)])
def test_padding_adds_columns_of_zeros(batch, lanes):
    rows = padded(np.ones((3, batch)))
    assert rows.shape == (3, lanes)
    assert rows.flags.c_contiguous
    assert_array_equal(rows[:, batch:], 0)

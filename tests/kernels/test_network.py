"""A network compared with its twin, which computes the same in float64 with NumPy."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from ratoon.kernels import (
    as_samples,
    available_isas,
    use_isa,
)
from tests.kernels.cases import RTOL
from tests.kernels.models import (
    BATCHES,
    EXTRAS,
    RULES,
    STEP,
    as_float64,
    data_for,
    exact_extras,
    models,
)


@pytest.mark.parametrize("isa", available_isas())
@given(
    model=models(),
    n=st.integers(1, 80),
    batch=BATCHES,
    rule=st.sampled_from(RULES),
    wanted=EXTRAS,
    annealed=st.booleans(),
    density=st.sampled_from([None, 0.0, 0.02, 0.1, 0.8]),
)
def test_training_agrees_with_its_twin(isa, model, n, batch, rule, wanted, annealed, density):
    x, targets, extras = data_for(model, n, **wanted)
    # Few and small steps: in a training about to diverge every rounding error grows with it.
    order = np.random.default_rng(1).permutation(n)[: 12 * batch]
    rates = [0.003 / (1 + k * annealed) for k in range(-(-order.size // batch))]
    steps = [replace(STEP, lr=rate) for rate in rates]
    if density is not None:
        x = scipy.sparse.csr_array(x * (np.random.default_rng(2).random(x.shape) < density))
        if "scaling" in extras:
            extras["scaling"] = replace(extras["scaling"], shift=None)
    twin, twin_network = model.twin()

    with use_isa(isa):
        outcome = model.native().train(
            as_samples(x, model.dtype),
            targets,
            order,
            batch,
            rule,
            steps,
            dropout_seed=3,
            first_step=5,
            **extras,
        )
        # Blocks, and with them the random numbers of dropout, depend on the instruction set.
        exact = twin_network.train(
            as_float64(x),
            as_float64(targets),
            order,
            batch,
            rule,
            steps,
            dropout_seed=3,
            first_step=5,
            **exact_extras(extras),
        )

    assert outcome.steps_done == exact.steps_done == len(steps)
    assert not outcome.diverged
    # Errors go through several layers and up to 12 steps, each of which may enlarge them.
    rtol = 20 * RTOL[model.dtype]
    assert_allclose(outcome.loss, exact.loss, rtol=rtol, atol=rtol)
    for actual, expected in zip(model.arrays(), twin.arrays(), strict=True):
        size = max(1.0, np.abs(expected).max(initial=0))
        assert_allclose(actual, expected, rtol=rtol, atol=rtol * size)


@given(model=models(), n=st.integers(1, 70), scaled=st.booleans(), data=st.data())
def test_predictions_agree_with_their_twin(model, n, scaled, data):
    x, _, extras = data_for(model, n, scaling=scaled)
    layer = data.draw(st.one_of(st.none(), st.integers(0, len(model.layers) - 1)))
    _, twin = model.twin()

    out = model.native().predict(as_samples(x, model.dtype), layer=layer, **extras)

    exact = twin.predict(as_float64(x), layer=layer, **exact_extras(extras))
    rtol = RTOL[model.dtype]
    assert_allclose(out, exact, rtol=rtol, atol=rtol * max(1, np.abs(exact).max()))


@given(model=models(), n=BATCHES, wanted=EXTRAS)
def test_gradients_agree_with_their_twin_and_change_nothing(model, n, wanted):
    x, targets, extras = data_for(model, n + 3, **wanted)
    order = np.random.default_rng(1).permutation(n + 3)[:n]
    _, twin = model.twin()
    before = model.bytes()
    place = {"dropout_seed": 3, "step": 7}

    loss, *gradients = model.native().gradients(
        as_samples(x, model.dtype), targets, order, **place, **extras
    )

    exact_loss, *exact = twin.gradients(
        as_float64(x), as_float64(targets), order, **place, **exact_extras(extras)
    )
    rtol = RTOL[model.dtype]
    assert_allclose(loss, exact_loss, rtol=rtol, atol=rtol)
    for arrays, exact_arrays in zip(gradients, exact, strict=True):
        for actual, expected in zip(arrays, exact_arrays, strict=True):
            size = max(1.0, np.abs(expected).max(initial=0))
            assert_allclose(actual, expected, rtol=rtol, atol=rtol * size)
    assert model.bytes() == before


@given(model=models(), n=BATCHES, wanted=EXTRAS, seed=st.integers(0, 99), step=st.integers(0, 99))
def test_signals_agree_with_their_twin_and_change_nothing(model, n, wanted, seed, step):
    x, targets, extras = data_for(model, n + 3, **wanted)
    when = {"dropout_seed": seed, "step": step}
    order = np.random.default_rng(1).permutation(n + 3)[:n]
    _, twin = model.twin()
    before = model.bytes()

    signals = model.native().signals(as_samples(x, model.dtype), targets, order, **extras, **when)

    exact = twin.signals(as_float64(x), as_float64(targets), order, **exact_extras(extras), **when)
    rtol = RTOL[model.dtype]
    for pair, exact_pair in zip(signals, exact, strict=True):
        for actual, expected in zip(pair, exact_pair, strict=True):
            size = max(1.0, np.abs(expected).max())
            assert_allclose(actual, expected, rtol=rtol, atol=rtol * size)
    assert model.bytes() == before

"""All references do the same work: the same losses, step by step."""

from __future__ import annotations

import numpy as np
import pytest
from common.models import Model
from references import REFERENCES, is_available, reference_class
from references.start import samples_of, start_of

from tests.processes import LOOKS_FOR_RACES

MODEL = Model("tiny", (60, 40, 30, 4), batch=5, learning_rate=0.05, epsilon=3.0)
N_STEPS = 8

OTHERS = [name for name in REFERENCES if name != "ratoon"]


def skip_if_it_cannot_run(name):
    if not is_available(name):
        pytest.skip(f"{name} is not installed")
    if LOOKS_FOR_RACES and "numba" in name:
        pytest.skip("finds races in the waiting of numba's threads, which it cannot see")


def losses(name, model):
    x, targets = samples_of(model, N_STEPS * model.batch)
    reference = reference_class(name)(start_of(model))
    return [
        reference.step(x[at : at + model.batch], targets[at : at + model.batch])
        for at in range(0, x.shape[0], model.batch)
    ]


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("batch", [1, 5, 16])
def test_all_references_have_the_losses_of_ratoon(name, batch):
    skip_if_it_cannot_run(name)
    if not reference_class(name).takes_start:
        pytest.skip(f"{name} begins with weights of its own")
    model = Model("tiny", MODEL.widths, batch=batch, learning_rate=0.05, epsilon=3.0)

    ours = losses("ratoon", model)

    # Float32 sums in another order differ in the seventh digit; eight steps stay far below the
    # tolerance.
    np.testing.assert_allclose(losses(name, model), ours, rtol=1e-4)
    assert np.std(ours) > 1e-3, "losses that never change would agree by themselves"


@pytest.mark.parametrize("name", OTHERS)
def test_hidden_layers_alone_change_the_hidden_weights_alike(name):
    skip_if_it_cannot_run(name)
    rng = np.random.default_rng(3)
    x, targets = samples_of(MODEL, MODEL.batch)
    error = rng.standard_normal((MODEL.batch, MODEL.widths[-2])).astype(np.float32)

    def loss_after_hidden_steps(name):
        reference = reference_class(name)(start_of(MODEL))
        for _ in range(3):
            reference.hidden_step(reference.enter(x), reference.enter(error))
        return reference.step(x, targets)

    try:
        found = loss_after_hidden_steps(name)
    except NotImplementedError:
        pytest.skip(f"{name} cannot be taken apart")
    assert found == pytest.approx(loss_after_hidden_steps("ratoon"), rel=1e-4)


def test_a_dense_reference_is_not_tried_where_it_cannot_fit():
    huge = Model("huge", (10**6, 10**6, 2), batch=1)
    assert "GB" in reference_class("scikit-learn MLPClassifier").why_not(huge, 8e9)
    assert reference_class("SciPy + NumPy").why_not(huge, 8e9) is None

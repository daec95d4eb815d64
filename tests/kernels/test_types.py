import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon import _native
from ratoon.errors import InvalidInputError
from ratoon.kernels import ACTIVATIONS, LOSSES, Rule, Scaling, Step, reference
from ratoon.kernels.types import (
    ACTIVATION_NUMBERS,
    DERIVED_FROM_INPUT,
    LOSS_NUMBERS,
    checked_dtype,
)
from ratoon.optimizers import OPTIMIZERS


@pytest.mark.parametrize("dtype", [np.float32, "float64", float, np.dtype("f4"), "<f8"])
def test_networks_compute_in_float32_or_float64(dtype):
    assert checked_dtype(dtype) == np.dtype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, int, "c16", ">f4", np.longdouble, "U3", object])
def test_other_number_types_are_refused(dtype):
    with pytest.raises(InvalidInputError, match="float32 or float64"):
        checked_dtype(dtype)


def test_converted_scaling_has_no_steps_that_the_original_has_not():
    scaling = Scaling(shift=np.arange(3.0), clip=5.0).of_type(np.float32)
    assert scaling.shift.dtype == np.float32
    assert_array_equal(scaling.shift, [0, 1, 2])
    assert scaling.scale is None
    assert scaling.clip == 5.0


def test_steps_are_equal_by_value():
    assert Step(lr=0.1, mu=0.9) == Step(lr=0.1, mu=0.9)
    assert len({Step(lr=0.1), Step(lr=0.1), Step(lr=0.2)}) == 2


def test_compiled_code_and_the_tables_have_the_same_activations_and_losses():
    assert list(ACTIVATION_NUMBERS) == list(ACTIVATIONS)
    assert list(LOSS_NUMBERS) == list(LOSSES)
    assert DERIVED_FROM_INPUT == reference.DERIVED_FROM_INPUT


def test_rules_have_the_numbers_and_arrays_of_compiled_code():
    assert [rule.name.lower() for rule in Rule] == [name for name, _ in _native.rules()]
    assert [int(rule) for rule in Rule] == list(range(len(_native.rules())))


@pytest.mark.parametrize("kind", OPTIMIZERS.values())
def test_optimizers_keep_as_many_arrays_as_their_rule(kind):
    optimizer = kind()
    assert _native.rules()[optimizer.rule] == (optimizer.rule.name.lower(), optimizer.n_states)

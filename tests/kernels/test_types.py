import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidInputError
from ratoon.kernels import Scaling, Step
from ratoon.kernels.types import checked_dtype


@pytest.mark.parametrize("dtype", [np.float32, "float64", float, np.dtype("f4"), "<f8"])
def test_networks_compute_in_float32_or_float64(dtype):
    assert checked_dtype(dtype) == np.dtype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, int, "c16", ">f4", np.longdouble, "U3", object])
def test_other_number_types_are_refused(dtype):
    with pytest.raises(InvalidInputError, match="float32 or float64"):
        checked_dtype(dtype)


def test_scaling_of_another_type_leaves_out_what_was_left_out():
    scaling = Scaling(shift=np.arange(3.0), clip=5.0).of_type(np.float32)
    assert scaling.shift.dtype == np.float32
    assert_array_equal(scaling.shift, [0, 1, 2])
    assert scaling.scale is None
    assert scaling.clip == 5.0


def test_steps_are_equal_by_value():
    assert Step(lr=0.1, mu=0.9) == Step(lr=0.1, mu=0.9)
    assert len({Step(lr=0.1), Step(lr=0.1), Step(lr=0.2)}) == 2

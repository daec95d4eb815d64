import numpy as np
import pytest

from ratoon import errors


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.InvalidParameterError, ValueError),
        (errors.InvalidInputError, ValueError),
        (errors.FormatError, ValueError),
        (errors.DivergenceError, ArithmeticError),
        (errors.AlreadyTrainingError, RuntimeError),
        (errors.NotEnoughMemoryError, MemoryError),
    ],
)
def test_each_error_can_be_caught_as_ours_and_as_the_builtin(error, builtin):
    with pytest.raises(errors.RatoonError):
        raise error("message")
    with pytest.raises(builtin):
        raise error("message")


@pytest.mark.parametrize("value", [0, 0.0, 0.3, np.float32(0.5), np.nextafter(1.0, 0.0)])
def test_a_fraction_is_accepted(value):
    errors.check_fraction("zeta", value, owner="SET")


@pytest.mark.parametrize(
    "value",
    [1, 1.0, -1e-9, float("nan"), float("inf"), "0.3", None, 0.3j, np.array([0.1, 0.2])],
)
def test_other_values_are_refused_by_name(value):
    with pytest.raises(errors.InvalidParameterError, match=r"^SET: `zeta` must be in \[0, 1\)"):
        errors.check_fraction("zeta", value, owner="SET")

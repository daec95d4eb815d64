"""Arrays of other libraries, taken over without a copy through DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.errors import InvalidInputError

_CPU = 1


def as_numpy(values: Any, name: str) -> Any:
    """Return an array of PyTorch, JAX or another Array API library as one of NumPy.

    The memory is shared.  What is not such an array is returned as it is.

    Parameters
    ----------
    values : object
        Anything a user passes as samples, targets or weights.
    name : str
        What it is called in messages.

    Raises
    ------
    InvalidInputError
        If the array is not in the memory of the processor, or cannot be shared.

    Examples
    --------
    A tensor is shared, not copied::

        x = torch.ones(2, 3)
        as_numpy(x, "X")[0, 0] = 7.0  # also changes x
    """
    kind = type(values)
    root = kind.__module__.split(".")[0]
    is_other = hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__")
    if not is_other or root in ("numpy", "pyarrow", "polars", "pandas"):
        return values
    try:
        device = int(values.__dlpack_device__()[0])
    except Exception as error:  # of any library: sparse tensors, tensors that are not strided
        raise _refusal(values, name, error) from None
    if device != _CPU:
        raise InvalidInputError(
            f"`{name}` is an array of {root} on another device, and ratoon computes on the CPU.\n"
            f"  Copy it to the CPU first, for example with {name}.cpu()."
        )
    if getattr(values, "requires_grad", False):
        values = values.detach()  # shares the memory; no gradient flows into a fit
    try:
        return np.from_dlpack(values)
    except Exception as error:  # such as a number type that NumPy lacks
        raise _refusal(values, name, error) from None


def _refusal(values: Any, name: str, error: Exception) -> InvalidInputError:
    kind = f"{type(values).__module__.split('.')[0]} {type(values).__name__}"
    return InvalidInputError(
        f"`{name}`, a {kind} of {getattr(values, 'dtype', 'unknown type')}, cannot be shared with"
        f" NumPy: {str(error)[:200]}\n"
        f"  Convert it to a dense array of float32 or float64 first."
    )

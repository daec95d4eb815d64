"""Types and numbers that compiled code and Python share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ratoon import _native
from ratoon.errors import InvalidInputError

LANES = 8
"""Samples that travel together through a kernel."""


def block_lanes(widest: int) -> int:
    """Return the samples computed together in layers of at most ``widest`` neurons.

    Wider minibatches are split into blocks: the rows of a layer then still fit the cache.  Without
    AVX-512 wide blocks gain nothing.

    Examples
    --------
    >>> block_lanes(50_000)
    32
    """
    lanes = 128 if _native.isa_in_use() == "avx512" else 32
    while lanes > 32 and widest * lanes > 2**18:
        lanes //= 2
    return lanes


def passes_by_runs(n_in: int, n_out: int, n_connections: int, *, lanes: int, itemsize: int) -> bool:
    """Whether a layer has its connections a second time, output by output and input by input.

    That is so on processors whose registers hold eight lanes: AVX-512, and AVX2 for float32.
    """
    most = 2**18 if lanes < 64 else 2**32 - 1
    fits = max(n_in, n_out) * min(lanes, 128) * itemsize <= 2**22
    return lanes >= 32 and n_connections <= most and fits


ACTIVATION_NUMBERS = {name: number for number, (name, _) in enumerate(_native.activations())}
"""What compiled code calls the activations of `ratoon.activations`."""

DERIVED_FROM_INPUT = frozenset(name for name, from_input in _native.activations() if from_input)
"""Activations whose derivative is computed from their input; of others, from their output."""

LOSS_NUMBERS = {name: number for number, name in enumerate(_native.losses())}
"""Number of every loss in compiled code."""


class Rule(IntEnum):
    """How a gradient updates a connection; the numbers are those of ``native/rules.hpp``."""

    STORE = 0
    SGD = 1
    MOMENTUM = 2
    NESTEROV = 3
    ADAM = 4
    RMSPROP = 5


@dataclass(frozen=True)
class Step:
    """Hyperparameters of one minibatch; ``native/rules.hpp`` has the formula of every rule.

    ``l2`` is added to the gradient as ``l2 * w``; ``shrink`` is the fraction of a weight taken
    away at each step, independent of the learning rate, and ``shrink_bias`` that of a bias.
    """

    lr: float
    mu: float = 0.0
    l2: float = 0.0
    shrink: float = 0.0
    beta2: float = 0.0
    adam_eps: float = 0.0
    correction: float = 1.0
    shrink_bias: float = 0.0

    def of_biases(self) -> Step:
        """Return the step that biases take.

        Examples
        --------
        >>> step = Step(lr=0.1, l2=0.5, shrink=0.3, shrink_bias=0.2).of_biases()
        >>> step.l2, step.shrink
        (0.0, 0.2)
        """
        return replace(self, l2=0.0, shrink=self.shrink_bias)

    def native(self, dtype: DTypeLike) -> Any:
        """Return the same for kernels of this number type."""
        kind = _native.StepF64 if np.dtype(dtype) == np.float64 else _native.StepF32
        return kind(
            self.lr,
            self.mu,
            self.l2,
            self.shrink,
            self.beta2,
            self.adam_eps,
            self.correction,
            self.shrink_bias,
        )


@dataclass(frozen=True, eq=False)
class Scaling:
    """How a sample is read: ``z = clip((x - shift) * scale)``, feature by feature.

    Applied while a minibatch is gathered, so the samples themselves are never copied or changed.
    """

    shift: NDArray[Any] | None = None
    scale: NDArray[Any] | None = None
    clip: float = 0.0

    def of_type(self, dtype: DTypeLike) -> Scaling:
        """Return the same with arrays of this number type."""
        return Scaling(
            None if self.shift is None else np.ascontiguousarray(self.shift, dtype=dtype),
            None if self.scale is None else np.ascontiguousarray(self.scale, dtype=dtype),
            self.clip,
        )


def is_bfloat16(dtype: Any) -> bool:
    """Whether weights are to be kept in bfloat16."""
    return isinstance(dtype, str) and dtype == "bfloat16"


def checked_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the type a network computes in, which is float32 or float64.

    With weights in bfloat16 everything else is float32.
    """
    kind = np.dtype(np.float32 if is_bfloat16(dtype) else dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise InvalidInputError(f"networks compute in float32 or float64, not {kind}.")
    return kind

"""SGD and Adam: the native rule, the number of state arrays, and the parameters of each step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from ratoon.errors import InvalidParameterError, check_fraction
from ratoon.kernels import Rule, Step

DECAYS = ("coupled", "released")


class Optimizer(Protocol):
    """The interface of optimizers."""

    @property
    def rule(self) -> Rule:
        """The native rule."""
        ...

    @property
    def n_states(self) -> int:
        """The number of state arrays per connection."""
        ...

    def step(self, lr: float, number: int) -> Step:
        """Return the parameters of step ``number``, counted from 0."""
        ...


def _check_decay(weight_decay: float, owner: str) -> None:
    if not 0.0 <= weight_decay < math.inf:
        raise InvalidParameterError(
            f"{owner}: `weight_decay` must not be negative, got {weight_decay!r}."
        )


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent with momentum.

    Parameters
    ----------
    momentum : float, default=0.9
        Decay of past gradients; 0 stores no momentum and saves its memory.
    nesterov : bool, default=False
        Whether to use Nesterov momentum.
    weight_decay : float, default=0.0
        Strength of the decay of weights towards 0.
    decay : {"coupled", "released"}, default="coupled"
        ``"coupled"`` adds ``weight_decay * w`` to the gradient, so that it scales with the
        learning rate.  ``"released"`` subtracts ``weight_decay * w`` at every step, independent
        of the learning rate, as the released SET code does.
    """

    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0
    decay: str = "coupled"

    def __post_init__(self) -> None:
        check_fraction("momentum", self.momentum, owner="SGD")
        _check_decay(self.weight_decay, "SGD")
        if self.decay not in DECAYS:
            raise InvalidParameterError(
                f"SGD: `decay` must be one of {DECAYS}, got {self.decay!r}."
            )

    @property
    def rule(self) -> Rule:
        """The native rule."""
        if self.momentum == 0.0:
            return Rule.SGD
        return Rule.NESTEROV if self.nesterov else Rule.MOMENTUM

    @property
    def n_states(self) -> int:
        """1 for momentum, 0 without."""
        return 0 if self.momentum == 0.0 else 1

    def step(self, lr: float, number: int) -> Step:
        """Return the parameters of one step."""
        del number
        if self.decay == "released":
            return Step(lr, mu=self.momentum, shrink=self.weight_decay)
        return Step(lr, mu=self.momentum, l2=self.weight_decay)


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba, ICLR 2015), with decoupled weight decay (AdamW).

    Parameters
    ----------
    beta_1, beta_2 : float
        Decay of the two moments.
    adam_eps : float
        Added to the root of the second moment.  Not the ``epsilon`` of SET.
    weight_decay : float
        Each step subtracts ``learning_rate * weight_decay * w``.
    """

    beta_1: float = 0.9
    beta_2: float = 0.999
    adam_eps: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        check_fraction("beta_1", self.beta_1, owner="Adam")
        check_fraction("beta_2", self.beta_2, owner="Adam")
        _check_decay(self.weight_decay, "Adam")
        if not self.adam_eps > 0:
            raise InvalidParameterError(
                f"Adam: `adam_eps` must be positive, got {self.adam_eps!r}."
            )

    @property
    def rule(self) -> Rule:
        """The native rule."""
        return Rule.ADAM

    @property
    def n_states(self) -> int:
        """2: the first and the second moment."""
        return 2

    def step(self, lr: float, number: int) -> Step:
        """Return the parameters of one step, including bias corrections."""
        first = 1.0 - self.beta_1 ** (number + 1)
        second = 1.0 - self.beta_2 ** (number + 1)
        return Step(
            lr / first,
            mu=self.beta_1,
            shrink=lr * self.weight_decay,
            beta2=self.beta_2,
            adam_eps=self.adam_eps,
            correction=1.0 / math.sqrt(second),
        )

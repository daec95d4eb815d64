"""Optimizers: which native rule, how many arrays of state, and one `Step` per minibatch.

A new one needs a class here and an entry in `OPTIMIZERS`, a rule in ``native/rules.hpp``, its
number in `ratoon.kernels.Rule` and its twin in `ratoon.kernels.reference`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol

from ratoon.errors import InvalidParameterError, check_field_types, check_fraction, near
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


class NamedOptimizer(Optimizer, Protocol):
    """An optimizer that can be chosen by name."""

    default_learning_rate: ClassVar[float]
    """What estimators use where no learning rate is given."""


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
        learning rate; biases do not decay.  ``"released"`` subtracts ``weight_decay * w`` at every
        step, independent of the learning rate, and decays biases too, as the released SET code
        does.
    """

    default_learning_rate: ClassVar[float] = 0.01

    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0
    decay: str = "coupled"

    def __post_init__(self) -> None:
        check_field_types(self)
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
            decay = self.weight_decay
            return Step(lr, mu=self.momentum, shrink=decay, shrink_bias=decay)
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

    default_learning_rate: ClassVar[float] = 1e-3

    beta_1: float = 0.9
    beta_2: float = 0.999
    adam_eps: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        check_field_types(self)
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


@dataclass(frozen=True)
class RMSprop:
    """Adam without its first moment: one array per connection instead of two.

    The square root of a running mean of squared gradients divides the gradient (Tieleman and
    Hinton, 2012).  As in Adam the mean is corrected for its start at 0, and weight decay is
    decoupled.

    Parameters
    ----------
    beta_2 : float, default=0.99
        How slowly the mean of squares forgets.
    adam_eps : float, default=1e-8
        Added to the root.  Not SET's ``epsilon``.
    weight_decay : float, default=0.0
        Fraction of a weight lost per step, times the learning rate.

    Examples
    --------
    >>> RMSprop().n_states
    1
    """

    default_learning_rate: ClassVar[float] = 1e-3

    beta_2: float = 0.99
    adam_eps: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        check_field_types(self)
        check_fraction("beta_2", self.beta_2, owner="RMSprop")
        _check_decay(self.weight_decay, "RMSprop")
        if not self.adam_eps > 0:
            raise InvalidParameterError(
                f"RMSprop: `adam_eps` must be positive, got {self.adam_eps!r}."
            )

    @property
    def rule(self) -> Rule:
        """The native rule."""
        return Rule.RMSPROP

    @property
    def n_states(self) -> int:
        """The mean of squares."""
        return 1

    def step(self, lr: float, number: int) -> Step:
        """Return the hyperparameters of one step, bias correction included."""
        return Step(
            lr,
            shrink=lr * self.weight_decay,
            beta2=self.beta_2,
            adam_eps=self.adam_eps,
            correction=1.0 / math.sqrt(1.0 - self.beta_2 ** (number + 1)),
        )


OPTIMIZERS: dict[str, type[NamedOptimizer]] = {"sgd": SGD, "adam": Adam, "rmsprop": RMSprop}
"""Optimizers by the name that estimators know them by."""


def make_optimizer(name: str, parameters: Mapping[str, Any]) -> Optimizer:
    """Return the optimizer of that name, with those of the parameters that it has.

    Examples
    --------
    >>> make_optimizer("adam", {"momentum": 0.5, "beta_1": 0.8, "weight_decay": 0.1})
    Adam(beta_1=0.8, beta_2=0.999, adam_eps=1e-08, weight_decay=0.1)
    """
    if name not in OPTIMIZERS:
        raise InvalidParameterError(
            f"an optimizer must be one of {tuple(OPTIMIZERS)}, got {name!r}."
            f"{near(name, OPTIMIZERS)}"
        )
    kind: Any = OPTIMIZERS[name]
    names = {field.name for field in fields(kind)}
    return kind(**{key: value for key, value in parameters.items() if key in names})  # type: ignore[no-any-return]

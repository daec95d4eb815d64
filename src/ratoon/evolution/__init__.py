"""Evolution: strategies that change which connections a network has while it trains."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

from ratoon.errors import InvalidParameterError
from ratoon.evolution.base import InPlaceStrategy as InPlaceStrategy
from ratoon.evolution.base import LayerState as LayerState
from ratoon.evolution.base import LayerwiseStrategy as LayerwiseStrategy
from ratoon.evolution.base import Reweighted as Reweighted
from ratoon.evolution.base import Scheduled as Scheduled
from ratoon.evolution.base import ScheduledFraction as ScheduledFraction
from ratoon.evolution.base import State as State
from ratoon.evolution.base import StatefulStrategy as StatefulStrategy
from ratoon.evolution.base import Strategy as Strategy
from ratoon.evolution.base import layer_seed as layer_seed
from ratoon.evolution.base import rewire_from as rewire_from
from ratoon.evolution.base import start_state as start_state
from ratoon.evolution.base import watched_steps as watched_steps
from ratoon.evolution.clock import Clock as Clock
from ratoon.evolution.clock import RewiringSchedule as RewiringSchedule
from ratoon.evolution.contrib.deep_r import DeepR as DeepR
from ratoon.evolution.contrib.dsr import DSR as DSR
from ratoon.evolution.contrib.granet import GraNet as GraNet
from ratoon.evolution.contrib.gse import GSE as GSE
from ratoon.evolution.contrib.lottery import find_ticket as find_ticket
from ratoon.evolution.contrib.mest import MEST as MEST
from ratoon.evolution.contrib.nest import NeST as NeST
from ratoon.evolution.contrib.neurofs import NeuroFS as NeuroFS
from ratoon.evolution.contrib.neuron_pruning import NeuronPruning as NeuronPruning
from ratoon.evolution.contrib.srigl import SRigL as SRigL
from ratoon.evolution.contrib.wast import WAST as WAST
from ratoon.evolution.guided import GuidedSET as GuidedSET
from ratoon.evolution.rigl import RigL as RigL
from ratoon.evolution.set import SET as SET
from ratoon.evolution.set import annealed_set as annealed_set
from ratoon.evolution.snfs import SNFS as SNFS
from ratoon.evolution.static import Static as Static

STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "set": SET,
    "annealed_set": annealed_set,
    "guided_set": GuidedSET,
    "static": Static,
    "rigl": RigL,
    "srigl": SRigL,
    "gse": GSE,
    "snfs": SNFS,
    "mest": MEST,
    "dsr": DSR,
    "granet": GraNet,
    "deep_r": DeepR,
    "nest": NeST,
    "neuron_pruning": NeuronPruning,
    "wast": WAST,
    "neurofs": NeuroFS,
}
"""Every strategy by name.  The contract suite runs over all of them."""


def register(name: str, make: Callable[..., Strategy]) -> None:
    """Make a strategy available by name, as ``evolution="name"``.

    Examples
    --------
    >>> register("gentle", lambda: SET(zeta=0.05))
    >>> make_strategy("gentle").zeta
    0.05
    >>> del STRATEGIES["gentle"]
    """
    STRATEGIES[name] = make


def parameters_of(name: str) -> tuple[str, ...]:
    """Return the names of the parameters that a named strategy accepts.

    Examples
    --------
    >>> parameters_of("annealed_set"), parameters_of("static")
    (('zeta',), ())
    """
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    accepted = signature(STRATEGIES[name]).parameters.values()
    return tuple(parameter.name for parameter in accepted if parameter.kind in kinds)


def make_strategy(strategy: str | Strategy, **given: Any) -> Strategy:
    """Return the strategy of that name, or the strategy itself.

    Parameters
    ----------
    strategy : str or Strategy
        A name of `STRATEGIES`, or a strategy object, which is returned as it is.
    **given
        Parameters of the named strategy; those not given have its defaults.

    Raises
    ------
    InvalidParameterError
        If the name is unknown, or the strategy does not have one of the parameters.

    Examples
    --------
    >>> make_strategy("rigl", zeta=0.1).zeta
    0.1
    >>> make_strategy("static", zeta=0.1)
    Traceback (most recent call last):
    ...
    ratoon.errors.InvalidParameterError: `zeta=0.1` was given, but the strategy 'static' has no
    parameter `zeta`; it has no parameters.
    """
    if not isinstance(strategy, str):
        if given:
            names = ", ".join(f"`{name}={value!r}`" for name, value in given.items())
            raise InvalidParameterError(
                f"{names} was given, but {strategy!r} is a strategy object with parameters of its"
                f" own.\n  Set the parameter where the object is made."
            )
        return strategy
    if strategy not in STRATEGIES:
        raise InvalidParameterError(
            f"`evolution` must be a strategy or one of {tuple(STRATEGIES)}, got {strategy!r}."
        )
    accepted = parameters_of(strategy)
    for name, value in given.items():
        if name not in accepted:
            has = f"it has {', '.join(accepted)}" if accepted else "it has no parameters"
            raise InvalidParameterError(
                f"`{name}={value!r}` was given, but the strategy {strategy!r} has no parameter"
                f" `{name}`; {has}."
            )
    return STRATEGIES[strategy](**given)

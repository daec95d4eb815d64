"""Evolution: strategies that change which connections a network has while it trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any

from ratoon.errors import InvalidParameterError, near
from ratoon.evolution import plugins
from ratoon.evolution.base import InPlaceStrategy as InPlaceStrategy
from ratoon.evolution.base import Keeps as Keeps
from ratoon.evolution.base import LayerState as LayerState
from ratoon.evolution.base import LayerwiseStrategy as LayerwiseStrategy
from ratoon.evolution.base import Neighbours as Neighbours
from ratoon.evolution.base import Reweighted as Reweighted
from ratoon.evolution.base import RewiringHasNoEffectWarning as RewiringHasNoEffectWarning
from ratoon.evolution.base import Scheduled as Scheduled
from ratoon.evolution.base import ScheduledFraction as ScheduledFraction
from ratoon.evolution.base import State as State
from ratoon.evolution.base import StatefulStrategy as StatefulStrategy
from ratoon.evolution.base import Strategy as Strategy
from ratoon.evolution.base import keeps_of as keeps_of
from ratoon.evolution.base import layer_seed as layer_seed
from ratoon.evolution.base import promised as promised
from ratoon.evolution.base import rewire_from as rewire_from
from ratoon.evolution.base import rewires_full_layers as rewires_full_layers
from ratoon.evolution.base import start_state as start_state
from ratoon.evolution.base import warn_if_all_full as warn_if_all_full
from ratoon.evolution.base import watched_steps as watched_steps
from ratoon.evolution.clock import Clock as Clock
from ratoon.evolution.clock import RewiringSchedule as RewiringSchedule
from ratoon.evolution.contrib.cht import CHT as CHT
from ratoon.evolution.contrib.cht import CHTs as CHTs
from ratoon.evolution.contrib.cht import CHTss as CHTss
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
from ratoon.evolution.plugins import StrategyNameWarning as StrategyNameWarning
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
    "cht": CHT,
    "chts": CHTs,
    "chtss": CHTss,
    "mest": MEST,
    "dsr": DSR,
    "granet": GraNet,
    "deep_r": DeepR,
    "nest": NeST,
    "neuron_pruning": NeuronPruning,
    "wast": WAST,
    "neurofs": NeuroFS,
}
"""Every strategy of this package and every registered one by name.

The contract suite runs over all of them.
"""

BUILT_IN = frozenset(STRATEGIES)
"""The names of the strategies of this package."""


def register(name: str, make: Callable[..., Strategy]) -> None:
    """Make a strategy available by name in this process, as ``evolution="name"``.

    A package makes its strategies available everywhere by entry points in the group
    ``ratoon.strategies``.

    Examples
    --------
    >>> register("gentle", lambda: SET(zeta=0.05))
    >>> make_strategy("gentle").zeta
    0.05
    >>> del STRATEGIES["gentle"]
    """
    STRATEGIES[name] = make


def strategy_names() -> tuple[str, ...]:
    """Return the names of all strategies: built-in, registered, and those of other packages.

    Examples
    --------
    >>> "rigl" in strategy_names()
    True
    """
    return tuple(dict.fromkeys([*STRATEGIES, *plugins.installed_names()]))


def is_known(name: str) -> bool:
    """Return whether there is a strategy of that name; nothing is imported.

    Examples
    --------
    >>> is_known("rigl"), is_known("rigel")
    (True, False)
    """
    return name in STRATEGIES or name in plugins.installed_names()


def maker_of(name: str) -> Callable[..., Strategy]:
    """Return the class or function that makes the strategies of a name.

    A name of `STRATEGIES` comes first.  Other names are looked up in the entry points
    ``ratoon.strategies`` of installed packages.

    Raises
    ------
    InvalidParameterError
        If the name is unknown, or its package cannot be imported.
    """
    if name in STRATEGIES:
        if name in BUILT_IN:
            plugins.warn_of_clash(name, STRATEGIES[name])
        return STRATEGIES[name]
    entry = plugins.find_entry(name)
    if entry is not None:
        return plugins.load_entry(entry)
    hint = ""
    if ":" in name or "(" in name:
        hint = "\n  To use a class, import it and pass an object, such as `evolution=MyClass()`."
    raise InvalidParameterError(
        f"`evolution` must be a strategy or one of {strategy_names()}, got {name!r}."
        f"{hint or near(name, strategy_names())}"
    )


def parameters_of(name: str) -> tuple[str, ...]:
    """Return the names of the parameters that a named strategy accepts.

    Examples
    --------
    >>> parameters_of("annealed_set"), parameters_of("static")
    (('zeta',), ())
    """
    return _parameters(maker_of(name))


def _parameters(make: Callable[..., Strategy]) -> tuple[str, ...]:
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    accepted = signature(make).parameters.values()
    return tuple(parameter.name for parameter in accepted if parameter.kind in kinds)


def make_strategy(strategy: str | Strategy, **given: Any) -> Strategy:
    """Return the strategy of that name, or the strategy itself.

    Parameters
    ----------
    strategy : str or Strategy
        A name of `strategy_names`, or a strategy object, which is returned as it is.
    **given
        Parameters of the named strategy; those not given have its defaults.

    Raises
    ------
    InvalidParameterError
        If the name is unknown, its package cannot be imported, or the strategy does not have one
        of the parameters.

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
    return _make(strategy, maker_of(strategy), given)


def strategy_from_text(text: str) -> Strategy:
    """Return the strategy in a text of the user: a name or import path, with parameters or without.

    An import path runs the code of its module.  Never call this with text from a file of others.

    Raises
    ------
    InvalidParameterError
        If the text has another form, or the strategy is unknown or does not have one of the
        parameters.

    Examples
    --------
    >>> strategy_from_text("rigl(zeta=0.1)").zeta
    0.1
    >>> strategy_from_text("ratoon.evolution.contrib.dsr:DSR(every=50)").schedule.every
    50
    """
    name, given = plugins.parse_strategy(text)
    make = plugins.load_path(name) if plugins.is_path(name) else maker_of(name)
    return _make(name, make, given)


def _make(name: str, make: Callable[..., Strategy], given: Mapping[str, Any]) -> Strategy:
    accepted = _parameters(make)
    for parameter, value in given.items():
        if parameter not in accepted:
            has = f"it has {', '.join(accepted)}" if accepted else "it has no parameters"
            raise InvalidParameterError(
                f"`{parameter}={value!r}` was given, but the strategy {name!r} has no parameter"
                f" `{parameter}`; {has}.{near(parameter, accepted)}"
            )
    if name in STRATEGIES:
        return make(**given)
    try:
        made = make(**given)
    except TypeError as error:
        raise InvalidParameterError(f"the strategy {name!r} cannot be made: {error}.") from error
    for part in ("schedule", "rewire"):
        if not hasattr(made, part):
            raise InvalidParameterError(
                f"{name!r} is not a strategy: {type(made).__name__} has no `{part}`."
            )
    return made

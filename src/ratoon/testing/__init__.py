"""Checks for strategies of your own: run them once, or as tests with pytest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, cast, overload

from ratoon.evolution import Strategy
from ratoon.testing.checks import CHECKS, Check

StrategyOrClass = Strategy | Callable[[], Strategy]


@overload
def check_strategy(strategy: StrategyOrClass, *, generate_only: Literal[False] = False) -> None: ...


@overload
def check_strategy(
    strategy: StrategyOrClass, *, generate_only: Literal[True]
) -> Iterator[tuple[Strategy, Callable[[], None]]]: ...


def check_strategy(
    strategy: StrategyOrClass, *, generate_only: bool = False
) -> Iterator[tuple[Strategy, Callable[[], None]]] | None:
    """Check that a strategy keeps the promises that training relies on.

    The layers are small and made from fixed seeds; all checks take a few seconds.  The last one
    rewires layers of 200,000 x 200,000 within 256 megabytes, in a child process, on Linux only.

    Parameters
    ----------
    strategy : strategy or class
        A strategy object, or a class (or function) that makes one without arguments.  Choose
        parameters with which it has something to do.
    generate_only : bool, default=False
        Instead of running the checks, return an iterator of pairs: the strategy, and a function
        without arguments that runs one check.

    Raises
    ------
    AssertionError
        If a promise is broken.  The message says which, and how to reproduce it.

    Examples
    --------
    >>> from ratoon.evolution import SET
    >>> check_strategy(SET(zeta=0.1))
    """
    made = _made(strategy)
    if generate_only:
        return ((made, partial(run_check, made, check)) for check in CHECKS)
    for check in CHECKS:
        run_check(made, check)
    return None


def parametrize_with_checks(strategies: Sequence[StrategyOrClass]) -> Any:
    """Return a decorator that makes one pytest test per strategy and check.

    The test has the parameters ``strategy`` and ``check``, and calls ``check(strategy)``.

    Examples
    --------
    >>> from ratoon.evolution import SET
    >>> @parametrize_with_checks([SET(zeta=0.1)])
    ... def test_my_strategies(strategy, check):
    ...     check(strategy)
    """
    import pytest

    cases = [
        pytest.param(made, _reporting(check), id=f"{type(made).__name__}-{check.__name__}")
        for made in map(_made, strategies)
        for check in CHECKS
    ]
    return pytest.mark.parametrize(("strategy", "check"), cases)


def run_check(strategy: Strategy, check: Check) -> None:
    """Run one check of `ratoon.testing.checks`.

    Raises
    ------
    AssertionError
        If the promise is broken, or the strategy raises an error.
    """
    try:
        check(strategy)
    except AssertionError as error:
        raise AssertionError(_message(strategy, check, str(error))) from None
    except Exception as error:
        text = f"it raised {type(error).__name__}: {error}"
        raise AssertionError(_message(strategy, check, text)) from error


def promise_of(check: Check) -> str:
    """Return what a check checks, as in its docstring.

    Examples
    --------
    >>> from ratoon.testing import checks
    >>> promise_of(checks.leaves_global_random_numbers_alone)
    'random numbers come from the seed, not from a global generator.'
    """
    return (check.__doc__ or "").splitlines()[0].removeprefix("Check that ")


def _made(strategy: StrategyOrClass) -> Strategy:
    if isinstance(strategy, type) or not hasattr(strategy, "rewire"):
        return _called(cast(Callable[[], Strategy], strategy))
    return cast(Strategy, strategy)


def _called(strategy: Callable[[], Strategy]) -> Strategy:
    try:
        return strategy()
    except TypeError as error:
        raise AssertionError(
            f"{strategy!r} cannot be called without arguments: {error}\n"
            f"  Give all parameters defaults, or pass a strategy object."
        ) from error


def _reporting(check: Check) -> Check:
    return partial(_run, check)


def _run(check: Check, strategy: Strategy) -> None:
    run_check(strategy, check)


def _message(strategy: Strategy, check: Check, text: str) -> str:
    name = f"{check.__module__}.{check.__name__}"
    promise = promise_of(check)
    return (
        f"{strategy!r}: {text}.\n"
        f"  A strategy must promise that {promise}\n"
        f"  To reproduce: import {check.__module__}; {name}(strategy)"
    )

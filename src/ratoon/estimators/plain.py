"""Constructor parameters as JSON values, and back.

Only objects of listed classes can be read: a file cannot name code to run.  A strategy of another
package is stored with the path of its class.  It is read if the class is registered or installed
under an entry point; otherwise a `MissingStrategy` takes its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from ratoon.errors import FormatError, InvalidParameterError, RatoonError
from ratoon.evolution import (
    BUILT_IN,
    STRATEGIES,
    Clock,
    LayerState,
    RewiringSchedule,
    is_known,
    plugins,
)
from ratoon.optimizers import OPTIMIZERS
from ratoon.preparation import Prepare
from ratoon.samples.augment import Augment
from ratoon.topology import Rewiring

EXACT_INTEGER = 2**53
"""Larger integers are written as text: not every reader of JSON keeps them exactly."""


class NotPlain(Exception):
    """A value that cannot be written to a file."""


@dataclass(frozen=True)
class MissingStrategy:
    """In place of the strategy of a loaded model that is not known here; it cannot rewire.

    Parameters
    ----------
    name : str
        The name of the strategy, or the path of its class.
    reason : str
        Why it is missing.
    stored : object
        What the file holds, to be written again.
    """

    name: str
    reason: str = field(default="", repr=False)
    stored: Any = field(default=None, repr=False, compare=False)

    @property
    def schedule(self) -> RewiringSchedule:
        """Never."""
        return RewiringSchedule(until=0.0)

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Raise, because the strategy is not known."""
        del layers, clock, seed
        raise InvalidParameterError(self.message)

    @property
    def message(self) -> str:
        """What is missing, and what to do."""
        module, is_path, _ = self.name.partition(":")
        remedy = (
            f"import {module}, `register` the class"
            if is_path
            else "import the module that registers it"
        )
        return (
            f"this model was trained by the strategy {self.name!r}, which {self.reason}.\n"
            f"  Prediction works without it. To continue training, {remedy} and load the model"
            f" again, or pass another strategy: `set_params(evolution=...)`."
        )


def known_classes() -> dict[str, Callable[..., Any]]:
    """Return the classes, all of them dataclasses, whose objects can be read, by name.

    A registered class does not take the place of a class of this package.
    """
    registered = [made for name, made in STRATEGIES.items() if name not in BUILT_IN]
    own = [made for name, made in STRATEGIES.items() if name in BUILT_IN]
    listed = [*registered, *own, *OPTIMIZERS.values(), Augment, Prepare]
    return {made.__name__: made for made in listed if isinstance(made, type) and is_dataclass(made)}


def path_of(kind: type) -> str:
    """Return the import path of a class.

    Examples
    --------
    >>> from ratoon.optimizers import SGD
    >>> path_of(SGD).split(":")[1]
    'SGD'
    """
    return f"{kind.__module__}:{kind.__qualname__}"


def find_class(path: str) -> type | None:
    """Return the class with this path if it is registered or installed under an entry point.

    Of entry points, only those in the package of the path are imported.
    """
    for made in STRATEGIES.values():
        if isinstance(made, type) and path_of(made) == path:
            return made
    for entry in plugins.installed_entries():
        if entry.value.split(":")[0].split(".")[0] != path.split(":")[0].split(".")[0]:
            continue
        try:
            found = plugins.load_entry(entry)
        except InvalidParameterError:
            continue
        if isinstance(found, type) and path_of(found) == path:
            return found
    return None


def named_strategy(name: str) -> str | MissingStrategy:
    """Return the name of a strategy in a file, or what takes its place if it is not known."""
    if name == "auto" or is_known(name):
        return name
    return MissingStrategy(name, "is neither registered nor installed", name)


def to_plain(value: Any) -> Any:
    """Return a value as dictionaries, lists, strings, numbers, truth values and None.

    Examples
    --------
    >>> to_plain((9000, np.int64(3)))
    {'tuple': [9000, 3]}
    >>> from ratoon.optimizers import SGD
    >>> to_plain(SGD(momentum=0.5))["object"]
    'SGD'
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= EXACT_INTEGER else {"integer": str(value)}
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotPlain
        return value
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [to_plain(item) for item in value]}
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return to_plain(value.tolist())
    if isinstance(value, dict):
        return {"pairs": [[to_plain(key), to_plain(item)] for key, item in value.items()]}
    if isinstance(value, MissingStrategy):
        return value.stored
    name = type(value).__name__
    if type(value) is known_classes().get(name) and type(value).__module__.startswith("ratoon."):
        return {"object": name, "fields": _fields(value)}
    if not isinstance(value, type) and hasattr(value, "schedule") and hasattr(value, "rewire"):
        return _strategy_to_plain(value)
    raise NotPlain


def _fields(value: Any) -> dict[str, Any]:
    return {item.name: to_plain(getattr(value, item.name)) for item in fields(value)}


def _strategy_to_plain(value: Any) -> dict[str, Any]:
    path = path_of(type(value))
    try:
        return {"strategy": path, "fields": _fields(value)}
    except (NotPlain, TypeError):  # TypeError: not a dataclass
        return {"strategy": path}


def from_plain(value: Any) -> Any:
    """Return what `to_plain` was given.

    Examples
    --------
    >>> from ratoon.optimizers import SGD
    >>> from_plain(to_plain((1, {"a": SGD()})))
    (1, {'a': SGD(momentum=0.9, nesterov=False, weight_decay=0.0, decay='coupled')})
    """
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"tuple": list(items), **rest} if not rest:
            return tuple(from_plain(item) for item in items)
        case {"pairs": list(items), **rest} if not rest:
            return _dictionary(items)
        case {"integer": str(digits), **rest} if not rest:
            if len(digits) <= 1000 and digits.removeprefix("-").isdecimal():
                return int(digits)
        case {"object": str(name), "fields": dict(parts), **rest} if not rest:
            return _object(name, parts)
        case {"strategy": str(path), **rest} if rest.keys() <= {"fields"} and ":" in path:
            return _strategy(path, rest.get("fields"), value)
    raise FormatError(f"not a parameter value: {str(value)[:80]}")


def _dictionary(items: list[Any]) -> dict[Any, Any]:
    if not all(isinstance(item, list) and len(item) == 2 for item in items):
        raise FormatError("a dictionary must be a list of pairs")
    try:
        return {from_plain(key): from_plain(item) for key, item in items}
    except TypeError as error:
        raise FormatError(f"not a dictionary: {error}") from None


def _object(name: str, parts: dict[str, Any]) -> Any:
    made = known_classes().get(name)
    if made is None:
        raise FormatError(
            f"the file holds a {name!r}, which this version does not know.\n"
            f"  It knows {sorted(known_classes())}."
        )
    try:
        given = {key: from_plain(item) for key, item in parts.items()}
        for part in given.values():
            if isinstance(part, MissingStrategy):
                stored = {"object": name, "fields": parts}
                return MissingStrategy(part.name, part.reason, stored)
        return made(**given)
    except (TypeError, RatoonError) as error:
        raise FormatError(f"not a valid {name}: {error}") from None


def _strategy(path: str, parts: Any, stored: dict[str, Any]) -> Any:
    """Return a strategy of another package, or what takes its place if that is not possible."""
    if parts is None:
        return MissingStrategy(path, "has parameters that no file can hold", stored)
    if not isinstance(parts, dict):
        raise FormatError(f"the fields of {path[:80]!r} must be an object")
    given = {key: from_plain(item) for key, item in parts.items()}
    made = find_class(path)
    if made is None:
        return MissingStrategy(path, "is neither registered nor installed", stored)
    for part in given.values():
        if isinstance(part, MissingStrategy):
            return MissingStrategy(part.name, part.reason, stored)
    try:
        return made(**given)
    except Exception as error:  # of another version of that package
        return MissingStrategy(path, f"refuses its parameters ({error})", stored)

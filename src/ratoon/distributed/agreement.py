"""Comparison of what the ranks are about to train, before the first step."""

from __future__ import annotations

from typing import Any

from ratoon.distributed.communicator import Communicator
from ratoon.distributed.watched import named
from ratoon.errors import InvalidParameterError
from ratoon.kernels import current_isa
from ratoon.storage.identity import (
    describe_data,
    describe_network,
    describe_plan,
    describe_stopping,
    to_json,
)
from ratoon.training import Training

ABSENT = "none"
MAX_LINES = 12
MAX_TEXT = 60


def compare_trainings(communicator: Communicator, training: Training, **settings: Any) -> None:
    """Raise on all ranks unless they have the same settings, seed, network and data.

    Parameters
    ----------
    communicator : Communicator
        The group of ranks.
    training : Training
        What this rank is about to train.
    **settings
        More values that must be the same.

    Raises
    ------
    InvalidParameterError
        If the ranks differ; the message names what differs, and the value of each rank.
    """
    if communicator.size == 1:
        return
    own = describe_training(training)
    own.update({f"settings.{name}": str(to_json(value)) for name, value in settings.items()})
    refuse_differences(communicator.gather(own))


def describe_training(training: Training) -> dict[str, str]:
    """Return everything that must be the same on all ranks: names and values."""
    plan, network, validation = training.plan, training.network, training.validation
    found: dict[str, str] = {"instruction set": current_isa()}
    for name, part in {
        "plan": describe_plan(plan),
        "stopping": describe_stopping(training.stopping),
        "network": describe_network(network),
        "data": describe_data(training.data, network, plan.n_threads),
        "validation": validation and describe_data(validation, network, plan.n_threads),
    }.items():
        _flatten(part, name, found)
    return found


def refuse_differences(descriptions: list[dict[str, str]]) -> None:
    """Raise if the descriptions, which are in the order of ranks, are not all equal."""
    names = list(dict.fromkeys(name for one in descriptions for name in one))
    lines = []
    isas = {one.get("instruction set") for one in descriptions}
    for name in names:
        if name == "instruction set" or (len(isas) > 1 and name.endswith(".samples")):
            continue  # sums of samples differ in their last bits
        ranks_of: dict[str, list[int]] = {}
        for rank, one in enumerate(descriptions):
            ranks_of.setdefault(one.get(name, ABSENT), []).append(rank)
        if len(ranks_of) > 1:
            values = [f"{_short(value)} on {named(ranks)}" for value, ranks in ranks_of.items()]
            lines.append(f"{name}: {', '.join(values)}")
    if not lines:
        return
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} more differences"]
    raise InvalidParameterError(
        "the ranks would not train the same network:\n  "
        + "\n  ".join(lines)
        + "\n  Give all ranks the same data and parameters, and an integer as `random_state`."
    )


def flattened(value: Any, name: str) -> dict[str, str]:
    """Return nested values as names with points, and texts."""
    found: dict[str, str] = {}
    _flatten(value, name, found)
    return found


def _flatten(value: Any, name: str, found: dict[str, str]) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _flatten(item, f"{name}.{key}", found)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        found[f"{name}.length"] = str(len(value))
        for index, item in enumerate(value):
            _flatten(item, f"{name}[{index}]", found)
    elif value is not None:
        found[name] = str(value)


def _short(text: str) -> str:
    if len(text) == 64 and set(text) <= set("0123456789abcdef"):
        return f"hash {text[:8]}"
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "..."

"""Presets: what becomes of parameters that are left open.

Everything open is decided here, in `resolve`, from the shape of the data alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ratoon.activations import ACTIVATIONS
from ratoon.errors import InvalidParameterError
from ratoon.evolution import SET, Strategy, make_strategy
from ratoon.initialise import connections_wanted
from ratoon.optimizers import OPTIMIZERS, Optimizer, Schedule, make_optimizer, make_schedule

FULL_BATCH = 64
"""Up to this many samples a step takes all of them."""

SMALL_PROBLEM = 4_000_000
"""Connections times samples up to which networks compute in float64 by default."""


@dataclass(frozen=True)
class Shape:
    """All that defaults may depend on."""

    n_samples: int
    n_features: int
    n_outputs: int
    is_classifier: bool = True


@dataclass(frozen=True)
class Settings:
    """Every parameter that shapes a network or its training, with nothing left open."""

    hidden_layer_sizes: tuple[int, ...]
    epsilon: float | None
    density: float | None
    evolution: Strategy
    activation: str
    slope: float
    dropout: float
    optimizer: Optimizer
    learning_rate_init: float
    schedule: Schedule
    batch_size: int
    max_iter: int
    init: str
    output_init: str
    start: Any  # how to draw first connections, or what tells how strong features are
    clip: float
    label_smoothing: float
    dtype: str
    connections: tuple[int, ...]

    @property
    def n_connections(self) -> int:
        """Connections of all layers; 0 if a layer would have none."""
        return sum(self.connections)

    def widths(self, shape: Shape) -> tuple[int, ...]:
        """Return neurons per layer, inputs and outputs included."""
        return (shape.n_features, *self.hidden_layer_sizes, shape.n_outputs)


def is_open(value: Any) -> bool:
    """Whether a parameter is left for the preset to fill."""
    return value is None or (isinstance(value, str) and value == "auto")


def settling(zeta: float) -> SET:
    """Return SET in the form that hands over a network at rest.

    New connections start at 0, so that a rewiring changes no output; fewer and fewer are replaced;
    and the second half of training has the topology to itself.  As published, a constant share
    of noise is added after every epoch but the last, which on wide data costs several points.

    Examples
    --------
    >>> settling(0.2)
    SET(zeta=0.2, grown='zero', every=1, until=0.5, anneal='cosine')
    """
    return SET(zeta, grown="zero", every=1, until=0.5, anneal="cosine")


# -------------------------------------------------------------------------------------- presets


def _default(shape: Shape, zeta: float) -> dict[str, Any]:
    batch = shape.n_samples
    if batch > FULL_BATCH:
        batch = min(max(32, shape.n_samples // 50), 256)
    steps_per_epoch = math.ceil(shape.n_samples / batch)
    # Where a few samples are fitted exactly their gradient vanishes, and Adam, which divides by
    # its size, would be left with the rounding errors.
    smooth = steps_per_epoch == 1 and not shape.is_classifier
    return {
        "hidden_layer_sizes": (min(2000, max(100, shape.n_features // 4)),),
        # Ten connections per feature, until that would be more than a million.
        "epsilon": min(10.0, max(1.0, 1e6 / shape.n_features)),
        "evolution": settling(zeta),
        "solver": "sgd" if smooth else "adam",
        "learning_rate_init": 0.02 if smooth else 5e-3 if steps_per_epoch == 1 else 2e-3,
        "learning_rate": "cosine",
        "weight_decay": 0.0,
        "decay": "coupled",
        "batch_size": batch,
        "max_iter": min(200, max(30, math.ceil(1000 / steps_per_epoch))),
        "init": "he",
        "output_init": "zero",
        "start": "exact",
    }


def _fast(shape: Shape, zeta: float) -> dict[str, Any]:
    slow = _default(shape, zeta)
    return {
        **slow,
        "hidden_layer_sizes": (min(500, max(50, shape.n_features // 8)),),
        "epsilon": 5.0,
        "max_iter": max(10, slow["max_iter"] // 4),
    }


def _large(shape: Shape, zeta: float) -> dict[str, Any]:
    return {
        **_default(shape, zeta),
        "hidden_layer_sizes": (4000, 1000),
        "epsilon": 20.0,
        "learning_rate_init": 1e-3,
        "batch_size": min(shape.n_samples, 256),
        "max_iter": 50,
        "output_init": "he",
    }


def _paper(shape: Shape, zeta: float) -> dict[str, Any]:
    """Return the settings of the SET-MLP experiments on microarray data."""
    return {
        "hidden_layer_sizes": (max(1, round(0.8 * shape.n_features)),) * 2,
        "epsilon": 10.0,
        "evolution": SET(zeta),
        "solver": "sgd",
        "learning_rate_init": 0.01,
        "learning_rate": "constant",
        "weight_decay": 0.0002,
        "decay": "released",
        "batch_size": 5,
        "max_iter": 500,
        "init": "set",
        "output_init": "set",
        "start": "paper",
    }


PRESETS: dict[str | None, Callable[[Shape, float], dict[str, Any]]] = {
    None: _default,
    "paper": _paper,
    "fast": _fast,
    "large": _large,
}

ALWAYS = {"clip": 0.0, "label_smoothing": 0.0, "activation": "relu"}
"""What no preset has an opinion about yet."""


# ----------------------------------------------------------------------------------- resolution


def resolve(given: Mapping[str, Any], shape: Shape) -> Settings:
    """Fill what is left open, by the preset and the shape of the data.

    Parameters
    ----------
    given : mapping
        The estimator's parameters, checked.  What is not None or ``"auto"`` stays as it is.
    shape : Shape
        Samples, features and outputs.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> settings = resolve(SparseMLPClassifier.paper().get_params(), Shape(74, 11_340, 3))
    >>> settings.hidden_layer_sizes, settings.batch_size, settings.init
    ((9072, 9072), 5, 'set')
    """
    preset = {**ALWAYS, **PRESETS[given["preset"]](shape, given["zeta"])}

    def choice(name: str) -> Any:
        return preset[name] if is_open(given[name]) else given[name]

    hidden = _hidden(choice("hidden_layer_sizes"), given, shape)
    epsilon, density = given["epsilon"], given["density"]
    if epsilon is None and density is None:
        epsilon, density = preset.get("epsilon"), preset.get("density")
    activation = choice("activation")
    optimizer, learning_rate = _optimizer(given, preset, choice)
    init = choice("init")
    # An explicit `init` speaks for the output layer too, unless that has one of its own.
    output_init = choice("output_init") if is_open(given["init"]) else given["output_init"]
    connections = _expected_connections(
        (shape.n_features, *hidden, shape.n_outputs), epsilon, density, given["topology"]
    )
    batch_size = min(int(choice("batch_size")), shape.n_samples)
    return Settings(
        hidden_layer_sizes=hidden,
        epsilon=None if epsilon is None else float(epsilon),
        density=None if density is None else float(density),
        evolution=_strategy(given, preset),
        activation=activation,
        slope=float(ACTIVATIONS[activation].slope if given["slope"] is None else given["slope"]),
        dropout=float(given["dropout"]),
        optimizer=optimizer,
        learning_rate_init=learning_rate,
        schedule=make_schedule(choice("learning_rate"), warm_up=given["warm_up"]),
        batch_size=max(batch_size, 1),
        max_iter=int(choice("max_iter")),
        init=init,
        output_init=init if is_open(output_init) else output_init,
        start=choice("start"),
        clip=float(choice("clip")),
        label_smoothing=float(choice("label_smoothing")) if shape.is_classifier else 0.0,
        dtype=_dtype(given["dtype"], sum(connections) * shape.n_samples),
        connections=connections,
    )


def _hidden(sizes: Any, given: Mapping[str, Any], shape: Shape) -> tuple[int, ...]:
    hidden = [int(size) for size in (sizes if hasattr(sizes, "__iter__") else [sizes])]
    # Where the first layers are given, so are their widths.
    if given["topology"] is not None and is_open(given["hidden_layer_sizes"]):
        known = [None if layer is None else layer.shape[1] for layer in given["topology"]]
        for index, width in enumerate(known):
            if width is None:
                continue
            if index < len(hidden):
                hidden[index] = width
            elif index + 1 < len(known) or width != shape.n_outputs:
                hidden.append(width)
    return tuple(hidden)


def _optimizer(
    given: Mapping[str, Any], preset: Mapping[str, Any], choice: Callable[[str], Any]
) -> tuple[Optimizer, float]:
    solver, rate = given["solver"], given["learning_rate_init"]
    if is_open(solver) or solver == "ridge":  # the latter only where a solved network goes on
        # A learning rate makes sense for one rule only; who gives one means plain SGD.
        solver = preset["solver"] if rate is None else "sgd"
    if not isinstance(solver, str):
        known = "adam" if solver.n_states == 2 else "sgd"
        default = getattr(solver, "default_learning_rate", OPTIMIZERS[known].default_learning_rate)
        return solver, float(default if rate is None else rate)
    if rate is None:
        same = solver == preset["solver"]
        rate = preset["learning_rate_init"] if same else OPTIMIZERS[solver].default_learning_rate
    parameters = {
        **given,
        "nesterov": given["nesterovs_momentum"],
        "weight_decay": choice("weight_decay"),
        "decay": choice("decay"),
    }
    return make_optimizer(solver, parameters), float(rate)


def _strategy(given: Mapping[str, Any], preset: Mapping[str, Any]) -> Strategy:
    evolution = preset["evolution"] if is_open(given["evolution"]) else given["evolution"]
    if isinstance(evolution, str) and evolution == "set":
        return SET(given["zeta"]) if given["preset"] == "paper" else settling(given["zeta"])
    return make_strategy(evolution)


def _expected_connections(
    widths: tuple[int, ...], epsilon: Any, density: Any, topology: Any
) -> tuple[int, ...]:
    layers = list(pairwise(widths))
    named = [*(topology or []), *[None] * len(layers)][: len(layers)]
    try:
        return tuple(
            connections_wanted(layer, epsilon=epsilon, density=density)
            if given is None
            else int(given.nnz if hasattr(given, "nnz") else given.n_connections)
            for layer, given in zip(layers, named, strict=True)
        )
    except InvalidParameterError:
        return ()  # a layer without connections; said better when it is made


def _dtype(dtype: str, work: int) -> str:
    if not is_open(dtype):
        return dtype
    return "float64" if work <= SMALL_PROBLEM else "float32"

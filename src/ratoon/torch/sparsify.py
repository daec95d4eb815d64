"""sparsify_: make the dense layers of a model sparse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.initialise import first_weights
from ratoon.rng import derive_seed
from ratoon.topology import Topology
from ratoon.torch.connections import SparseConnections
from ratoon.torch.conv import SparseConv2d
from ratoon.torch.linear import SparseLinear

WEIGHTS = ("largest", "new")

Skip = Sequence[str] | Callable[[str, torch.nn.Module], bool]


def sparsify_(
    model: torch.nn.Module,
    *,
    density: float | None = None,
    epsilon: float | None = None,
    skip: Skip = (),
    convolutions: bool = False,
    weights: str = "largest",
    seed: int = 0,
) -> torch.nn.Module:
    """Replace every `torch.nn.Linear` of a model by a sparse layer.

    Create the optimizer afterwards, because the parameters are new.

    Parameters
    ----------
    model : torch.nn.Module
        Changed in place.  Subclasses of the dense layers are not replaced, since they may do
        something else.
    density, epsilon : float
        One of the two, for every layer (see `SparseLinear`).
    skip : sequence of str, or callable
        Names of layers, or of modules that contain them, to keep dense (often the last one); or a
        function that takes a name and a layer and returns whether to keep it dense.
    convolutions : bool, default=False
        Whether to replace `torch.nn.Conv2d` as well.
    weights : {"largest", "new"}, default="largest"
        ``"largest"`` keeps the largest weights of the dense layer, by magnitude, and its bias; use
        it for trained models.  ``"new"`` draws a new topology and weights with a scale that fits
        the density; use it for models trained from scratch.
    seed : int, default=0
        Root seed of the new layers.

    Returns
    -------
    torch.nn.Module
        The model; a new layer if the model itself was a dense layer.

    Examples
    --------
    >>> model = torch.nn.Sequential(
    ...     torch.nn.Linear(784, 300), torch.nn.ReLU(), torch.nn.Linear(300, 10)
    ... )
    >>> sparsify_(model, density=0.1, skip=["2"])
    Sequential(
      (0): SparseLinear(784, 300, connections=23520, density=0.1, bias=True)
      (1): ReLU()
      (2): Linear(in_features=300, out_features=10, bias=True)
    )
    """
    if weights not in WEIGHTS:
        raise InvalidParameterError(f"`weights` must be one of {WEIGHTS}, got {weights!r}.")
    kinds: dict[Any, Any] = {torch.nn.Linear: SparseLinear}
    if convolutions:
        kinds[torch.nn.Conv2d] = SparseConv2d
    skipped = skip if callable(skip) else _by_name(model, skip)
    chosen = {
        name: module
        for name, module in model.named_modules(remove_duplicate=False)
        if type(module) in kinds and not skipped(name, module)
    }
    if not chosen:
        raise InvalidInputError("sparsify_: the model has no dense layer to replace.")
    _refuse_shared_weights(model, chosen)
    made: dict[torch.nn.Module, torch.nn.Module] = {}
    for name, module in chosen.items():
        if module not in made:
            sparse = kinds[type(module)].from_dense(module, density, epsilon=epsilon)
            if weights == "new":
                redraw_(sparse, derive_seed(seed, "layer", len(made)))
            made[module] = sparse.train(module.training)
        if name == "":
            return made[module]
        parent, _, attribute = name.rpartition(".")
        setattr(model.get_submodule(parent), attribute, made[module])
    _disable_fused_inference(model)
    return model


@torch.no_grad()
def redraw_(layer: SparseConnections, seed: int) -> None:
    """Draw a new topology of the same size and new weights; set the bias to 0."""
    shape, count = layer.topology.shape, layer.n_connections
    layer.topology = Topology.random(shape, count, seed=seed)
    values = first_weights(layer.topology, seed=seed, dtype=layer.values.numpy().dtype)
    layer.values.copy_(torch.from_numpy(values))
    if layer.bias is not None:
        layer.bias.zero_()


def _by_name(
    model: torch.nn.Module, names: Sequence[str]
) -> Callable[[str, torch.nn.Module], bool]:
    if isinstance(names, str):
        names = [names]
    known = dict(model.named_modules(remove_duplicate=False))
    if unknown := [name for name in names if name not in known]:
        raise InvalidParameterError(
            f"sparsify_: the model has no module {unknown[0]!r} to skip; it has {list(known)[1:]}."
        )
    return lambda name, _: any(name == given or name.startswith(f"{given}.") for given in names)


def _disable_fused_inference(model: torch.nn.Module) -> None:
    """Disable the fused inference of transformers, which reads dense weights."""
    for module in model.modules():
        if isinstance(module, torch.nn.TransformerEncoderLayer):
            module.activation_relu_or_gelu = 0
        elif isinstance(module, torch.nn.TransformerEncoder):
            module.use_nested_tensor = False


def _refuse_shared_weights(model: torch.nn.Module, chosen: dict[str, torch.nn.Module]) -> None:
    """Raise if a layer to be replaced shares its weight with another module."""
    modules = dict(model.named_modules())  # each module once
    owners = Counter(
        id(parameter)
        for module in modules.values()
        for parameter in module.parameters(recurse=False)
    )
    for name, module in chosen.items():
        if owners[id(module.weight)] > 1:
            raise InvalidInputError(
                f"sparsify_: the weight of {name!r} is shared with another module; a sparse layer"
                f" cannot share it.\n  Pass `skip=[{name!r}]`."
            )

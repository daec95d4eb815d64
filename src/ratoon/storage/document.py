"""Document: what a file holds, in memory; and its outline, which is all of it but the numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.network import SparseMLP
from ratoon.storage import strict_json
from ratoon.storage.arrays import ArrayOutline
from ratoon.storage.container import Tensor
from ratoon.storage.fields import Fields
from ratoon.storage.limits import (
    MAX_ARRAYS,
    MAX_CONFIG_DEPTH,
    MAX_NETWORKS,
    TEXT_FACTOR,
    TEXT_SLACK,
)
from ratoon.storage.networks import NetworkOutline, network_arrays
from ratoon.storage.rules import Violation, require


@dataclass(frozen=True, eq=False)
class Document:
    """Plain configuration, named arrays and networks: all that one file holds.

    What they mean is the caller's business: an estimator, or a training under way.

    Parameters
    ----------
    config : dict
        Plain JSON values: dictionaries with string keys, lists, strings, finite numbers, truth
        values, None.
    arrays : dict of ndarray
        Finite numbers, truth values or strings, by name.
    networks : list of SparseMLP
        With the optimizer's state, where there is any.
    kind : {"model", "checkpoint"}
        A model can be read by every later version; a checkpoint only by the same minor version.
    """

    config: dict[str, Any]
    arrays: dict[str, Array] = field(default_factory=dict)
    networks: list[SparseMLP] = field(default_factory=list)
    kind: str = "model"

    def without_optimizer(self) -> Document:
        """Return the same with networks that share all arrays but have no optimizer state."""
        bare = [
            SparseMLP(
                [replace(layer, state=[], bias_state=[]) for layer in network.layers],
                network.scaling,
            )
            for network in self.networks
        ]
        return replace(self, networks=bare)


@dataclass(frozen=True)
class Outline:
    """All of a document but its arrays' contents: what the configuration in a file says."""

    content: dict[str, Any]
    arrays: dict[str, ArrayOutline]
    networks: tuple[NetworkOutline, ...]

    @classmethod
    def of(cls, document: Document) -> Outline:
        """Return the outline of a document, or say why it cannot be stored."""
        strict_json.check_plain(document.config, "config")
        if type(document.config) is not dict:
            raise InvalidInputError("the configuration must be a dictionary.")
        return cls(
            document.config,
            {name: ArrayOutline.of(name, array) for name, array in document.arrays.items()},
            tuple(NetworkOutline.of(network) for network in document.networks),
        )

    def to_text(self) -> str:
        """Return the configuration as it stands in the file."""
        return strict_json.canonical(
            {
                "content": self.content,
                "arrays": {name: outline.to_json() for name, outline in self.arrays.items()},
                "networks": [outline.to_json() for outline in self.networks],
            }
        )

    @classmethod
    def parse(cls, text: str, file_bytes: int) -> Outline:
        """Read the configuration: rules 3, 5 and 9."""
        try:
            value = strict_json.parse(text, max_depth=MAX_CONFIG_DEPTH)
        except ValueError as error:
            raise Violation(3, f"the configuration is {error}") from None
        fields = Fields(value, "the configuration", ("content", "arrays", "networks"))
        outline = cls(
            fields.mapping("content", len(text)),
            {
                name: ArrayOutline.parse(item, name)
                for name, item in fields.mapping("arrays", MAX_ARRAYS).items()
            },
            tuple(
                NetworkOutline.parse(item, f"networks[{index}]")
                for index, item in enumerate(fields.listing("networks", 0, MAX_NETWORKS))
            ),
        )
        expanded = sum(array.expanded_bytes for array in outline.arrays.values())
        limit = TEXT_SLACK + TEXT_FACTOR * file_bytes
        require(expanded <= limit, 5, f"{expanded} bytes of text where {limit} are allowed")
        return outline

    def tensors(self, header: dict[str, Tensor] | None = None) -> dict[str, Tensor]:
        """Return all tensors the file must have."""
        found: dict[str, Tensor] = {}
        for index, network in enumerate(self.networks):
            found.update(network.tensors(f"networks.{index}"))
        for name, array in self.arrays.items():
            found.update(array.tensors(name, header))
        return found

    def encode(self, document: Document) -> dict[str, Array]:
        """Return the arrays behind all tensors; large ones are not copied."""
        found: dict[str, Array] = {}
        for index, network in enumerate(document.networks):
            found.update(network_arrays(network, f"networks.{index}"))
        for name, outline in self.arrays.items():
            found.update(outline.encode(name, document.arrays[name]))
        return {name: np.asarray(array, order="C") for name, array in found.items()}

    def build(self, kind: str, tensors: dict[str, Array]) -> Document:
        """Make the document, taking its arrays out of ``tensors``: rules 10 to 13."""
        networks = [
            network.build(f"networks.{index}", tensors)
            for index, network in enumerate(self.networks)
        ]
        arrays = {name: outline.build(name, tensors) for name, outline in self.arrays.items()}
        return Document(self.content, arrays, networks, kind)

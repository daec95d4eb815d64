"""One minibatch through a split network: forward, backward, update.

Arrays are neurons x samples, as in the kernels.  A rank keeps the activations of its own neurons
only.  Those of one part at a time are broadcast, in the forward pass and again in the backward
pass, so a rank needs working memory for two more parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ratoon import kernels
from ratoon.arrays import Array
from ratoon.distributed.split.network import SplitNetwork, owner_of
from ratoon.kernels import DERIVED_FROM_INPUT, Rule, Step
from ratoon.kernels.linear import padded
from ratoon.kernels.reference.losses import sample_losses
from ratoon.layers import SparseLayer
from ratoon.rng import derive_seed
from ratoon.samples.in_memory import wrap

NO_UPDATE = Step(lr=0.0)
ROWS_AT_ONCE = 256
"""Samples that are predicted together."""


@dataclass
class Pass:
    """What a rank keeps of a minibatch between the forward and the backward pass.

    Parameters
    ----------
    inputs : ndarray
        The samples as the network reads them, on every rank.
    rows : list of dict
        For every layer and part of this rank, what the derivative of the activation needs.
    dropout_seed : int, optional
        Seed of the dropped neurons; None where none are dropped.
    errors : list of dict
        For every layer and part of this rank, the derivative of the loss by the sums of inputs.
    """

    inputs: Array
    rows: list[dict[int, Array]] = field(default_factory=list)
    dropout_seed: int | None = None
    errors: list[dict[int, Array]] = field(default_factory=list)


class Steps:
    """Takes minibatches through the parts of this rank, together with the other ranks."""

    def __init__(self, network: SplitNetwork, *, n_threads: int = 1) -> None:
        self.network = network
        self.n_threads = n_threads

    def forward(self, inputs: Array, dropout_seed: int | None = None) -> tuple[Array, Pass]:
        """Return the outputs (samples, outputs) on every rank, and what backward needs.

        ``inputs`` are features x samples, scaled.
        """
        network = self.network
        batch = inputs.shape[1]
        done = Pass(padded(inputs), dropout_seed=dropout_seed)
        last = len(network.kinds) - 1
        for index, kind in enumerate(network.kinds):
            sums = {
                part: np.repeat(held[index].bias[:, None], done.inputs.shape[1], axis=1)
                for part, held in network.columns.items()
            }
            for source in self._sources(index):
                x = self.activations(done, index, source)
                for part, block in self._blocks(index, source):
                    sums[part] += kernels.forward(
                        block.topology, block.weights, block.bias, x, n_threads=self.n_threads
                    )
            if index != last and kind.activation not in DERIVED_FROM_INPUT:
                for rows in sums.values():
                    kernels.activate(kind.activation, rows.reshape(-1), slope=kind.slope)
            done.rows.append(sums)
        outputs = np.zeros((network.widths[-1], batch), dtype=network.dtype)
        for part, rows in done.rows[-1].items():
            outputs[network.part_of(last + 1, part)] = rows[:, :batch]
        network.ranks.add(outputs)
        return np.ascontiguousarray(outputs.T), done

    def backward(
        self, done: Pass, errors: Array, rule: Rule, step: Step, *, keep_errors: bool = False
    ) -> None:
        """Update all connections and biases; ``errors`` (samples, outputs) are those of the loss.

        With ``keep_errors`` nothing is updated, and ``done.errors`` holds what flows through every
        layer.
        """
        network = self.network
        last = len(network.kinds) - 1
        whole = padded(np.ascontiguousarray(errors.T.astype(network.dtype)))
        current = {
            part: np.ascontiguousarray(whole[network.part_of(last + 1, part)])
            for part in network.own
        }
        found = [current]
        for index in range(last, -1, -1):
            previous: dict[int, Array] = {}
            for source in self._sources(index):
                dx = self._backward_block(done, index, source, current, rule, step, keep_errors)
                if dx is not None and source in network.own:
                    previous[source] = self._derived(done, index - 1, source, dx)
            if not keep_errors:
                self._update_biases(index, current, rule, step)
            current = previous
            found.append(current)
        if keep_errors:
            done.errors = found[-2::-1]

    def activations(self, done: Pass, index: int, source: int) -> Array:
        """Return the inputs of a layer that come from one part, on every rank."""
        if index == 0:
            return done.inputs
        network = self.network
        kind = network.kinds[index - 1]
        root = owner_of(source, network.n_parts, network.ranks.size)
        if root == network.ranks.rank:
            rows = done.rows[index - 1][source]
            if kind.activation in DERIVED_FROM_INPUT:
                rows = rows.copy()
                kernels.activate(kind.activation, rows.reshape(-1), slope=kind.slope)
            if kind.dropout and done.dropout_seed is not None:
                rows = rows.copy()
                seed = self._dropout_seed(done.dropout_seed, index - 1, source)
                kernels.drop(kind.dropout, rows.reshape(-1), seed=seed)
        else:
            part = network.part_of(index, source)
            shape = (part.stop - part.start, done.inputs.shape[1])
            rows = np.empty(shape, dtype=network.dtype)
        network.ranks.share(rows, root)
        return rows

    # ------------------------------------------------------------------------------- one layer

    def _sources(self, index: int) -> range:
        return range(1 if index == 0 else self.network.n_parts)

    def _blocks(self, index: int, source: int) -> list[tuple[int, SparseLayer]]:
        found = [(part, held[index].blocks[source]) for part, held in self.network.columns.items()]
        return [(part, block) for part, block in found if block is not None]

    def _backward_block(
        self,
        done: Pass,
        index: int,
        source: int,
        errors: dict[int, Array],
        rule: Rule,
        step: Step,
        only_errors: bool,
    ) -> Array | None:
        """Go back through the connections from one part; return the errors of its neurons.

        The errors are complete on the rank that owns the part.
        """
        network = self.network
        x = self.activations(done, index, source)
        total = np.zeros_like(x) if index > 0 else None
        for part, block in self._blocks(index, source):
            first, second = (*block.state, None, None)[:2]
            dx = kernels.backward(
                block.topology,
                Rule.SGD if only_errors else rule,
                block.weights,
                x,
                errors[part],
                first=None if only_errors else first,
                second=None if only_errors else second,
                step=NO_UPDATE if only_errors else step,
                with_dx=total is not None,
                n_threads=self.n_threads,
            )
            if total is not None and dx is not None:
                total += dx
        if total is not None:
            network.ranks.collect(total, owner_of(source, network.n_parts, network.ranks.size))
        return total

    def _derived(self, done: Pass, index: int, part: int, dx: Array) -> Array:
        """Return the errors of a part by the sums of its inputs."""
        kind = self.network.kinds[index]
        if kind.dropout and done.dropout_seed is not None:
            seed = self._dropout_seed(done.dropout_seed, index, part)
            kernels.drop(kind.dropout, dx.reshape(-1), seed=seed)
        rows = done.rows[index][part]
        kernels.derive(kind.activation, rows.reshape(-1), dx.reshape(-1), slope=kind.slope)
        return dx

    def _update_biases(self, index: int, errors: dict[int, Array], rule: Rule, step: Step) -> None:
        for part, held in self.network.columns.items():
            column = held[index]
            first, second = (*column.bias_state, None, None)[:2]
            gradient = errors[part].sum(axis=1)
            kernels.update(
                rule, column.bias, gradient, step.of_biases(), first=first, second=second
            )

    @staticmethod
    def _dropout_seed(seed: int, index: int, part: int) -> int:
        return derive_seed(seed, "dropout", index, part)


def loss_and_errors(
    loss: str, outputs: Array, targets: Array, weights: Array | None
) -> tuple[float, float, Array]:
    """Return the summed loss, the summed weight, and the errors of the mean loss."""
    losses, errors = sample_losses(loss, outputs, targets)
    counted = np.ones(len(losses)) if weights is None else weights.astype(np.float64)
    total = float(counted.sum())
    errors = errors * (counted / max(total, 1e-300))[:, None]
    return float(losses @ counted), total, errors


def scaled_inputs(network: SplitNetwork, x: Any, rows: Any) -> Array:
    """Return samples as the network reads them, features x samples."""
    values = x.dense(rows).astype(network.dtype)
    scaling = network.scaling
    if scaling.shift is not None:
        values -= scaling.shift
    if scaling.scale is not None:
        values *= scaling.scale
    if scaling.clip > 0:
        np.clip(values, -scaling.clip, scaling.clip, out=values)
    return np.ascontiguousarray(values.T)


def split_outputs(network: SplitNetwork, x: Any, *, n_threads: int = 1) -> Array:
    """Return the raw outputs (samples, outputs) of a split network, on every rank."""
    samples, steps = wrap(x), Steps(network, n_threads=n_threads)
    found = [
        steps.forward(scaled_inputs(network, samples, slice(first, first + ROWS_AT_ONCE)))[0]
        for first in range(0, samples.n_rows, ROWS_AT_ONCE)
    ]
    return np.concatenate(found) if found else np.empty((0, network.widths[-1]), network.dtype)

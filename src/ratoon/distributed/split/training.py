"""SplitTraining: train a network whose parts are on several ranks."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.distributed.agreement import flattened, refuse_differences
from ratoon.distributed.communicator import Communicator, SingleRank
from ratoon.distributed.exchange import check_agreement, share_layer
from ratoon.distributed.split.files import SplitFolder
from ratoon.distributed.split.network import SplitNetwork
from ratoon.distributed.split.steps import Pass, Steps, loss_and_errors, scaled_inputs
from ratoon.distributed.watched import WatchedRanks
from ratoon.errors import DivergenceError, InvalidParameterError
from ratoon.evolution import (
    Clock,
    GuidedSET,
    InPlaceStrategy,
    LayerState,
    LayerwiseStrategy,
    Static,
    rewires_full_layers,
)
from ratoon.history import EpochRecord, History
from ratoon.kernels import Step, current_isa
from ratoon.layers import SparseLayer
from ratoon.losses import mean_loss
from ratoon.rng import derive_generator, derive_seed
from ratoon.samples.in_memory import wrap
from ratoon.storage.identity import describe_data, describe_plan
from ratoon.training import TrainingData, TrainingPlan


class SplitTraining:
    """Train a network whose parts are on several ranks.

    Every rank makes the same `SplitTraining` with its own part of the network.  Minibatches, order
    of samples and schedules are those of `ratoon.training.Training`, so a network without rewiring
    and dropout becomes the same as on one rank, up to the order of sums.  A strategy rewires every
    block of connections on its own, without connections of other ranks.

    Parameters
    ----------
    network : SplitNetwork
        The parts of this rank.
    x : array, SciPy matrix or Samples
        The samples, on every rank.
    targets : ndarray of shape (n_samples, n_outputs)
        Encoded as for `ratoon.training.TrainingData`.
    plan : TrainingPlan
        How to train.  The strategy must rewire every layer on its own: static, SET, RigL, GSE.
    weights : ndarray, optional
        Weights of the samples.
    replicas : Communicator, optional
        The ranks of other groups that hold the same parts (`MPICommunicator.groups`).  Every group
        trains on its share of each minibatch.
    average_every : int, default=1
        Steps between two averages of weights and optimizer state over the groups.  With 1, SGD
        takes the step of the whole minibatch.
    folder : SplitFolder, optional
        Where to write checkpoints after every epoch; training continues from the newest one.
    log : callable, optional
        Called on rank 0 with the record of every epoch.

    Attributes
    ----------
    history : History
        One record per epoch; connections are those of all ranks.

    Examples
    --------
    >>> from ratoon.distributed import SingleRank
    >>> x = np.eye(4, dtype=np.float32)
    >>> network = SplitNetwork.start((4, 16, 4), 2, SingleRank(), density=0.5, seed=0)
    >>> plan = TrainingPlan(learning_rate=0.1, batch_size=2, n_epochs=20)
    >>> training = SplitTraining(network, x, x, plan)
    >>> training.run()
    >>> training.history.records[-1].loss < training.history.records[0].loss
    True
    """

    def __init__(
        self,
        network: SplitNetwork,
        x: Any,
        targets: Array,
        plan: TrainingPlan,
        *,
        weights: Array | None = None,
        replicas: Communicator | None = None,
        average_every: int = 1,
        folder: SplitFolder | None = None,
        log: Callable[[EpochRecord], None] | None = None,
    ) -> None:
        check_strategy_is_local(plan.evolution)
        if plan.augment is not None:
            raise InvalidParameterError("`augment` is not supported by a network over ranks.")
        if average_every < 1:
            raise InvalidParameterError(
                f"`average_every` must be at least 1 step, got {average_every!r}."
            )
        self.network = network
        self.samples = wrap(x)
        self.data = TrainingData.of(self.samples, targets, network.dtype, weights=weights)
        self.plan = plan
        self.replicas: Communicator = SingleRank() if replicas is None else replicas
        self.average_every = average_every
        self.folder = folder
        self.log = log
        self.epochs_done = 0
        self.history = History()
        self._ranks = WatchedRanks(network.ranks)
        network.ranks = self._ranks
        self._steps = Steps(network, n_threads=plan.n_threads)
        network.clear_state(plan.optimizer.n_states)

    def run(self, n_epochs: int | None = None) -> None:
        """Train to the end of the plan, or for ``n_epochs``.

        An error on one rank ends the training of all.
        """
        try:
            self._compare()
            if self.folder is not None:
                self.epochs_done, self.history = self.folder.resume(self.network, self.plan)
            last = self.plan.n_epochs if n_epochs is None else self.epochs_done + n_epochs
            while self.epochs_done < last:
                self._run_epoch()
        except BaseException as error:
            self._ranks.fail(error)
            raise
        finally:
            self._ranks.finish()

    def outputs(self, x: Any) -> Array:
        """Return the raw outputs (samples, outputs) on every rank."""
        return self.network.outputs(x, n_threads=self.plan.n_threads)

    def mean_loss(self, x: Any, targets: Array) -> float:
        """Return the mean loss of samples."""
        return mean_loss(self.plan.loss, self.outputs(x), targets)

    # ---------------------------------------------------------------------------------- epochs

    def _run_epoch(self) -> None:
        plan, epoch, n_samples = self.plan, self.epochs_done, self.data.n_samples
        clock = plan.clock(epoch, n_samples)
        stop = clock.step + clock.steps_per_epoch
        batch = plan.batch_for(n_samples)
        order = np.arange(n_samples, dtype=np.int64)
        if plan.shuffle:
            order = self.data.samples.shuffled(order, derive_generator(plan.seed, "shuffle", epoch))
        due = set(plan.evolution.schedule.due_steps(clock, stop))
        rewired, seconds, total, weight = 0, [0.0, 0.0], 0.0, 0.0
        for number, step in enumerate(plan.steps(clock, stop)):
            at = clock.step + number
            rows = order[number * batch : (number + 1) * batch]
            started = time.perf_counter()
            if at in due:
                with self._ranks.together():
                    rewired += self._rewire(clock.at(at), rows)
                seconds[1] += time.perf_counter() - started
                started = time.perf_counter()
            with self._ranks.together():
                loss, counted = self._step(rows, step, at)
                if (number + 1) % self.average_every == 0 or at + 1 == stop or at + 1 in due:
                    self._average()
            if not np.isfinite(loss):
                raise DivergenceError(
                    f"training diverged: the loss is not finite at step {number + 1} of epoch"
                    f" {epoch + 1}.\n"
                    f"  Try a tenth of the learning rate, scale the features, or clip them."
                )
            total, weight = total + loss, weight + counted
            seconds[0] += time.perf_counter() - started
        self.epochs_done += 1
        sums = np.array([self.network.n_connections, rewired], dtype=np.float64)
        self._ranks.add(sums)
        of_groups = np.array([total, weight])
        self.replicas.add(of_groups)
        positions = sum(n_in * n_out for n_in, n_out in pairwise(self.network.widths))
        record = EpochRecord(
            epoch=epoch,
            loss=float(of_groups[0] / max(of_groups[1], 1e-300)),
            learning_rate=plan.rate_at(clock),
            n_connections=int(sums[0]),
            density=float(sums[0]) / positions,
            rewired=int(sums[1]),
            train_seconds=seconds[0],
            rewire_seconds=seconds[1],
        )
        self.history.append(record)
        if self.folder is not None and self.replicas.rank == 0:
            self.folder.write(self.network, self.plan, self.history)
        if self.log is not None and self._ranks.rank == 0 and self.replicas.rank == 0:
            self.log(record)

    def _step(self, rows: NDArray[np.int64], step: Step, number: int) -> tuple[float, float]:
        """Take one step on this group's share of a minibatch; return summed loss and weight."""
        rows = np.array_split(rows, self.replicas.size)[self.replicas.rank]
        if rows.size == 0:
            return 0.0, 0.0
        seed = derive_seed(self.plan.seed, "dropout", number, self.replicas.rank)
        outputs, done = self._steps.forward(self._inputs(rows), seed)
        loss, weight, errors = self._errors(outputs, rows)
        if np.isfinite(loss):
            self._steps.backward(done, errors, self.plan.optimizer.rule, step)
        return loss, weight

    def _errors(self, outputs: Array, rows: NDArray[np.int64]) -> tuple[float, float, Array]:
        weights = None if self.data.weights is None else self.data.weights[rows]
        return loss_and_errors(self.plan.loss, outputs, self.data.targets[rows], weights)

    def _inputs(self, rows: NDArray[np.int64]) -> Array:
        return scaled_inputs(self.network, self.samples, rows)

    def _average(self) -> None:
        if self.replicas.size == 1:
            return
        for *_, block in self.network.blocks():
            self._average_arrays([block.stored, *block.state])
        for held in self.network.columns.values():
            for column in held:
                self._average_arrays([column.bias, *column.bias_state])

    def _average_arrays(self, arrays: list[Array]) -> None:
        for array in arrays:
            self.replicas.add(array)
            array /= self.replicas.size

    # -------------------------------------------------------------------------------- rewiring

    def _rewire(self, clock: Clock, rows: NDArray[np.int64]) -> int:
        strategy, network = self.plan.evolution, self.network
        done = None
        if not isinstance(strategy, InPlaceStrategy):
            seed = derive_seed(self.plan.seed, "dropout", clock.step)
            outputs, done = self._steps.forward(self._inputs(rows), seed)
            errors = self._errors(outputs, rows)[2]
            self._steps.backward(
                done, errors, self.plan.optimizer.rule, Step(lr=0.0), keep_errors=True
            )
        grown = 0
        for index in range(len(network.kinds)):
            for source in range(1 if index == 0 else network.n_parts):
                x = None if done is None else self._steps.activations(done, index, source)
                for part, held in network.columns.items():
                    block = held[index].blocks[source]
                    if block is not None:
                        seed = derive_seed(
                            self.plan.seed, "rewire", clock.step, index, source, part
                        )
                        grown += self._rewire_block(
                            block, clock, seed, _signals(done, x, index, part, rows.size)
                        )
        return grown

    def _rewire_block(
        self,
        block: SparseLayer,
        clock: Clock,
        seed: int,
        signals: Callable[[], tuple[Array, Array]] | None,
    ) -> int:
        strategy, n_threads = self.plan.evolution, self.plan.n_threads
        if block.topology.is_full and not rewires_full_layers(strategy):
            return 0
        if isinstance(strategy, InPlaceStrategy):
            grown = strategy.rewire_in_place(block, clock, seed, n_threads)
        else:
            state = LayerState(
                block.topology,
                block.weights,
                tuple(block.state),
                block.init,
                signals,
                n_threads,
                self.plan.rate_at(clock),
            )
            (rewiring,) = strategy.rewire([state], clock, seed)
            block.apply(rewiring)
            grown = rewiring.n_grown
        if self.replicas.size > 1:
            share_layer(self.replicas, block)
            check_agreement(self.replicas, block, "a block of connections")
        return grown

    # ------------------------------------------------------------------------------ agreement

    def _compare(self) -> None:
        """Raise on all ranks unless they are about to train the same network on the same data."""
        network, found = self.network, {"instruction set": current_isa()}
        described = {
            "plan": describe_plan(self.plan),
            "network": {
                "widths": list(network.widths),
                "n_parts": network.n_parts,
                "dtype": network.dtype.name,
                "clip": float(network.scaling.clip),
                **{f"layer {k + 1}": str(kind) for k, kind in enumerate(network.kinds)},
            },
            "data": describe_data(self.data, network, self.plan.n_threads),
            "settings": {"average_every": self.average_every, "groups": self.replicas.size},
        }
        for name, part in described.items():
            found.update(flattened(part, name))
        for ranks in (self._ranks, self.replicas):
            if ranks.size > 1:
                refuse_differences(ranks.gather(found))


def check_strategy_is_local(strategy: Any) -> None:
    """Raise unless a strategy rewires every layer on its own, without looking at the others."""
    is_local = isinstance(strategy, Static) or (
        isinstance(strategy, LayerwiseStrategy)
        and type(strategy).rewire is LayerwiseStrategy.rewire
        and strategy.keeps == "layer"
        and not isinstance(strategy, GuidedSET)
    )
    if not is_local:
        raise InvalidParameterError(
            f"{type(strategy).__name__} looks at whole layers or at several of them, so it cannot"
            f" rewire a network whose parts are on several ranks.\n"
            f"  Use static, set, annealed_set, rigl or gse."
        )


def _signals(
    done: Pass | None, x: Array | None, index: int, part: int, n_samples: int
) -> Callable[[], tuple[Array, Array]] | None:
    if done is None or x is None:
        return None
    return partial(_first_columns, x, done.errors[index][part], n_samples)


def _first_columns(x: Array, errors: Array, n_samples: int) -> tuple[Array, Array]:
    """Return signals without the columns that pad a minibatch."""
    return (
        np.ascontiguousarray(x[:, :n_samples]),
        np.ascontiguousarray(errors[:, :n_samples]),
    )

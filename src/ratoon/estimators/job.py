"""TrainingJob: what `fit` would train, for trainers other than the epoch loop of this process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError
from ratoon.estimators.base import BaseSparseMLP
from ratoon.estimators.fitting import learn_scaling
from ratoon.estimators.settings import FitCall, Settings, resolve
from ratoon.history import History
from ratoon.kernels import Scaling
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.rng import draw_root
from ratoon.samples.base import Samples
from ratoon.topology import Topology
from ratoon.training import TrainingPlan, TrainingState


@dataclass(frozen=True, eq=False)
class TrainingJob:
    """What an estimator would train on some samples, without the network.

    Parameters
    ----------
    settings : Settings
        All settings, resolved.
    widths : tuple of int
        Neurons per layer, inputs and outputs included.
    plan : TrainingPlan
        Loss, optimizer, minibatches, strategy and length.
    samples : Samples
        Checked samples.
    targets : ndarray of shape (n_samples, n_outputs)
        Encoded targets.
    weights : ndarray or None
        Weights of the samples.
    scaling : Scaling
        How the network reads samples.
    seed : int
        Seed of the first network.
    """

    settings: Settings
    widths: tuple[int, ...]
    plan: TrainingPlan
    samples: Samples
    targets: Array
    weights: Array | None
    scaling: Scaling
    seed: int


def training_job(estimator: BaseSparseMLP, X: Any, y: Any = None, *, reason: str) -> TrainingJob:
    """Check parameters and samples as `fit` does, and return what it would train.

    ``reason`` says why the fit needs epochs.  The estimator learns its classes and the names of
    its features; `adopt` completes it.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> model = SparseMLPClassifier((6,), max_iter=5, random_state=0)
    >>> job = training_job(model, [[0.0, 1.0], [1.0, 0.0]], ["ill", "well"], reason="of a test")
    >>> job.widths, job.plan.n_epochs
    ((2, 6, 2), 5)
    """
    estimator._checked_parameters()
    estimator._forget()
    labelled = estimator._labelled(X, y, None, reset=True)
    estimator._learn_targets(labelled, None)
    shape = estimator._shape = estimator._shape_of(labelled)
    seed = draw_root(estimator.random_state)
    call = FitCall(n_stored=labelled.x.n_stored, needs_epochs=reason)
    settings = resolve(estimator, shape, call)
    _refuse_what_needs_the_network(estimator, settings)
    scaling, scale = learn_scaling(
        labelled.x,
        labelled.weights,
        scale=settings.scale,
        clip=settings.clip,
        dtype=settings.dtype,
    )
    plan = TrainingPlan(
        loss=estimator._loss(),
        optimizer=settings.optimizer,
        learning_rate=settings.learning_rate_init,
        schedule=settings.schedule,
        batch_size=settings.batch_size,
        balance_batches=settings.balance_batches,
        n_epochs=settings.max_iter,
        evolution=settings.evolution,
        shuffle=settings.shuffle,
        seed=seed,
        n_threads=settings.n_threads,
        augment=settings.augment,
    )
    return TrainingJob(
        replace(settings, scale=scale),
        settings.widths(shape),
        plan,
        labelled.x,
        estimator._encode(labelled.y, settings.label_smoothing, "y"),
        estimator._weigh(labelled),
        scaling,
        seed,
    )


def adopt(estimator: BaseSparseMLP, job: TrainingJob, history: History, network: SparseMLP) -> None:
    """Complete the estimator of a job with the network that was trained."""
    state = TrainingState(network, job.seed, epochs_done=len(history), history=history)
    estimator.settings_ = replace(job.settings, given_topology=(True,) * len(network.layers))
    estimator._publish(state)


def stand_in(job: TrainingJob) -> SparseMLP:
    """Return a network without connections from the inputs to the outputs of a job.

    It lets an estimator be stored whose network is in another place.
    """
    topology = Topology.from_pairs((job.widths[0], job.widths[-1]), [], [])
    weights = job.targets[:0, 0]
    layer = SparseLayer(topology, weights, job.targets[:1].reshape(-1) * 0)
    return SparseMLP([layer])


def _refuse_what_needs_the_network(estimator: BaseSparseMLP, settings: Settings) -> None:
    refused = {
        "topology": estimator.topology is not None,
        "start": settings.start != "exact",
        "early_stopping": settings.early_stopping,
        "n_iter_no_change": settings.n_iter_no_change is not None,
        "warm_start": bool(estimator.warm_start),
        "callbacks": bool(estimator.callbacks),
        "prepare": settings.prepare is not None,
    }
    for name, is_given in refused.items():
        if is_given:
            raise InvalidParameterError(
                f"{type(estimator).__name__}: `{name}` is not supported when the neurons of the"
                f" network are split over ranks.\n  Leave it at its default."
            )
    if settings.dtype == "bfloat16":
        raise InvalidParameterError(
            "weights kept in bfloat16 cannot be split over ranks.  Use float32."
        )

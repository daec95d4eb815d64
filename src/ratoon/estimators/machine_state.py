"""A trained Boltzmann machine as plain values and the bytes of a file, for skops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ratoon.boltzmann import BoltzmannMachine
from ratoon.errors import FormatError, RatoonError
from ratoon.estimators.persistence import parameters_from, plain_parameters
from ratoon.estimators.threads import threads_for
from ratoon.network import SparseMLP
from ratoon.storage import (
    Document,
    document_from_bytes,
    document_to_bytes,
    state_from_parts,
    state_to_parts,
)
from ratoon.training import TrainingState
from ratoon.training.contrastive import ContrastiveTraining

if TYPE_CHECKING:
    from ratoon.estimators.rbm import SparseBernoulliRBM

_MACHINE = "ratoon_machine"
_BIAS, _STATE = "visible.bias", "visible.state"


def machine_state(rbm: SparseBernoulliRBM) -> dict[str, Any]:
    """Return the parameters of an estimator and, if it is fitted, its machine."""
    found = plain_parameters(rbm.get_params(deep=False))
    if not hasattr(rbm, "_training"):
        return found
    training = rbm._training
    machine = training.machine
    state = TrainingState(
        SparseMLP([machine.layer]),
        training.plan.seed,
        epochs_done=training.epochs_done,
        history=training.history,
        evolution_state=training.evolution_state,
    )
    progress, arrays, networks = state_to_parts(state)
    arrays[_BIAS] = machine.visible_bias
    for number, values in enumerate(machine.visible_state):
        arrays[f"{_STATE}.{number}"] = values
    if hasattr(rbm, "feature_names_in_"):
        found["feature_names"] = [str(name) for name in rbm.feature_names_in_]
    found[_MACHINE] = document_to_bytes(Document({"progress": progress}, arrays, networks))
    return found


def restore_machine(rbm: SparseBernoulliRBM, state: dict[str, Any]) -> None:
    """Give an estimator the state that `machine_state` returned.

    Raises
    ------
    FormatError
        If the state is damaged.
    """
    rbm.__dict__.update(parameters_from(type(rbm), state))
    if _MACHINE not in state:
        return
    raw = state[_MACHINE]
    if not isinstance(raw, bytes | bytearray):
        raise FormatError(f"a machine must be bytes, not {type(raw).__name__}.")
    document = document_from_bytes(bytes(raw))
    try:
        arrays = dict(document.arrays)
        bias = arrays.pop(_BIAS)
        momentum = [arrays.pop(name) for name in sorted(arrays) if name.startswith(_STATE)]
        found = state_from_parts(document.config["progress"], arrays, document.networks)
        (layer,) = found.network.layers
        n_visible, n_hidden = layer.shape
        sizes = {values.shape for values in (bias, *momentum)}
        kinds = {values.dtype for values in (bias, *momentum)}
        is_whole = sizes == {(n_visible,)} and kinds == {layer.bias.dtype} and not arrays
        if not is_whole or n_hidden != rbm.n_components or not np.isfinite(bias).all():
            raise FormatError("the arrays of the machine do not fit.")
        n_threads = threads_for(rbm.n_jobs, layer.n_connections * rbm.batch_size)
        machine = BoltzmannMachine.of(layer, n_threads=n_threads)
        machine.visible_bias, machine.visible_state = bias, momentum
        training = ContrastiveTraining(
            machine, rbm._plan(found.seed, n_threads), n_gibbs=rbm.n_gibbs
        )
    except FormatError:
        raise
    except (RatoonError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"not the state of a Boltzmann machine: {error!r}") from None
    training.epochs_done = found.epochs_done
    training.history = found.history
    training.evolution_state = found.evolution_state
    rbm._training = training
    rbm.n_features_in_ = n_visible
    names = state.get("feature_names")
    if names is not None:
        rbm.feature_names_in_ = np.asarray(names, dtype=object)

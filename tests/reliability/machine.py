"""Estimators and trainings that are stopped, copied, saved and disturbed at any time.

Each has an undisturbed copy.  Whatever is done in between, both must have the
same bits, and every topology must be one: sorted, without duplicates, of a constant count.
"""

import copy
import pickle
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ratoon import SparseMLPClassifier, load
from ratoon.errors import InvalidInputError, RatoonError
from ratoon.evolution import SET, make_strategy
from ratoon.storage import Checkpoint
from ratoon.training import Callback
from tests.storage.cases import a_training, network_hash, patient

STRATEGIES = ["set", "rigl", "dsr", "deep_r", "static"]
N_EPOCHS = 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 12))
Y = np.where(X[:, 0] + X[:, 1] > 0, "well", "ill")


def check_topologies(network, counts):
    """Look at every connection of a network."""
    for layer, count in zip(network.layers, counts, strict=True):
        positions = np.sort(layer.topology.positions)
        assert positions.size == layer.n_connections == layer.weights.size
        assert count is None or positions.size == count
        assert np.all(np.diff(positions) > 0)
        assert (
            positions.size == 0 or 0 <= positions[0] <= positions[-1] < layer.topology.n_positions
        )
        assert np.isfinite(layer.weights).all()


class Machine(RuleBasedStateMachine):
    """What both machines have: a folder of their own."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())

    def teardown(self):
        shutil.rmtree(self.folder)


class EstimatorMachine(Machine):
    """`partial_fit`, with everything between two calls that users do."""

    @initialize(
        evolution=st.sampled_from(STRATEGIES),
        solver=st.sampled_from(["sgd", "adam"]),
        dtype=st.sampled_from(["float32", "float64"]),
        dropout=st.sampled_from([0.0, 0.3]),
        stopping=st.booleans(),
        max_iter=st.integers(1, 6),
    )
    def start(self, evolution, solver, dtype, dropout, stopping, max_iter):
        self.model = SparseMLPClassifier(
            (9, 7),
            density=0.4,
            evolution=evolution,
            solver=solver,
            dtype=dtype,
            dropout=dropout,
            early_stopping=stopping,
            max_iter=max_iter,
            random_state=3,
            n_jobs=1,
        )
        self.shadow = copy.deepcopy(self.model)
        self.extras = {"eval_set": (X[:15], Y[:15])} if stopping else {}
        self.train()
        # DSR and DEEP R move connections between layers; the others keep every count.
        moving = evolution in ("dsr", "deep_r")
        self.counts = [None if moving else k.n_connections for k in self.model.network_.layers]
        self.total = self.model.network_.n_connections

    @rule()
    def train(self):
        for model in (self.model, self.shadow):
            model.partial_fit(X, Y, classes=["ill", "well"], **self.extras)

    @rule()
    def save_and_load(self):
        self.model.save(self.folder / "m.ratoon")
        self.model = load(self.folder / "m.ratoon")

    @rule()
    def pickle_and_unpickle(self):
        self.model = pickle.loads(pickle.dumps(self.model))

    @rule()
    def copy_and_train_the_copy(self):
        other = copy.deepcopy(self.model)
        other.partial_fit(X[::-1], Y[::-1], **self.extras)

    @rule(n_jobs=st.sampled_from([None, 1, 2, 3]))
    def use_other_threads(self, n_jobs):
        self.model.set_params(n_jobs=n_jobs)

    @rule()
    def fail_to_save(self):
        with suppress(OSError):
            self.model.save(self.folder / "missing" / "m.ratoon")

    @rule(wrong=st.sampled_from([X[:, :5], np.full_like(X, np.nan), X[:7]]))
    def fail_to_train(self, wrong):
        try:
            self.model.partial_fit(wrong, Y, **self.extras)
        except (InvalidInputError, ValueError):
            return
        raise AssertionError("samples that do not fit were taken")

    @rule(n=st.integers(0, 1))
    def load_a_damaged_file(self, n):
        path = self.folder / "damaged"
        self.model.save(path)
        raw = bytearray(path.read_bytes())
        raw[(n * 977 + 13) % len(raw)] ^= 4
        path.write_bytes(raw)
        with suppress(RatoonError):
            load(path)
            raise AssertionError("a damaged file was taken")

    @invariant()
    def both_hold_the_same_bits(self):
        if not hasattr(self, "total"):
            return
        for mine, theirs in (
            (self.model.network_, self.shadow.network_),
            (self.model._state.network, self.shadow._state.network),
        ):
            assert network_hash(mine) == network_hash(theirs)
            check_topologies(mine, self.counts)
            assert mine.n_connections == self.total
        assert self.model.predict_proba(X).tobytes() == self.shadow.predict_proba(X).tobytes()
        assert self.model.loss_curve_ == self.shadow.loss_curve_


class EndAfter(Callback):
    """Ends a run in the middle, after so many of its epochs."""

    def __init__(self, epochs):
        self.left = epochs

    def on_epoch_end(self, training, record):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


class CheckpointMachine(Machine):
    """A training that ends after any epoch, and is begun anew with the same checkpoints."""

    @initialize(
        evolution=st.sampled_from([SET(zeta=0.3), *map(make_strategy, ["rigl", "dsr"])]),
        adam=st.booleans(),
        stopping=st.booleans(),
        every=st.integers(1, 3),
    )
    def start(self, evolution, adam, stopping, every):
        self.how = {"evolution": evolution, "adam": adam, "n_epochs": N_EPOCHS}
        self.stopping, self.every = stopping, every
        self.shadow = self.a_training()
        self.done = 0

    def a_training(self, **how):
        stopping = patient() if self.stopping else None
        return a_training(stopping=stopping, **self.how, **how)

    @precondition(lambda self: self.done < N_EPOCHS)
    @rule(epochs=st.integers(1, 5), threads=st.integers(1, 3))
    def go_on_for_a_while(self, epochs, threads):
        epochs = min(epochs, N_EPOCHS - self.done)
        checkpoint = Checkpoint(self.folder / "run", every=self.every)
        training = self.a_training(callbacks=[checkpoint, EndAfter(epochs)], n_threads=threads)
        with suppress(KeyboardInterrupt):
            training.run(restore_best=False)
        self.shadow.run(epochs, restore_best=False)
        self.done += epochs
        assert training.epochs_done == self.shadow.epochs_done == self.done
        assert network_hash(training.network) == network_hash(self.shadow.network)
        check_topologies(training.network, [None] * len(training.network.layers))

    @rule()
    def leave_something_behind(self):
        (self.folder / "run").mkdir(exist_ok=True)
        (self.folder / "run" / ".ratoon-0123456789abcdef.tmp").write_bytes(b"half")

    @precondition(lambda self: self.done > 0)
    @rule()
    def refuse_another_training(self):
        other = self.a_training(callbacks=[Checkpoint(self.folder / "run")], seed=1)
        try:
            other.run()
        except RatoonError:
            return
        raise AssertionError("a training with other data went on")

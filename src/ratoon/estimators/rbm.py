"""SparseBernoulliRBM: a sparse restricted Boltzmann machine, trained without labels (SET-RBM)."""

from __future__ import annotations

import copyreg
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ratoon import guard
from ratoon.arrays import Array
from ratoon.boltzmann import BoltzmannMachine, drawn
from ratoon.errors import InvalidParameterError
from ratoon.estimators.machine_state import machine_state, restore_machine
from ratoon.estimators.parameters import Check, between, boolean, checked, count, positive
from ratoon.estimators.persistence import is_plain_state
from ratoon.estimators.threads import threads_for
from ratoon.evolution import Strategy, make_strategy, warn_if_all_full
from ratoon.history import History
from ratoon.initialise import compare_start, connections_wanted, start_table
from ratoon.kernels.types import checked_dtype
from ratoon.layers import make_layer
from ratoon.memory import require_memory
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD
from ratoon.rng import derive_generator, derive_seed, draw_root
from ratoon.samples.base import Samples
from ratoon.samples.checked import checked_samples
from ratoon.training import TrainingPlan
from ratoon.training.contrastive import ContrastiveTraining, Rows

_CHECKS: dict[str, Check] = {
    "n_components": count,
    "epsilon": checked("epsilon"),
    "density": checked("density"),
    "evolution": checked("evolution"),
    "learning_rate": positive,
    "momentum": between(0, 1, open_high=True),
    "weight_decay": checked("weight_decay"),
    "batch_size": count,
    "n_iter": count,
    "n_gibbs": count,
    "init": checked("init"),
    "dtype": checked("dtype"),
    "shuffle": boolean,
    "verbose": checked("verbose"),
}
_OPEN = ("epsilon", "density")
_RARE = 0.01
_BLOCK = 512
_CONNECTION_BYTES = 24  # place, weight, momentum, and what drawing takes
_COPIES = 12  # of the activations of a minibatch, with the random numbers of a step


class OutOfRangeWarning(UserWarning):
    """Samples of a Bernoulli machine have values outside [0, 1]."""


class SparseBernoulliRBM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Bernoulli restricted Boltzmann machine with sparse, evolving connections: SET-RBM.

    Visible and hidden neurons are binary, or probabilities between 0 and 1.  Contrastive divergence
    trains the weights of sparse connections, and a strategy such as SET replaces the weakest of
    them during training.  Time and memory grow with the number of connections, so that both layers
    may have hundreds of thousands of neurons.

    Parameters have the names of scikit-learn's ``BernoulliRBM`` where the meaning is the same.

    Parameters
    ----------
    n_components : int, default=256
        Number of hidden neurons.
    epsilon : float, optional
        The machine has about ``epsilon * (n_features + n_components)`` connections.  11 if neither
        this nor ``density`` is given.
    density : float, optional
        Connections divided by ``n_features * n_components``, instead of ``epsilon``.
    evolution : str or strategy, default="set"
        How connections change; see `ratoon.evolution`.  "static" does not change them.
    learning_rate : float, default=0.01
        Learning rate of SGD.
    momentum : float, default=0.9
        Momentum of SGD; 0 uses none and saves its memory.
    weight_decay : float, default=0.0002
        Strength of the weight decay; biases are not decayed.
    batch_size : int, default=10
        Samples per step.
    n_iter : int, default=10
        Number of epochs.
    n_gibbs : int, default=1
        Gibbs steps per gradient: the k of CD-k.
    init : {"set", "he", "zero"}, default="set"
        Initial weights: normal with standard deviation 0.1, scaled by the number of connections, or
        0.
    dtype : {"float32", "float64"}, default="float32"
        Number type of weights, computation and transformed samples.
    shuffle : bool, default=True
        Whether to shuffle the samples in every epoch.
    n_jobs : int, optional
        Number of threads; results do not depend on it.
    verbose : bool, default=False
        Whether to print a line per epoch.
    random_state : int, generator or None, default=None
        An integer makes the result reproducible.

    Attributes
    ----------
    components_ : SciPy CSR matrix of shape (n_components, n_features)
        The weights of the connections; never a dense array.
    intercept_hidden_, intercept_visible_ : ndarray
        Biases.
    network_ : SparseMLP
        The layer from visible to hidden neurons, for displays and analyses of the topology.
    history_ : History
        One record per epoch; the loss is the mean squared reconstruction error.
    n_iter_ : int
        Number of epochs trained.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    In the negative phase visible neurons are probabilities and hidden ones are sampled.  Visible
    biases are initialised to the log odds of the feature means.  Save fitted machines with pickle:
    the file format of ratoon holds multilayer perceptrons only.

    References
    ----------
    Mocanu et al., "Scalable training of artificial neural networks with adaptive sparse
    connectivity inspired by network science", Nature Communications 9:2383, 2018.

    Hinton, "Training products of experts by minimizing contrastive divergence", Neural
    Computation 14, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> halves = np.random.default_rng(0).random((200, 1)) < 0.5
    >>> X = np.hstack([np.repeat(halves, 6, axis=1), np.repeat(~halves, 6, axis=1)]) * 1.0
    >>> rbm = SparseBernoulliRBM(30, density=0.3, n_iter=40, random_state=0).fit(X)
    >>> rbm.transform(X).shape, rbm.components_.nnz
    ((200, 30), 108)
    >>> bool(np.abs(rbm.reconstruct(X) - X).mean() < 0.05)
    True
    """

    def __init__(
        self,
        n_components: int = 256,
        *,
        epsilon: float | None = None,
        density: float | None = None,
        evolution: str | Strategy = "set",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        weight_decay: float = 0.0002,
        batch_size: int = 10,
        n_iter: int = 10,
        n_gibbs: int = 1,
        init: str = "set",
        dtype: str = "float32",
        shuffle: bool = True,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.density = density
        self.evolution = evolution
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.n_gibbs = n_gibbs
        self.init = init
        self.dtype = dtype
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    # -------------------------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any = None) -> Self:
        """Initialise a machine and train it for ``n_iter`` epochs.

        Parameters
        ----------
        X : array, SciPy matrix or table of shape (n_samples, n_features)
            Samples in rows, with values from 0 to 1.  Sparse samples are made dense one minibatch
            at a time.
        y : ignored
            Accepted for use in pipelines.

        Returns
        -------
        self
        """
        del y
        with guard.training(self, name=f"this {type(self).__name__}", nested=False):
            x = self._checked(X, reset=True)
            self._start(x)
            for _ in range(self.n_iter):
                self._run_epoch(x)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Train for one more epoch on these samples; the first call initialises a machine.

        ``n_iter`` calls with the same samples give the same result as `fit`.
        """
        del y
        with guard.training(self, name=f"this {type(self).__name__}", nested=False):
            is_first = not hasattr(self, "_training")
            x = self._checked(X, reset=is_first)
            if is_first:
                self._start(x)
            self._run_epoch(x)
        return self

    def _checked(self, X: Any, *, reset: bool) -> Samples:
        owner = type(self).__name__
        for name, check in _CHECKS.items():
            value = getattr(self, name)
            if not (name in _OPEN and value is None):
                check(owner, name, value)
        if self.epsilon is not None and self.density is not None:
            raise InvalidParameterError(f"{owner}: give either `epsilon` or `density`, not both.")
        x = checked_samples(self, X, reset=reset)
        values = x.values().data if x.is_sparse else x.values()
        if values.size and (values.min() < 0.0 or values.max() > 1.0):
            warnings.warn(
                f"{owner}: values range from {values.min():.3g} to {values.max():.3g}, but a"
                f" Bernoulli machine expects values from 0 to 1.\n"
                f"  Scale them first, for example with sklearn.preprocessing.MinMaxScaler.",
                OutOfRangeWarning,
                stacklevel=3,
            )
        return x

    def _start(self, x: Samples) -> None:
        seed = draw_root(self.random_state)
        none_given = self.epsilon is None and self.density is None
        epsilon = 11.0 if none_given else self.epsilon
        widths = (x.n_features, self.n_components)
        wanted = connections_wanted(widths, epsilon=epsilon, density=self.density)
        batch = min(self.batch_size, x.n_rows)
        lanes = -(-batch // 8) * 8  # as kernels compute them
        size = checked_dtype(self.dtype).itemsize
        require_memory(
            wanted * _CONNECTION_BYTES + _COPIES * lanes * size * sum(widths),
            f"a machine {widths[0]:,} -> {widths[1]:,} of {wanted:,} connections, with minibatches"
            f" of {batch:,} samples",
            "Reduce `n_components`, `batch_size`, or `epsilon`.",
        )
        layer = make_layer(
            widths,
            seed=derive_seed(seed, "layer", 0),
            init=self.init,
            dtype=self.dtype,
            epsilon=epsilon,
            density=self.density,
        )
        n_threads = threads_for(self.n_jobs, layer.n_connections * self.batch_size)
        machine = BoltzmannMachine.of(layer, n_threads=n_threads)
        mean = np.clip(np.asarray(x.values().mean(axis=0)).ravel(), _RARE, 1.0 - _RARE)
        machine.visible_bias[:] = np.log(mean / (1.0 - mean))
        plan = self._plan(seed, n_threads)
        if self.evolution != "set":  # the default, and not necessarily a choice
            warn_if_all_full(plan.evolution, [layer], stacklevel=4)
        self._training = ContrastiveTraining(machine, plan, n_gibbs=self.n_gibbs)
        if self.verbose:
            started = compare_start([layer.topology], epsilon=epsilon, density=self.density)
            print(start_table(started))

    def _plan(self, seed: int, n_threads: int) -> TrainingPlan:
        return TrainingPlan(
            optimizer=SGD(self.momentum, weight_decay=self.weight_decay),
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            n_epochs=self.n_iter,
            evolution=make_strategy(self.evolution),
            shuffle=self.shuffle,
            seed=seed,
            n_threads=n_threads,
        )

    def _run_epoch(self, x: Samples) -> None:
        record = self._training.run_epoch(_rows_of(x, self.dtype), x.n_rows)
        if self.verbose:
            print(
                f"[{type(self).__name__}] epoch {record.epoch + 1}: reconstruction error"
                f" {record.loss:.4g}, {record.rewired} connections rewired,"
                f" {record.train_seconds + record.rewire_seconds:.2f} s"
            )

    # ----------------------------------------------------------------------------------- using

    def transform(self, X: Any) -> Array:
        """Return the probability of every hidden neuron, (n_samples, n_components)."""
        check_is_fitted(self, "_training")
        x = checked_samples(self, X, reset=False)
        return self.network_.outputs(x, n_threads=self._machine.n_threads)

    def reconstruct(self, X: Any) -> Array:
        """Return the probability of every visible neuron, given those of the hidden neurons."""
        return self._by_blocks(X, lambda rows: self._machine.visible(self._machine.hidden(rows)).T)

    def gibbs(self, X: Any, *, n_steps: int = 1, random_state: Any = None) -> Array:
        """Return binary samples after ``n_steps`` steps of Gibbs sampling.

        Parameters
        ----------
        X : array, SciPy matrix or table of shape (n_samples, n_features)
            Samples to start from.
        n_steps : int, default=1
            Number of steps; each samples the hidden neurons, then the visible ones.
        random_state : int, generator or None, default=None
            An integer makes the result reproducible.
        """
        count(type(self).__name__, "n_steps", n_steps)
        seed, machine, blocks = draw_root(random_state), self._machine, iter(range(2**62))

        def rounds(rows: Array) -> Array:
            rng = derive_generator(seed, "gibbs", next(blocks))
            for _ in range(n_steps):
                rows = drawn(machine.visible(drawn(machine.hidden(rows), rng)), rng)
            return rows.T

        return self._by_blocks(X, rounds)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the log pseudo-likelihood of every sample; higher is better.

        It is exact; scikit-learn estimates it by flipping one random feature per sample.
        """
        return self._by_blocks(X, self._machine.pseudo_likelihood)

    def _by_blocks(self, X: Any, compute: Callable[[Array], Array]) -> Array:
        x = checked_samples(self, X, reset=False)
        rows_of = _rows_of(x, self.dtype)
        numbers = np.arange(x.n_rows)
        parts = [
            compute(np.ascontiguousarray(rows_of(numbers[first : first + _BLOCK])))
            for first in range(0, x.n_rows, _BLOCK)
        ]
        return np.concatenate(parts)

    # ----------------------------------------------------------------------------------- attributes

    def __reduce_ex__(self, protocol: Any) -> Any:
        del protocol  # pickles and copies keep every attribute
        return copyreg.__newobj__, (type(self),), super().__getstate__()  # type: ignore[attr-defined]

    def __getstate__(self) -> Any:
        """Return the state for `skops.io.dump`: parameters, and the machine as bytes of a file."""
        return machine_state(self)

    def __setstate__(self, state: Any) -> None:
        if is_plain_state(state):
            restore_machine(self, state)
        else:
            super().__setstate__(state)

    @property
    def _machine(self) -> BoltzmannMachine:
        check_is_fitted(self, "_training")
        return self._training.machine

    @property
    def components_(self) -> Any:
        """Weights as a SciPy CSR matrix, (n_components, n_features)."""
        return self._machine.layer.to_csr().T.tocsr()

    @property
    def intercept_hidden_(self) -> Array:
        """Biases of the hidden neurons."""
        return self._machine.layer.bias

    @property
    def intercept_visible_(self) -> Array:
        """Biases of the visible neurons."""
        return self._machine.visible_bias

    @property
    def network_(self) -> SparseMLP:
        """The layer from visible to hidden neurons."""
        return SparseMLP([self._machine.layer])

    @property
    def history_(self) -> History:
        """One record per epoch."""
        check_is_fitted(self, "_training")
        return self._training.history

    @property
    def n_iter_(self) -> int:
        """Number of epochs trained."""
        check_is_fitted(self, "_training")
        return self._training.epochs_done

    @property
    def _n_features_out(self) -> int:
        return self._machine.layer.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _rows_of(x: Samples, dtype: str) -> Rows:
    """Return a function that maps row indices to dense samples, (n_features, n_rows)."""

    def rows_of(numbers: NDArray[np.int64]) -> Array:
        return x.dense(numbers).T.astype(dtype)

    return rows_of

"""SparseMLPRegressor."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array

from ratoon.arrays import Array
from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError
from ratoon.estimators.base import BaseSparseMLP
from ratoon.estimators.data import Labelled
from ratoon.estimators.foreign import with_hints
from ratoon.estimators.parameters import short
from ratoon.losses import LOSSES
from ratoon.samples.checked import refuse_misleading
from ratoon.samples.statistics import feature_statistics
from ratoon.storage.rules import Fields
from ratoon.training import TrainingData

REGRESSION_LOSSES = tuple(name for name, loss in LOSSES.items() if loss.is_for_numbers)


class SparseMLPRegressor(RegressorMixin, BaseSparseMLP):
    """Predict numbers with a sparse network that rewires while it learns.

    Handles one or several targets per sample.  Targets are standardised inside, so losses are in
    units of their variance.  Time and memory grow with the number of connections, never with the
    product of layer widths.  A parameter that would have no effect raises an error.

    Parameters
    ----------
    hidden_layer_sizes : "auto", int or sequence of int, default="auto"
        Widths of the hidden layers; ``()`` for none at all.
    epsilon : float, optional
        SET's measure of density: a layer gets about ``epsilon * (n_in + n_out)`` connections, at
        most all.  Not Adam's constant, which is ``adam_eps``.
    density : float, optional
        Fraction of positions that are connections, in (0, 1].  Give one of the two or neither.
    zeta : float, optional
        Fraction of a layer's connections replaced at a rewiring.  None is the default of the
        strategy, 0.3 for most.  Only for named strategies that have it.
    evolution : "auto", str or strategy, default="auto"
        How connections change: a name of ``ratoon.evolution.strategy_names()``, or a strategy
        object with its own parameters.  ``"set"`` is SET as published, ``"static"`` changes
        nothing.  ``"auto"`` is ``"rigl"`` for many samples of many dense features, ``"set"`` with
        ``preset="paper"``, and else ``"annealed_set"``: new connections start at 0, fewer and
        fewer are replaced, and none in the second half of training.
    activation : str, default="relu"
        Of the hidden layers: a name of ``ratoon.activations.ACTIVATIONS``, such as ``"relu"``,
        ``"leaky_relu"``, ``"all_relu"``, ``"silu"`` or ``"tanh"``.
    slope : float, optional
        Slope of leaky ReLU (default 0.01) and All-ReLU (default 0.6) below zero.
    dropout : float, optional
        Fraction of hidden activations set to 0 at each step.
    loss : str, default="auto"
        ``"squared_error"``, which is also ``"auto"``, or ``"huber"``: the squared error up to one
        standard deviation of the target, and linear beyond, so that outliers count less.
    solver : "auto", "ridge", name of ``ratoon.optimizers.OPTIMIZERS`` or optimizer, default="auto"
        ``"ridge"`` solves for the network in closed form instead of training it step by step: a
        committee of sparse hidden layers and linear paths, weighted by cross-validation inside the
        training rows (`ratoon.committee`).  ``"auto"`` does so for 20 to 3,000 samples of at least
        100 features if no parameter that the closed form cannot honour differs from its default.
        With more samples, and then nothing set, networks of several kinds are averaged
        (`ratoon.estimators.averaged`).  Otherwise it is SGD if ``learning_rate_init`` is given, and
        else the preset's.  An optimizer object of ``ratoon.optimizers`` has its own parameters.
    learning_rate_init : float, optional
        Learning rate before the schedule.
    learning_rate : "auto", "constant", "cosine", "linear", "step" or callable, default="auto"
        Schedule: a factor of the learning rate as a function of the progress of training, which
        goes from 0 to 1 in ``max_iter`` epochs.
    learning_rate_min : float, default=0.0
        Smallest learning rate that the schedule falls to, as ``eta_min`` in PyTorch.
    warm_up : float, default=0.0
        Fraction of training during which the learning rate rises.
    momentum : float, default=0.9
        Momentum of SGD.
    nesterovs_momentum : bool, default=False
        Whether SGD uses Nesterov momentum.
    weight_decay : float, optional
        Strength of the decay of weights towards 0.
    decay : "auto", "coupled" or "released", default="auto"
        ``"coupled"`` multiplies the weight decay of SGD by the learning rate, as usual;
        ``"released"`` does not, and decays biases too, as the released code of SET.
    beta_1, beta_2, adam_eps : float
        Decay rates of Adam's moments, and its numerical constant.
    batch_size : "auto" or int, default="auto"
        Samples per step.  ``"auto"`` takes all up to 64 samples, and otherwise makes the
        minibatches of an epoch equally large.
    max_iter : int, optional
        Epochs.
    shuffle : bool, default=True
        Whether every epoch uses a new order of the samples.
    augment : str or Augment, optional
        How images change at random while training reads them; predictions, scores and the scaling
        are of the images as they are.  ``"shift"``, ``"shift+flip"`` or ``"shift=4,flip"``: by so
        many pixels, an eighth of the image by default, and left to right.  The shape of the images
        is that of the data set, a square, or given: ``"shift,shape=3x32x32"`` or an
        `ratoon.Augment`.  Not for sparse X nor the closed form.
    init, output_init : str, optional
        Initial weights of all layers, and of the last one: ``"he"``, ``"set"`` (standard deviation
        0.1) or ``"zero"``.
    start : str, array or network, default="auto"
        How first connections are drawn.  ``"exact"``: without repetition, so that their number is
        exact; ``"paper"``: with, as in the released code of SET; ``"brf"``, ``"fan_in"``,
        ``"small_world"``, ``"scale_free"``: by the function of that name in `ratoon.initialise`.
        Or, those of the first layer, in proportion to how strongly each feature is tied to the
        target: measured on the training rows by the F statistic (``"f"``), its square
        (``"f_squared"``), mutual information (``"mutual_info"``) or the lasso's path (``"l1"``),
        given as one number per feature, or taken from another fitted network.
    topology : sequence, optional
        First connections, layer by layer: a `ratoon.topology.Topology`, a SciPy matrix (inputs x
        outputs) of any values, or None for a random start.  A matrix inside
        `ratoon.datasets.Within` is a limit: the layer has connections only there, with any
        strategy.  Layers that are not listed start at random.
    scale : "auto", "standard", "global" or None, default="auto"
        How features are read, learnt from the training rows, sample weights considered; X itself
        is not copied.  ``"standard"`` reads z-scores.  ``"global"`` divides all features by one
        number, so that rare pixels or words are not inflated.  ``"auto"`` is ``"global"`` for
        features in one unit: half of the dense ones have the same smallest and largest value, or
        X is sparse and its largest values differ less than a thousandfold.  Features of a sparse X
        are not centred; features that are constant in training are read as 0.
    clip : float, optional
        Largest magnitude of a feature after scaling; 0 for no limit.
    prepare : str or Prepare, optional
        How samples are prepared before the network sees them, learned from the training rows, kept
        in the file and applied by every prediction: ``"log2"``, ``"log2=auto"``, ``"quantile"``,
        ``"center_groups"`` or several of them separated by commas; see `ratoon.Prepare`.
    early_stopping : "auto" or bool, default="auto"
        Whether to stop when the score on validation data no longer rises.  ``"auto"`` does so in
        `fit` if ``max_iter`` and ``preset`` are open and there is an ``eval_set`` or at least
        10,000 samples.  Where `fit` averages networks, each keeps its best epoch.
    validation_fraction : float, default=0.1
        Fraction of the training data held back for early stopping.  Not with ``eval_set``.
    n_iter_no_change : int, optional
        Epochs without a better validation score before early stopping; None is 10.  Without
        early stopping: epochs without a lower training loss before training stops; None is no
        limit.
    tol : float, default=1e-4
        How much better the score or the loss has to be.
    restore_best : bool, default=True
        Whether early stopping keeps the network of the best epoch.
    warm_start : bool, default=False
        Whether `fit` continues from the network of the last call.
    preset : None, "paper", "fast" or "large", default=None
        Source of the values of parameters left at None or ``"auto"``.
    callbacks : Callback or sequence of them, optional
        Objects of `ratoon.training.Callback`.  Callbacks imply iterative training.  Those of
        scikit-learn are passed to ``set_callbacks``.
    n_jobs : int, optional
        Threads.  None takes one for small networks and all cores otherwise; results are the same
        to the bit.
    random_state : int, generator or None, default=None
        Same integer, same network.
    dtype : "auto", "float32", "float64" or "bfloat16", default="auto"
        Numbers to compute with.  ``"bfloat16"`` computes in float32 and keeps the weights in 16
        bits, rounded at random after every step: a connection then takes 10 bytes instead of 12,
        or 6 instead of 8 without momentum.  ``"auto"`` is float64 while connections times samples
        are at most four million, and float32 above.
    verbose : int, default=0
        1 for a progress bar, or a line in closed form.

    Attributes
    ----------
    n_features_in_, feature_names_in_
        As in scikit-learn.
    settings_ : Settings
        All settings of the last fit, and why it was done so.
    solver_ : str
        ``"closed form"``, ``"sgd"``, ``"adam"``, or the class name of an optimizer object.
    network_ : SparseMLP
        The network that predicts.
    history_ : History
        One record per epoch: loss, scores, connections, seconds.
    n_iter_, loss_, loss_curve_
        Epochs so far; training loss of the last, and of all of them.
    validation_scores_ : list or None
        R^2 on the validation data after each epoch.
    best_iteration_ : int or None
        Epoch, counted from 0, with the best validation score.
    feature_importances_ : ndarray of shape (n_features,)
        Importance of each feature: magnitude of its weights times the root of 1 + F / 5, where F is
        its F statistic on the training rows.  The sum is 1.
    ranking_ : Ranking
        The features by importance, with direction, difference, t or F, p value and FDR.
    group_names_ : ndarray of str
        Names of the first neurons, if `topology` was made from named groups.
    coefs_, intercepts_ : list
        Weights as SciPy matrices (inputs x outputs), and biases.
    report_ : FitReport
        How the network was fitted, and a table of the layers: connections, requested and
        achieved density, memory, rewired connections.

    Examples
    --------
    >>> import numpy as np
    >>> from ratoon import SparseMLPRegressor
    >>> X = np.random.default_rng(0).normal(size=(300, 10))
    >>> y = 5.0 + np.abs(X[:, 0]) - X[:, 1]
    >>> SparseMLPRegressor(random_state=0).fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.8
    True
    """

    _is_classifier = False

    @with_hints
    def __init__(
        self,
        hidden_layer_sizes: Any = "auto",
        *,
        epsilon: float | None = None,
        density: float | None = None,
        zeta: float | None = None,
        evolution: Any = "auto",
        activation: str = "relu",
        slope: float | None = None,
        dropout: float | None = None,
        loss: str = "auto",
        solver: Any = "auto",
        learning_rate_init: float | None = None,
        learning_rate: Any = "auto",
        learning_rate_min: float = 0.0,
        warm_up: float = 0.0,
        momentum: float = 0.9,
        nesterovs_momentum: bool = False,
        weight_decay: float | None = None,
        decay: str = "auto",
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        adam_eps: float = 1e-8,
        batch_size: Any = "auto",
        max_iter: int | None = None,
        shuffle: bool = True,
        augment: Any = None,
        init: str = "auto",
        output_init: str | None = None,
        start: str = "auto",
        topology: Any = None,
        scale: str | None = "auto",
        clip: float | None = None,
        prepare: Any = None,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        restore_best: bool = True,
        warm_start: bool = False,
        preset: str | None = None,
        callbacks: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        dtype: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.epsilon = epsilon
        self.density = density
        self.zeta = zeta
        self.evolution = evolution
        self.activation = activation
        self.slope = slope
        self.dropout = dropout
        self.loss = loss
        self.solver = solver
        self.learning_rate_init = learning_rate_init
        self.learning_rate = learning_rate
        self.learning_rate_min = learning_rate_min
        self.warm_up = warm_up
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.weight_decay = weight_decay
        self.decay = decay
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.adam_eps = adam_eps
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.augment = augment
        self.init = init
        self.output_init = output_init
        self.start = start
        self.topology = topology
        self.scale = scale
        self.clip = clip
        self.prepare = prepare
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.restore_best = restore_best
        self.warm_start = warm_start
        self.preset = preset
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.dtype = dtype
        self.verbose = verbose

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, eval_set: Any = None
    ) -> Self:
        """Train for exactly one epoch more.

        Calling it ``max_iter`` times with the same data is the same, bit for bit, as `fit`.

        Parameters
        ----------
        X, y, sample_weight, eval_set
            As in `fit`.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, sample_weight, eval_set, None)

    # ------------------------------------------------------------------------------- targets

    def _check_target(self, y: Any) -> Array:
        refuse_misleading(y, "y")
        checked = check_array(
            y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_min_samples=0
        )
        return np.asarray(checked)

    def _learn_targets(self, labelled: Labelled, classes: Any) -> None:
        del classes
        found = feature_statistics(_columns(labelled.y), labelled.weights)
        self._one_column = labelled.y.ndim == 1
        self._target_mean = found.mean
        self._target_std = np.where(found.constant, 1.0, found.std)

    def _compare_targets(self, labelled: Labelled, classes: Any) -> None:
        del classes
        y = labelled.y
        if _columns(y).shape[1] != self._target_mean.size:
            raise InvalidInputError(
                f"y has {_columns(y).shape[1]} columns; at the first call there were"
                f" {self._target_mean.size}."
            )

    def _n_outputs(self) -> int:
        return int(self._target_mean.size)

    def _loss(self) -> str:
        if self.loss == "auto":
            return "squared_error"
        if self.loss not in REGRESSION_LOSSES:
            raise InvalidParameterError(
                f'{type(self).__name__}: `loss` must be "auto" or one of {REGRESSION_LOSSES}, got'
                f" {short(self.loss)}."
            )
        return self.loss

    def _encode(self, y: Array, smoothing: float, where: str) -> Array:
        del smoothing
        if _columns(y).shape[1] != self._target_mean.size:
            raise InvalidInputError(
                f"{where} has {_columns(y).shape[1]} columns, expected {self._target_mean.size}."
            )
        return np.asarray((_columns(y) - self._target_mean) / self._target_std)

    def _weigh(self, labelled: Labelled) -> Array | None:
        return labelled.weights

    def _strata(self, y: Array) -> Array | None:
        del y
        return None

    def _score(self, outputs: Array, data: TrainingData) -> float:
        """Return R^2, the mean over outputs."""
        targets = data.targets.astype(np.float64)
        weights = np.ones(targets.shape[0]) if data.weights is None else data.weights
        weights = (weights / weights.sum())[:, None]
        error = (weights * np.square(outputs - targets)).sum(axis=0)
        mean = (weights * targets).sum(axis=0)
        spread = (weights * np.square(targets - mean)).sum(axis=0)
        score = np.where(spread > 0, 1.0 - error / np.where(spread > 0, spread, 1.0), -error)
        return float(score.mean())

    def _target_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        arrays = {"target_mean": self._target_mean, "target_std": self._target_std}
        return {"one_column": self._one_column}, arrays

    def _restore_targets(self, targets: dict[str, Any], arrays: dict[str, Array]) -> None:
        self._one_column = Fields(targets, "targets", {"one_column"}).flag("one_column")
        mean, std = arrays.pop("target_mean"), arrays.pop("target_std")
        if mean.ndim != 1 or mean.shape != std.shape or not (std > 0).all():
            raise FormatError("targets need one mean and one positive spread each")
        self._target_mean, self._target_std = mean, std

    # ---------------------------------------------------------------------------- prediction

    def predict(self, X: Any) -> Array:
        """Return the predicted targets, of the shape y had."""
        outputs = self._outputs(X) * self._target_std + self._target_mean
        return outputs[:, 0] if self._one_column else outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _columns(y: Array) -> Array:
    return y[:, None] if y.ndim == 1 else y

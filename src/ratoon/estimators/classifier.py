"""SparseMLPClassifier."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import assert_all_finite, column_or_1d

from ratoon.arrays import Array
from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError
from ratoon.estimators.base import BaseSparseMLP
from ratoon.estimators.data import Labelled
from ratoon.estimators.foreign import with_hints
from ratoon.estimators.parameters import short
from ratoon.estimators.targets import (
    checked_classes,
    class_probabilities,
    class_weights,
    codes_of,
    encode_labels,
    label_probabilities,
    log_class_probabilities,
    refuse_padding,
    smoothed,
)
from ratoon.losses import LOSSES
from ratoon.samples.checked import refuse_misleading
from ratoon.storage.rules import Fields
from ratoon.training import TrainingData

CLASSIFIER_LOSSES = tuple(name for name, loss in LOSSES.items() if loss.reading)


class SparseMLPClassifier(ClassifierMixin, BaseSparseMLP):
    """Classify with a sparse network that rewires while it learns.

    Handles two or more classes, and several labels per sample (``y`` with columns of 0 and 1).
    Time and memory grow with the number of connections, never with the product of layer widths.
    A parameter that would have no effect raises an error.

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
        ``"softmax_cross_entropy"``, ``"sigmoid_cross_entropy"`` or ``"squared_error"`` (on -1 and
        +1).  ``"auto"`` is softmax, and sigmoid for several labels per sample.
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
    label_smoothing : float, optional
        Fraction of a target that is spread over all classes.
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
    class_weight : None, "balanced" or dict, default=None
        Weight of every class; ``"balanced"`` makes all weigh the same in the training data.
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
    classes_ : ndarray
        The classes, sorted; for several labels per sample their numbers.
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
        Accuracy on the validation data after each epoch.
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
    >>> from ratoon import SparseMLPClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 10))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "opposite")
    >>> model = SparseMLPClassifier((100, 100), epsilon=5, random_state=0).fit(X[:200], y[:200])
    >>> model.score(X[200:], y[200:]) > 0.8
    True
    """

    _is_classifier = True

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
        label_smoothing: float | None = None,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        restore_best: bool = True,
        class_weight: Any = None,
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
        self.label_smoothing = label_smoothing
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.restore_best = restore_best
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.preset = preset
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.dtype = dtype
        self.verbose = verbose

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
    ) -> Self:
        """Train for exactly one epoch more.

        Calling it ``max_iter`` times with the same data is the same, bit for bit, as `fit`.

        Parameters
        ----------
        X, y, sample_weight, eval_set
            As in `fit`.
        classes : array-like, optional
            All classes there will be; needed at the first call unless ``y`` has all of them.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, sample_weight, eval_set, classes)

    # ------------------------------------------------------------------------------- targets

    def _check_target(self, y: Any) -> Array:
        refuse_misleading(y, "y")
        if isinstance(y, list | tuple):
            refuse_padding(y)  # before NumPy drops it
        if scipy.sparse.issparse(y):
            y = y.toarray()  # labels of samples: no wider than the network's output
        if np.asarray(y).dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind == "multiclass-multioutput":
            raise InvalidInputError(
                "y has several columns with more than two classes.\n"
                "  Several labels per sample are columns of 0 and 1; for several targets with more"
                " than two classes, wrap the classifier in MultiOutputClassifier."
            )
        if kind == "multilabel-indicator":
            return np.asarray(y)
        return np.asarray(column_or_1d(y, warn=True))

    def _learn_targets(self, labelled: Labelled, classes: Any) -> None:
        y, weights = labelled.y, labelled.weights
        self._multilabel = y.ndim == 2
        if self._multilabel:
            self.classes_ = np.arange(y.shape[1])
            return
        self.classes_ = checked_classes(y if classes is None else classes)
        codes = codes_of(y, self.classes_, where="y")
        seen = self.classes_ if weights is None else np.unique(codes[weights > 0])
        if seen.size < 2:
            unweighted = "" if weights is None else "\n  Samples of weight 0 do not count."
            raise InvalidInputError(
                f"y has one class only, {self.classes_[:1].tolist()!r}: a classifier needs at"
                f" least two.{unweighted}"
            )
        class_weights(self.class_weight, self.classes_, codes, weights)  # raises if impossible

    def _compare_targets(self, labelled: Labelled, classes: Any) -> None:
        y = labelled.y
        if self._multilabel != (y.ndim == 2) or (y.ndim == 2 and y.shape[1] != self.classes_.size):
            raise InvalidInputError(
                f"y has shape {y.shape}; at the first call there were {self.classes_.size}"
                f" {'labels per sample' if self._multilabel else 'classes'}."
            )
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise InvalidInputError(
                f"`classes={np.unique(classes).tolist()}` is not the same as on last call to"
                f" partial_fit, was: {self.classes_.tolist()}."
            )

    def _n_outputs(self) -> int:
        return int(self.classes_.size)

    def _loss(self) -> str:
        if self.loss == "auto":
            return "sigmoid_cross_entropy" if self._multilabel else "softmax_cross_entropy"
        if self.loss not in CLASSIFIER_LOSSES:
            raise InvalidParameterError(
                f'{type(self).__name__}: `loss` must be "auto" or one of {CLASSIFIER_LOSSES}, got'
                f" {short(self.loss)}."
            )
        if self._multilabel and self.loss == "softmax_cross_entropy":
            raise InvalidParameterError(
                "softmax needs mutually exclusive classes, and y has several labels per sample.\n"
                '  Set `loss="sigmoid_cross_entropy"`, or leave it at "auto".'
            )
        return self.loss

    def _encode(self, y: Array, smoothing: float, where: str) -> Array:
        how: Any = {"loss": self._loss(), "smoothing": smoothing}
        if self._multilabel:
            return smoothed(np.asarray(y, dtype=np.float64), 2, **how)
        return encode_labels(codes_of(y, self.classes_, where=where), self.classes_.size, **how)

    def _weigh(self, labelled: Labelled) -> Array | None:
        if self._multilabel:
            if self.class_weight is not None:
                raise InvalidParameterError(
                    "`class_weight` needs mutually exclusive classes, and y has several labels"
                    " per sample. Use `sample_weight`."
                )
            return labelled.weights
        codes = codes_of(labelled.y, self.classes_, where="y")
        return class_weights(self.class_weight, self.classes_, codes, labelled.weights)

    def _strata(self, y: Array) -> Array | None:
        return None if self._multilabel else codes_of(y, self.classes_, where="y")

    def _score(self, outputs: Array, data: TrainingData) -> float:
        if self._multilabel:
            edge = 0.0 if self._loss() == "squared_error" else 0.5
            right = ((outputs > 0) == (data.targets > edge)).all(axis=1)
        else:
            right = outputs.argmax(axis=1) == data.targets.argmax(axis=1)
        return float(np.average(right, weights=data.weights))

    def _target_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        is_text = self.classes_.dtype.kind == "O"
        return {"multilabel": self._multilabel, "objects": is_text}, {"classes": self.classes_}

    def _restore_targets(self, targets: dict[str, Any], arrays: dict[str, Array]) -> None:
        fields = Fields(targets, "targets", {"multilabel", "objects"})
        self._multilabel = fields.flag("multilabel")
        classes = arrays.pop("classes")
        if classes.ndim != 1 or not np.array_equal(np.unique(classes), classes):
            raise FormatError("classes must be sorted, each of them once")
        self.classes_ = classes.astype(object) if fields.flag("objects") else classes

    # ---------------------------------------------------------------------------- prediction

    def decision_function(self, X: Any) -> Array:
        """Return raw outputs, (samples, classes); for two classes their difference, (samples,)."""
        outputs = self._outputs(X)
        if not self._multilabel and self.classes_.size == 2:
            return np.asarray(outputs[:, 1] - outputs[:, 0])
        return outputs

    def predict(self, X: Any) -> Array:
        """Return the class of every sample; for several labels per sample, columns of 0 and 1."""
        outputs = self._outputs(X)
        if self._multilabel:
            return (outputs > 0).astype(np.intp)
        return np.asarray(self.classes_[outputs.argmax(axis=1)])

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class, (samples, classes)."""
        outputs = self._outputs(X)
        if self._multilabel:
            return label_probabilities(self._loss(), outputs)
        return class_probabilities(self._loss(), outputs)

    def predict_log_proba(self, X: Any) -> Array:
        """Return logarithms of the probabilities."""
        outputs = self._outputs(X)
        if self._multilabel:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(label_probabilities(self._loss(), outputs)))
        return log_class_probabilities(self._loss(), outputs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

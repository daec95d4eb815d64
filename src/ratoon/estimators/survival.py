"""SparseMLPSurvival."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ratoon.arrays import Array
from ratoon.committee import Committee
from ratoon.errors import FormatError, InvalidInputError
from ratoon.estimators.base import BaseSparseMLP
from ratoon.estimators.closed_form import solve_survival
from ratoon.estimators.data import Labelled
from ratoon.estimators.presets import Shape
from ratoon.estimators.strengths import strengths
from ratoon.estimators.survival_targets import checked_survival
from ratoon.explain import Associations, associations
from ratoon.history import EpochRecord
from ratoon.samples.base import Rows
from ratoon.storage.rules import Fields
from ratoon.survival import (
    StepFunction,
    baseline_hazard,
    concordance_index,
    martingale_residuals,
)
from ratoon.training import CoxRunner, TrainingData
from ratoon.training.cox import GIVEN_GRADIENT, cox_loss

BATCH, LARGE_BATCH, MANY_SAMPLES = 64, 256, 4096

TRAINING = {"solver": "adam", "learning_rate_init": 2e-3, "max_iter": 50}
"""Training settings that differ from those of regression.

Measured on six data sets (`research/2026-11-survival.md`): risk sets of 64 samples predict as well
as those of all samples, or better, and more epochs overfit.
"""


class SparseMLPSurvival(BaseSparseMLP):
    """Predict risk and survival with a sparse network and Cox's partial likelihood.

    The hazard of a sample is a baseline hazard times the exponential of the network's output, as in
    Cox regression (Cox, J. R. Stat. Soc. B 34:187-220, 1972), so outputs are log risks.  Time and
    memory grow with the number of connections, plus n log n for n samples.  A parameter that would
    have no effect raises an error.

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
        nothing.  ``"auto"`` is ``"annealed_set"``: new connections start at 0, fewer and fewer are
        replaced, and none in the second half of training.  With ``preset="paper"`` it is
        ``"set"``.
    activation : str, default="relu"
        Of the hidden layers: a name of ``ratoon.activations.ACTIVATIONS``, such as ``"relu"``,
        ``"leaky_relu"``, ``"all_relu"``, ``"silu"`` or ``"tanh"``.
    slope : float, optional
        Slope of leaky ReLU (default 0.01) and All-ReLU (default 0.6) below zero.
    dropout : float, default=0.0
        Fraction of hidden activations set to 0 at each step.
    ties : {"efron", "breslow"}, default="efron"
        How events at the same time count in the partial likelihood.
    solver : "auto", "ridge", name of ``ratoon.optimizers.OPTIMIZERS`` or optimizer, default="auto"
        ``"ridge"`` solves for the network instead of training it step by step: a committee of
        ridge-penalised Cox regressions on the features and on sparse hidden layers, weighted by
        their cross-validated partial likelihood (`ratoon.committee.survival`).  ``"auto"`` does so
        for 20 to 3,000 samples of at least 100 features if no parameter that it cannot honour
        differs from its default; otherwise it is an optimizer of the preset.
    learning_rate_init : float, optional
        Learning rate before the schedule.
    learning_rate : "auto", "constant", "cosine", "step" or callable, default="auto"
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
        Samples per step.  The samples at risk are those of the same minibatch, so minibatches
        should not be small: ``"auto"`` takes about 64, and 256 of more than 4,096 samples.
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
        martingale residuals of the training rows: by the F statistic (``"f"``), its square
        (``"f_squared"``), mutual information (``"mutual_info"``) or the lasso's path (``"l1"``),
        given as one number per feature, or taken from another fitted network.
    topology : sequence, optional
        First connections, layer by layer: a `ratoon.topology.Topology`, a SciPy matrix (inputs x
        outputs) of any values, or None for a random start.  A matrix inside
        `ratoon.datasets.Within` is a limit: the layer has connections only there, with any
        strategy.  Layers that are not listed start at random.
    scale : "standard" or None, default="standard"
        Whether features are read as z-scores, learnt from the training rows, sample weights
        considered.  X itself is not copied.  Features of a sparse X are scaled but not centred;
        features that are constant in training are read as 0.
    clip : float, optional
        Largest magnitude of a feature after scaling; 0 for no limit.
    prepare : str or Prepare, optional
        How samples are prepared before the network sees them, learned from the training rows, kept
        in the file and applied by every prediction: ``"log2"``, ``"log2=auto"``, ``"quantile"``,
        ``"center_groups"`` or several of them separated by commas; see `ratoon.Prepare`.
    early_stopping : bool, default=False
        Whether to stop when the score on validation data no longer rises.
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
    event_times_ : ndarray
        Distinct times of the training samples, ascending.
    cumulative_baseline_hazard_ : ndarray
        Cumulative hazard of a sample with risk 0 at each of them.  After a closed-form fit it is
        that of cross-validated risks: those of fitted samples are too extreme.
    cross_validated_outputs_ : ndarray of shape (n_samples, 1)
        After a closed-form fit: risks of the training samples by members that were fitted without
        them; NaN for samples that were not left out.
    settings_, solver_, network_, history_, n_iter_, loss_, loss_curve_, report_
        As for `SparseMLPRegressor`; losses are per event, validation scores are Harrell's C.

    Examples
    --------
    >>> import numpy as np
    >>> from ratoon import SparseMLPSurvival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 10))
    >>> time, censored = rng.exponential(np.exp(-X[:, 0])), rng.exponential(2.0, 300)
    >>> y = np.empty(300, dtype=[("event", bool), ("time", float)])
    >>> y["event"], y["time"] = time <= censored, np.minimum(time, censored)
    >>> model = SparseMLPSurvival(random_state=0).fit(X[:200], y[:200])
    >>> model.score(X[200:], y[200:]) > 0.6
    True
    >>> model.predict_survival_function(X[:2])[0](0.5) > 0
    True
    """

    _is_classifier = False
    _can_average = False  # Cox's loss compares samples, so outputs cannot be averaged by rows
    _estimator_type = "survival"

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
        dropout: float = 0.0,
        ties: str = "efron",
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
        scale: str | None = "standard",
        clip: float | None = None,
        prepare: Any = None,
        early_stopping: bool = False,
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
        self.ties = ties
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

    def _preset_changes(self, shape: Shape) -> dict[str, Any]:
        """Return what differs from the preset of regression: risk sets need large minibatches."""
        if self.preset is not None:
            return {}
        n = shape.n_samples
        batch = min(n, BATCH if n <= MANY_SAMPLES else LARGE_BATCH)
        p = shape.n_features
        return {
            **TRAINING,
            "hidden_layer_sizes": (min(2000, max(100, p // 4)),),
            "epsilon": min(10.0, max(1.0, 1e6 / p)),
            "batch_size": batch,
        }

    def _check_target(self, y: Any) -> Array:
        return checked_survival(y)

    def _learn_targets(self, labelled: Labelled, classes: Any) -> None:
        del classes
        if not labelled.y[:, 0].any():
            raise InvalidInputError("y has no event, only censored samples: nothing to learn from.")

    def _compare_targets(self, labelled: Labelled, classes: Any) -> None:
        """Accept any targets: they were checked."""

    def _n_outputs(self) -> int:
        return 1

    def _loss(self) -> str:
        return GIVEN_GRADIENT

    def _encode(self, y: Array, smoothing: float, where: str) -> Array:
        """Return events, and ranks of times, which every number type holds exactly."""
        del smoothing, where
        ranks = np.unique(y[:, 1], return_inverse=True)[1].astype(np.float64)
        return np.column_stack([y[:, 0], ranks])

    def _weigh(self, labelled: Labelled) -> Array | None:
        return labelled.weights

    def _strata(self, y: Array) -> Array | None:
        return y[:, 0].astype(np.int64)

    def _strengths(self, how: Any, labelled: Labelled, held: Rows | None) -> NDArray[np.float64]:
        weights = labelled.weights_without(held)
        residuals = self._residuals(labelled, weights)
        return strengths(how, labelled.x, residuals, weights, has_classes=False)

    def _associations_of(self, labelled: Labelled, held: Rows | None) -> Associations:
        """Return how features go with the martingale residuals of the training rows."""
        weights = labelled.weights_without(held)
        return associations(
            labelled.x, self._residuals(labelled, weights), weights, None, seed=self._state.seed
        )

    def _residuals(self, labelled: Labelled, weights: Array | None) -> Array:
        event, time = labelled.y[:, 0] > 0, labelled.y[:, 1]
        found = martingale_residuals(event, time, weights)
        if weights is not None:
            found = np.divide(found, weights, out=np.zeros_like(found), where=weights > 0)
        return found[:, None]

    def _score(self, outputs: Array, data: TrainingData) -> float:
        weights = data.weights
        return concordance_index(data.targets[:, 0] > 0, data.targets[:, 1], outputs[:, 0], weights)

    def _runner(self, targets: Array, weights: Array | None) -> CoxRunner | None:
        return CoxRunner(targets, weights, self.ties)

    def _validation_loss(self, outputs: Array, data: TrainingData) -> float:
        return cox_loss(outputs, data.targets, data.weights, self.ties)

    def _solved(self, labelled: Labelled, seed: int) -> tuple[Committee, EpochRecord]:
        return solve_survival(
            labelled.x,
            self._encode(labelled.y, 0.0, "y"),
            labelled.weights,
            self.ties,
            seed,
            None if labelled.groups is None else labelled.groups.codes,
        )

    def _finished(self, labelled: Labelled) -> None:
        """Estimate the baseline hazard from risks of the training samples."""
        event, time, weights = labelled.y[:, 0] > 0, labelled.y[:, 1], labelled.weights
        if not self.settings_.is_closed_form:
            scores = self._outputs_of(labelled.x)[:, 0]
            used = np.arange(labelled.n_samples)
        else:
            scores = np.full(labelled.n_samples, np.nan)
            counted = np.arange(scores.size) if weights is None else np.flatnonzero(weights > 0)
            scores[counted] = self.cross_validated_outputs_[:, 0]
            used = np.flatnonzero(np.isfinite(scores))
        self.event_times_, self.cumulative_baseline_hazard_ = baseline_hazard(
            event[used],
            time[used],
            scores[used],
            None if weights is None else weights[used],
            ties=self.ties,
        )

    def _target_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"ties": self.ties}, {
            "event_times": self.event_times_,
            "cumulative_baseline_hazard": self.cumulative_baseline_hazard_,
        }

    def _restore_targets(self, targets: dict[str, Any], arrays: dict[str, Array]) -> None:
        Fields(targets, "targets", {"ties"}).choice("ties", ("efron", "breslow"))
        times, hazard = arrays.pop("event_times"), arrays.pop("cumulative_baseline_hazard")
        is_valid = times.ndim == 1 and times.shape == hazard.shape and times.size > 0
        if not is_valid or np.any(np.diff(times) <= 0) or np.any(np.diff(hazard, prepend=0) < 0):
            raise FormatError("the baseline hazard needs ascending times and must not decrease")
        self.event_times_, self.cumulative_baseline_hazard_ = times, hazard

    # ---------------------------------------------------------------------------- prediction

    def predict(self, X: Any) -> Array:
        """Return the log risk of every sample: higher for an earlier event."""
        return np.asarray(self._outputs(X)[:, 0])

    def predict_survival_function(self, X: Any, return_array: bool = False) -> Array:
        """Return the probability of every sample to have no event, as a function of time.

        Parameters
        ----------
        X : array, table, ...
            Samples.
        return_array : bool, default=False
            Return an array (samples, times) of the values at `event_times_` instead of functions.

        Returns
        -------
        ndarray of StepFunction, of shape (n_samples,)
        """
        return _functions(
            self.event_times_, np.exp(-self._hazards(X)), 1.0, return_array=return_array
        )

    def predict_cumulative_hazard_function(self, X: Any, return_array: bool = False) -> Array:
        """Return the cumulative hazard of every sample as a function of time.

        Parameters
        ----------
        X, return_array
            As for `predict_survival_function`.
        """
        return _functions(self.event_times_, self._hazards(X), 0.0, return_array=return_array)

    def _hazards(self, X: Any) -> Array:
        check_is_fitted(self)
        risks = np.exp(np.clip(self.predict(X), -500, 500))
        return np.asarray(np.outer(risks, self.cumulative_baseline_hazard_))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return Harrell's concordance index of the predicted risks."""
        labelled = self._labelled(X, y, sample_weight, reset=False)
        event, time = labelled.y[:, 0] > 0, labelled.y[:, 1]
        return concordance_index(event, time, self.predict(X), labelled.weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        return replace(tags, estimator_type=None)


def _functions(times: Array, values: Array, start: float, *, return_array: bool) -> Array:
    if return_array:
        return values
    found = np.empty(values.shape[0], dtype=object)
    found[:] = [StepFunction(times, row, start) for row in values]
    return found

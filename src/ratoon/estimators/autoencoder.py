"""SparseAutoencoderSelector: features selected by a sparse denoising autoencoder."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError
from ratoon.estimators.parameters import between, count
from ratoon.estimators.selectors import StrengthSelector
from ratoon.evolution import SET
from ratoon.rng import derive_generator, derive_seed, draw_root
from ratoon.samples.checked import checked_samples
from ratoon.samples.statistics import ConstantFeatureWarning, feature_statistics

_ZETA = 0.2
LARGEST_NOISE = 1e6
"""Largest standard deviation of the noise, far above that of the data, which is 1."""


class SparseAutoencoderSelector(StrengthSelector):
    """Select features without labels: QuickSelection.

    A sparse network with one hidden layer learns to reconstruct samples from noisy copies.  After
    every epoch SET replaces the weakest connections by random ones, so that connections concentrate
    on the inputs that help to reconstruct the others.  Features are ranked by the summed magnitude
    of their connections' weights.

    Parameters
    ----------
    n_features_to_select : int or float, default=50
        Number of features to keep, or a fraction of them in (0, 1).
    n_hidden : int, default=20
        Number of neurons in the hidden layer.
    epsilon : float, default=5
        A layer gets about ``epsilon * (n_in + n_out)`` connections.
    zeta : float, default=0.2
        Fraction of connections replaced at a rewiring by SET.
    noise : float, default=0.2
        Standard deviation of the noise, in standard deviations of a feature.
    max_iter : int, default=50
        Epochs.
    batch_size : int, default=32
        Samples per step.
    learning_rate_init : float, default=0.01
        Learning rate of SGD with momentum.
    weight_decay : float, default=1.0
        Strength of the weight decay.  With strong decay only features that help to reconstruct
        several others keep their connections.
    n_repeats : int, default=3
        Number of networks, with different seeds, whose strengths are averaged.
    random_state : int, generator or None, default=None
        An integer makes the result reproducible.
    evolution : str or Strategy, optional
        Strategy that rewires the networks instead of SET, for example
        ``NeuroFS(n_features_to_select)``; `zeta` must then have its default.

    Attributes
    ----------
    strength_, strength_spread_, strengths_, ranking_, support_, selection_frequency_, stability_
        As in `SparseFeatureSelector`.
    n_iter_ : int
        Number of epochs of every network.
    n_features_, n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Atashgahi et al., "Quick and robust feature selection: the strength of energy-efficient sparse
    training for autoencoders", Machine Learning 111, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(200, 1))
    >>> X = np.hstack([hidden + 0.1 * rng.normal(size=(200, 5)), rng.normal(size=(200, 20))])
    >>> selector = SparseAutoencoderSelector(5, random_state=0).fit(X)
    >>> selector.get_support(indices=True).tolist()
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        n_features_to_select: int | float = 50,
        *,
        n_hidden: int = 20,
        epsilon: float = 5.0,
        zeta: float = _ZETA,
        noise: float = 0.2,
        max_iter: int = 50,
        batch_size: int = 32,
        learning_rate_init: float = 0.01,
        weight_decay: float = 1.0,
        n_repeats: int = 3,
        random_state: Any = None,
        evolution: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_hidden = n_hidden
        self.epsilon = epsilon
        self.zeta = zeta
        self.noise = noise
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.weight_decay = weight_decay
        self.n_repeats = n_repeats
        self.random_state = random_state
        self.evolution = evolution

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train the autoencoders and rank the features.

        Parameters
        ----------
        X : array, SciPy matrix or table of shape (n_samples, n_features)
            Samples in rows.  A dense copy is made.
        y : ignored
            Accepted for use in pipelines.

        Returns
        -------
        self
        """
        del y
        self._check_repeats()
        owner = type(self).__name__
        for name in ("max_iter", "n_hidden"):
            count(owner, name, getattr(self, name))
        between(0, LARGEST_NOISE)(owner, "noise", self.noise)
        if self.evolution is not None and self.zeta != _ZETA:
            raise InvalidParameterError(
                f"{type(self).__name__}: `zeta={self.zeta!r}` is for SET, but `evolution` was given"
                f" too.\n  Set `zeta` where the strategy is made."
            )
        x = checked_samples(self, X, reset=True)
        self._n_selected(x.n_features)
        found = feature_statistics(x)
        # Outliers are common in expression data and would dominate the squared loss.
        clean = np.clip((x.dense() - found.mean) * found.factors(), -4.0, 4.0).astype(np.float32)
        seed = draw_root(self.random_state)
        self._set_strengths(
            np.stack([self._train(clean, seed, number) for number in range(self.n_repeats)])
        )
        self.n_iter_ = self.max_iter
        return self

    def _train(self, clean: Array, seed: int, number: int) -> Array:
        """Return the strength of every input of one trained autoencoder."""
        from ratoon.estimators.regressor import SparseMLPRegressor

        rng = derive_generator(seed, "noise", number)
        network = SparseMLPRegressor(
            (self.n_hidden,),
            epsilon=self.epsilon,
            evolution=SET(self.zeta, grown="zero") if self.evolution is None else self.evolution,
            activation="tanh",
            solver="sgd",
            learning_rate_init=self.learning_rate_init,
            learning_rate="constant",
            weight_decay=self.weight_decay,
            batch_size=self.batch_size,
            max_iter=self.max_iter,
            output_init="he",
            scale=None,
            random_state=derive_seed(seed, "autoencoder", number) % 2**32,
        )
        target = clean[:, 0] if clean.shape[1] == 1 else clean
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConstantFeatureWarning)
            for _ in range(self.max_iter):
                noise = rng.standard_normal(clean.shape, dtype=np.float32)
                network.partial_fit(clean + np.float32(self.noise) * noise, target)
        strength = np.asarray(network.network_.input_strength(), dtype=np.float64)
        strength[~clean.any(axis=0)] = 0.0  # constant features
        return strength

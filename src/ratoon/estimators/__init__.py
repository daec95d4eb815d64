"""scikit-learn estimators: the face most users see."""

from __future__ import annotations

from ratoon.estimators.autoencoder import (
    SparseAutoencoderSelector as SparseAutoencoderSelector,
)
from ratoon.estimators.classifier import SparseMLPClassifier as SparseMLPClassifier
from ratoon.estimators.files import load as load
from ratoon.estimators.files import save as save
from ratoon.estimators.persistence import skops_trusted as skops_trusted
from ratoon.estimators.preparer import SamplePreparer as SamplePreparer
from ratoon.estimators.rbm import SparseBernoulliRBM as SparseBernoulliRBM
from ratoon.estimators.regressor import SparseMLPRegressor as SparseMLPRegressor
from ratoon.estimators.selectors import SparseFeatureSelector as SparseFeatureSelector
from ratoon.estimators.survival import SparseMLPSurvival as SparseMLPSurvival
from ratoon.estimators.tables import table_encoder as table_encoder

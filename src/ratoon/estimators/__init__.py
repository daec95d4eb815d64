"""scikit-learn estimators: the face most users see."""

from __future__ import annotations

from ratoon.estimators.classifier import SparseMLPClassifier as SparseMLPClassifier
from ratoon.estimators.regressor import SparseMLPRegressor as SparseMLPRegressor

"""Public names, for type checkers: at run time they are imported when asked for."""

from ratoon.estimators import SamplePreparer as SamplePreparer
from ratoon.estimators import SparseAutoencoderSelector as SparseAutoencoderSelector
from ratoon.estimators import SparseBernoulliRBM as SparseBernoulliRBM
from ratoon.estimators import SparseFeatureSelector as SparseFeatureSelector
from ratoon.estimators import SparseMLPClassifier as SparseMLPClassifier
from ratoon.estimators import SparseMLPRegressor as SparseMLPRegressor
from ratoon.estimators import SparseMLPSurvival as SparseMLPSurvival
from ratoon.estimators import load as load
from ratoon.estimators import skops_trusted as skops_trusted
from ratoon.estimators import table_encoder as table_encoder
from ratoon.preparation import Prepare as Prepare
from ratoon.samples.augment import Augment as Augment

__version__: str
__all__ = [
    "Augment",
    "Prepare",
    "SamplePreparer",
    "SparseAutoencoderSelector",
    "SparseBernoulliRBM",
    "SparseFeatureSelector",
    "SparseMLPClassifier",
    "SparseMLPRegressor",
    "SparseMLPSurvival",
    "__version__",
    "load",
    "skops_trusted",
    "table_encoder",
]

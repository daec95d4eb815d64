"""Data in: files, public sets and generated data become a `Dataset`."""

from ratoon.datasets.dataset import Dataset
from ratoon.datasets.generate import make_microarray
from ratoon.datasets.interactions import make_interactions
from ratoon.datasets.isolation import Isolation
from ratoon.datasets.limits import Limits
from ratoon.datasets.missing import treat_missing
from ratoon.datasets.read import read
from ratoon.datasets.show import Examination, examine
from ratoon.datasets.suspicion import Finding

__all__ = [
    "Dataset",
    "Examination",
    "Finding",
    "Isolation",
    "Limits",
    "examine",
    "make_interactions",
    "make_microarray",
    "read",
    "treat_missing",
]

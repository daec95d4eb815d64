"""Data in: files, public sets and generated data become a `Dataset`."""

from ratoon.datasets.dataset import Dataset
from ratoon.datasets.generate import make_microarray
from ratoon.datasets.limits import Limits
from ratoon.datasets.missing import treat_missing
from ratoon.datasets.read import read

__all__ = ["Dataset", "Limits", "make_microarray", "read", "treat_missing"]

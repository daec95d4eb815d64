"""Read files, public sets and generated data as a `Dataset`."""

from ratoon.datasets.align import MIN_COVERAGE, Alignment, align, read_id_map
from ratoon.datasets.collapse import collapse
from ratoon.datasets.dataset import Dataset, Naming
from ratoon.datasets.examine import Examination, Finding, examine
from ratoon.datasets.files import Limits
from ratoon.datasets.isolation import Isolation
from ratoon.datasets.make import make_interactions, make_microarray
from ratoon.datasets.missing import treat_missing
from ratoon.datasets.optional import MissingPackageError
from ratoon.datasets.prior import (
    FeatureGroups,
    groups_from_pairs,
    read_edge_list,
    read_gmt,
    read_groups,
)
from ratoon.datasets.public.fetch import (
    DownloadError,
    UnverifiedDownloadWarning,
    data_folder,
    fetch,
    load,
)
from ratoon.datasets.public.registry import KnownDataset, find_dataset, list_datasets
from ratoon.datasets.read import read
from ratoon.datasets.stored import can_stay_on_disk, open_stored
from ratoon.datasets.write import write
from ratoon.topology import Within

__all__ = [
    "MIN_COVERAGE",
    "Alignment",
    "Dataset",
    "DownloadError",
    "Examination",
    "FeatureGroups",
    "Finding",
    "Isolation",
    "KnownDataset",
    "Limits",
    "MissingPackageError",
    "Naming",
    "UnverifiedDownloadWarning",
    "Within",
    "align",
    "can_stay_on_disk",
    "collapse",
    "data_folder",
    "examine",
    "fetch",
    "find_dataset",
    "groups_from_pairs",
    "list_datasets",
    "load",
    "make_interactions",
    "make_microarray",
    "open_stored",
    "read",
    "read_edge_list",
    "read_gmt",
    "read_groups",
    "read_id_map",
    "treat_missing",
    "write",
]

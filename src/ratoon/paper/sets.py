"""The paper's data sets: settings, reported figures, and the data or a generated stand-in.

Liu et al., "Sparse evolutionary deep learning with over one million artificial neurons on
commodity hardware", Neural Computing and Applications 33, 2021.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ratoon.datasets import Dataset, DownloadError, load, make_microarray, read
from ratoon.errors import InvalidInputError
from ratoon.paper.trial import PaperSettings


@dataclass(frozen=True)
class PaperSet:
    """A data set of the paper: its shape, the settings used on it, and the reported results.

    ``shape`` has the numbers of samples, features and classes, ``class_counts`` the samples of the
    classes in ascending order.
    """

    name: str
    shape: tuple[int, int, int]
    class_counts: tuple[int, ...]
    settings: PaperSettings
    accuracy_set: float
    accuracy_fixprob: float
    connections: int
    dense_connections: int
    train_seconds: float
    test_seconds: float

    @property
    def widths(self) -> tuple[int, ...]:
        """Neurons per layer, including inputs and outputs."""
        return (self.shape[1], *self.settings.hidden, self.shape[2])


_BASE = PaperSettings(start="paper", batch_size=5)

LEUKEMIA = PaperSet(
    "GSE13159",
    (2096, 54_675, 18),
    (13, 28, 36, 37, 38, 40, 40, 48, 58, 70, 74, 76, 122, 174, 206, 237, 351, 448),
    replace(_BASE, hidden=(27_500, 27_500), learning_rate=0.005),
    *(87.60, 82.74, 1_582_376, 2_260_307_500, 61.31, 2.36),
)
CLL = PaperSet(
    "CLL-SUB-111",
    (111, 11_340, 3),
    (11, 49, 51),
    replace(_BASE, hidden=(9_000, 9_000), learning_rate=0.01),
    *(81.62, 71.35, 409_033, 183_087_000, 6.65, 0.06),
)
SMK = PaperSet(
    "SMK-CAN-187",
    (187, 19_993, 2),
    (90, 97),
    replace(_BASE, hidden=(16_000, 16_000), learning_rate=0.005),
    *(75.24, 68.57, 711_305, 575_920_000, 27.17, 0.18),
)
GLI = PaperSet(
    "GLI-85",
    (85, 22_283, 2),
    (26, 59),
    replace(_BASE, hidden=(20_000,), learning_rate=0.005, batch_size=1),
    *(94.48, 92.41, 486_350, 490_270_000, 32.87, 0.05),
)

PAPER_SETS = {one.name: one for one in (LEUKEMIA, CLL, SMK, GLI)}

EXTREME_SETTINGS = replace(LEUKEMIA.settings, learning_rate=0.05, dropout=0.4, n_epochs=5)
EXTREME = {
    "small": ((1_000, 1_000), 581_469, 82.88, 65.0),
    "large": ((500_000, 500_000), 19_383_046, 81.83, 4914.0),
}
"""Hidden widths, connections, accuracy and total seconds of the two extreme models."""

MRPSVM_SECONDS = {"mrPSVM": 1265.0, "mrPSVM, Hadoop": 291.0}
"""Seconds of mrPSVM on Leukemia, on conventional hardware and on a Hadoop cluster."""

REWIRE_SECONDS = {
    500: (0.58, 0.14),
    2000: (2.56, 0.71),
    8000: (11.13, 2.08),
    15000: (24.14, 3.75),
}
"""Mean seconds of Implementations I and II for square layers."""

BEST_RUN = {"GSE13159": 88.10, "GLI-85": 100.0}
"""Accuracy of the best run, if the text gives it."""

PEAK_BY_LAYERS = {
    "GSE13159": {1: "below 88.12", 2: "88.12", 3: "below 88.12"},
    "CLL-SUB-111": {1: "below 80", 2: "81.11", 3: "below 80"},
    "SMK-CAN-187": {1: "figure only", 2: "figure only", 3: "figure only"},
    "GLI-85": {1: "100", 2: "100, then near 80", 3: "100, then near 80"},
}
"""The peak with one, two and three hidden layers, as given in the text."""

QUOTED = {"GSE13159": {"mrPSVM": 81.11}, "CLL-SUB-111": {"IWSS": 78.38}}
"""Accuracy of the two-phase methods, as the paper quotes it from other papers."""

GLI_REMARK = (
    "GLI-85: the paper's 486,350 connections and 490,270,000 dense ones belong to 22,000 hidden"
    " neurons; its table of widths has 20,000, which is used here."
)


STAND_IN = "generated stand-in"


def paper_data(
    known: PaperSet, *, path: Path | None = None, scale: float = 1.0, seed: int = 0
) -> tuple[Dataset, str]:
    """Return the data of an experiment and their kind: the real set or a generated stand-in.

    Parameters
    ----------
    known : PaperSet
        The data set.
    path : Path, optional
        A file with the real set, which must have its shape and class sizes.  Without it, the set is
        read from the folder of data sets if it is there; nothing is downloaded.
    scale : float
        Below 1, a stand-in with this fraction of the features is used.  A real file is not reduced.
    seed : int
        Seed of the stand-in.
    """
    if path is not None:
        return _checked(read(path), known, str(path)), f"{known.name}, {path.name}"
    if scale == 1.0:
        try:
            data = load(known.name, offline=True)
        except DownloadError:
            pass
        else:
            return _checked(data, known, f"the file of {known.name} in the data folder"), known.name
    n_samples, n_features, n_classes = known.shape
    n_features = max(50, round(scale * n_features))
    options: dict[str, Any] = {"n_informative": min(300, n_features // 4), "random_state": seed}
    data, _ = make_microarray(n_samples, n_features, n_classes, **options)
    return data, STAND_IN


def _checked(data: Dataset, known: PaperSet, source: str) -> Dataset:
    """Return the data; raise unless they have the shape and the class sizes of the set."""
    if data.y is None or data.class_names is None:
        raise InvalidInputError(
            f"{source}: no class labels were found; the paper's experiments need them."
        )
    names = ("samples", "features", "classes")
    counts = tuple(sorted(np.unique(data.y, return_counts=True)[1].tolist()))
    shape = (*data.X.shape, len(counts))
    different = [
        f"{here:,} {name} instead of {wanted:,}"
        for name, here, wanted in zip(names, shape, known.shape, strict=True)
        if here != wanted
    ]
    if not different and counts != known.class_counts:
        different = [
            f"classes of {_listed(counts)} samples instead of {_listed(known.class_counts)}"
        ]
    if different:
        raise InvalidInputError(
            f"{source}: this is not {known.name}: it has {' and '.join(different)}.\n"
            f"  `ratoon data fetch {known.name}` downloads the set; `ratoon data show FILE` shows"
            " what a file has. Check that samples are rows, and that no column but the features and"
            " the label is read."
        )
    return data


def _listed(counts: tuple[int, ...]) -> str:
    return ", ".join(map(str, counts))

"""The paper's data where they are at hand, else generated data of the same shape, labelled so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ratoon.datasets import Dataset, DownloadError, load, make_microarray, read
from ratoon.errors import InvalidInputError
from ratoon.paper.sets import PaperSet

STAND_IN = "generated stand-in"


def paper_data(
    known: PaperSet, *, path: Path | None = None, scale: float = 1.0, seed: int = 0
) -> tuple[Dataset, str]:
    """Return the data of an experiment and what they are: the real set, or a stand-in.

    Parameters
    ----------
    known : PaperSet
        Which set.
    path : Path, optional
        A file of the real set.  Without it, the folder of data sets is looked into; nothing is
        downloaded.
    scale : float
        Below 1, the stand-in has this fraction of the features.  Real data are never cut.
    seed : int
        Of the stand-in.
    """
    if path is not None:
        data = read(path)
        if data.y is None or data.class_names is None:
            raise InvalidInputError(f"{path}: no classes were found.")
        return data, f"{known.name}, {path.name}"
    if scale == 1.0:
        try:
            return load(known.name, offline=True), known.name
        except DownloadError:
            pass
    n_samples, n_features, n_classes = known.shape
    n_features = max(50, round(scale * n_features))
    options: dict[str, Any] = {"n_informative": min(300, n_features // 4), "random_state": seed}
    data, _ = make_microarray(n_samples, n_features, n_classes, **options)
    return data, STAND_IN

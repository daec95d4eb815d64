"""The development sets next to the repository, if they are present."""

from pathlib import Path

import numpy as np
import pytest
import scipy.io
from numpy.testing import assert_array_equal

from ratoon.datasets import read

FOLDER = Path(__file__).parents[3] / "shared" / "data"

SETS = {
    "ALLAML.mat": (72, 7129, 2),
    "ALL_BCRABL.npz": (79, 12625, 2),
    "BASEHOCK.mat": (1993, 4862, 2),
    "PCMAC.mat": (1943, 3289, 2),
    "TOX-171.mat": (171, 5748, 4),
    "arcene.mat": (200, 10000, 2),
    "colon.mat": (62, 2000, 2),
    "lymphoma.mat": (96, 4026, 9),
    "madelon.mat": (2600, 500, 2),
    "subramanian.npz": (50, 10100, 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_every_set_reads_by_its_name_alone(name):
    if not (FOLDER / name).exists():
        pytest.skip(f"{name} is not next to the repository")
    data = read(FOLDER / name)

    assert (data.n_samples, data.n_features, data.n_classes) == SETS[name]
    assert data.is_sparse == (name in ("BASEHOCK.mat", "PCMAC.mat"))
    assert data.X.dtype == np.float32
    assert min(data.class_counts.values()) > 0
    X = data.X.toarray() if data.is_sparse else data.X
    if name.endswith(".mat"):
        reference = scipy.io.loadmat(FOLDER / name)
        assert_array_equal(X, reference["X"].astype(np.float32))
        assert_array_equal(np.array(data.class_names, dtype=int)[data.y], reference["Y"][:, 0])
    else:
        assert_array_equal(X, np.load(FOLDER / name)["X"])

"""Links in files and folders are refused, or followed only where that is harmless."""

import numpy as np
import pytest

from ratoon.datasets import read
from ratoon.errors import FormatError

h5py = pytest.importorskip("h5py", reason="h5py is behind the data extra")

X = np.arange(12.0).reshape(4, 3)
LINKS = {
    "soft": h5py.SoftLink("/elsewhere"),
    "dangling": h5py.SoftLink("/nowhere"),
    "to itself": h5py.SoftLink("/X"),
    "file": h5py.ExternalLink("other.h5", "/X"),
    "device": h5py.ExternalLink("/dev/zero", "/X"),
}


@pytest.mark.parametrize("suffix", [".mat", ".h5ad"])
@pytest.mark.parametrize("link", LINKS)
def test_a_link_in_place_of_the_data_is_refused(tmp_path, suffix, link):
    path = tmp_path / f"a{suffix}"
    with h5py.File(path, "w") as file:
        file["elsewhere"] = X
        for name in ("obs", "var"):
            file.create_group(name).attrs["_index"] = "_index"
        file["obs/_index"], file["var/_index"] = list("abcd"), list("xyz")
        file["X"] = LINKS[link]
    with pytest.raises(FormatError, match="X is a link"):
        read(path)


@pytest.mark.parametrize("link", LINKS)
def test_a_link_next_to_the_data_is_never_opened(tmp_path, link):
    path = tmp_path / "a.mat"
    with h5py.File(path, "w") as file:
        file["data"] = X
        file["X"] = LINKS[link]
    with pytest.raises(FormatError, match="is a link"):
        read(path, matrix="data")

"""Public data sets by name: URL, description, licence and citation.

Nothing is downloaded here; see `ratoon.datasets.fetch`.  A checksum is listed if the URL is pinned
to a commit.  For the others the checksum of the first download is recorded, and every later one
must have the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ratoon.errors import InvalidParameterError, near

_GEO = "https://ftp.ncbi.nlm.nih.gov/geo/series"
_SITE = "https://jundongl.github.io/scikit-feature/files/datasets"
_PINNED = (
    "https://raw.githubusercontent.com/jundongl/scikit-feature/"
    "48cffad4e88ff4b9d2f1c7baffb314d1b3303792/skfeature/data"
)
_COLLECTION = "distributed in: Li et al., ACM Computing Surveys 50(6):94, 2017"
_NO_LICENCE = "none stated by the collection (scikit-feature); cite the study"
_NCBI = "no restrictions placed by NCBI; submitters may hold rights"
_UCI = "CC BY 4.0 (UCI Machine Learning Repository)"


@dataclass(frozen=True)
class KnownDataset:
    """One entry of the registry.

    Parameters
    ----------
    name : str
        Name for `fetch` and `load`.
    what : str
        Description in one line.
    url : str
        URL of the file.
    shape : tuple of int
        Number of samples, features and classes.
    licence, citation : str
        Terms of use, and the study to cite.
    sha256 : str or None
        Digest of the file, if known.
    in_paper : bool
        Whether it is one of the four microarray sets of Liu et al., "Sparse evolutionary deep
        learning with over one million artificial neurons on commodity hardware".
    options : mapping
        Arguments of `read` for this file.
    """

    name: str
    what: str
    url: str
    shape: tuple[int, int, int]
    licence: str
    citation: str
    sha256: str | None = None
    in_paper: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def filename(self) -> str:
        """Name of the file in the folder of data sets."""
        return self.url.rsplit("/", 1)[-1]


def _study(text: str) -> str:
    return f"{text}; {_COLLECTION}"


_ENTRIES = (
    KnownDataset(
        "GSE13159",
        "leukaemia, 17 kinds and healthy bone marrow (MILE study)",
        f"{_GEO}/GSE13nnn/GSE13159/matrix/GSE13159_series_matrix.txt.gz",
        (2096, 54675, 18),
        _NCBI,
        "Haferlach et al., Journal of Clinical Oncology 28(15):2529-2537, 2010",
        in_paper=True,
        options={"label": "leukemia class"},
    ),
    KnownDataset(
        "CLL-SUB-111",
        "B-cell chronic lymphocytic leukaemia, three subgroups",
        f"{_SITE}/CLL_SUB_111.mat",
        (111, 11340, 3),
        _NO_LICENCE,
        _study("Haslinger et al., Journal of Clinical Oncology 22(19):3937-3949, 2004"),
        in_paper=True,
    ),
    KnownDataset(
        "SMK-CAN-187",
        "airway cells of smokers with and without lung cancer",
        f"{_PINNED}/SMK-CAN-187.mat",
        (187, 19993, 2),
        _NO_LICENCE,
        _study("Spira et al., Nature Medicine 13:361-366, 2007"),
        "96ff62a9dad001b4bb28a5c31f69e9c41fb1f42d02e4b39c31e4a57b46238aa7",
        in_paper=True,
    ),
    KnownDataset(
        "GLI-85",
        "gliomas of two kinds",
        f"{_SITE}/GLI_85.mat",
        (85, 22283, 2),
        _NO_LICENCE,
        _study("Freije et al., Cancer Research 64:6503-6510, 2004"),
        in_paper=True,
    ),
    KnownDataset(
        "ALLAML",
        "acute leukaemia, lymphoblastic or myeloid",
        f"{_PINNED}/ALLAML.mat",
        (72, 7129, 2),
        _NO_LICENCE,
        _study("Golub et al., Science 286:531-537, 1999"),
        "068afe0fe1021932e1e7d801294c267de8aeaa9d41899acfac024e72b0d44c1e",
    ),
    KnownDataset(
        "leukemia",
        "acute leukaemia, values in three steps",
        f"{_PINNED}/leukemia.mat",
        (72, 7070, 2),
        _NO_LICENCE,
        _study("Golub et al., Science 286:531-537, 1999"),
        "eb92382fb77c968864cb0a92a2c77acde7f88ba7fe5fd5a64b98184e3a05269d",
    ),
    KnownDataset(
        "colon",
        "colon tissue, tumour or normal, values in three steps",
        f"{_PINNED}/colon.mat",
        (62, 2000, 2),
        _NO_LICENCE,
        _study("Alon et al., PNAS 96:6745-6750, 1999"),
        "ffcdeba03eb67cec403fa1dc9f827c22a6e2c57786bf3e01dfe1b4b3e25e0a2f",
    ),
    KnownDataset(
        "lymphoma",
        "lymphoma and other blood cells, values in three steps",
        f"{_PINNED}/lymphoma.mat",
        (96, 4026, 9),
        _NO_LICENCE,
        _study("Alizadeh et al., Nature 403:503-511, 2000"),
        "bd834ed911d47ecf2e07625ed77617d514d89ee398fa2e7a787230f7cf5243f8",
    ),
    KnownDataset(
        "Prostate-GE",
        "prostate tissue, tumour or normal",
        f"{_PINNED}/Prostate-GE.mat",
        (102, 5966, 2),
        _NO_LICENCE,
        _study("Singh et al., Cancer Cell 1:203-209, 2002"),
        "050b598534dbc662f23e30f39b41354b61d02ab8567837bcf9b1091c1c636ab4",
    ),
    KnownDataset(
        "TOX-171",
        "toxicology, four groups",
        f"{_SITE}/TOX_171.mat",
        (171, 5748, 4),
        _NO_LICENCE,
        _COLLECTION,
    ),
    KnownDataset(
        "GLIOMA",
        "gliomas of four kinds",
        f"{_SITE}/GLIOMA.mat",
        (50, 4434, 4),
        _NO_LICENCE,
        _study("Nutt et al., Cancer Research 63:1602-1607, 2003"),
    ),
    KnownDataset(
        "lung",
        "lung tissue, four tumours and normal",
        f"{_SITE}/lung.mat",
        (203, 3312, 5),
        _NO_LICENCE,
        _study("Bhattacharjee et al., PNAS 98:13790-13795, 2001"),
    ),
    KnownDataset(
        "nci9",
        "cancer cell lines of nine tissues",
        f"{_SITE}/nci9.mat",
        (60, 9712, 9),
        _NO_LICENCE,
        _study("Ross et al., Nature Genetics 24:227-235, 2000"),
    ),
    KnownDataset(
        "arcene",
        "mass spectra, cancer or not, with random probes added",
        f"{_SITE}/arcene.mat",
        (200, 10000, 2),
        _UCI,
        "Guyon et al., Advances in Neural Information Processing Systems 17:545-552, 2004",
    ),
    KnownDataset(
        "gisette",
        "handwritten digits 4 and 9, with random probes added",
        f"{_SITE}/gisette.mat",
        (7000, 5000, 2),
        _UCI,
        "Guyon et al., Advances in Neural Information Processing Systems 17:545-552, 2004",
    ),
    KnownDataset(
        "madelon",
        "generated: corners of a five-dimensional cube; linear models fail",
        f"{_SITE}/madelon.mat",
        (2600, 500, 2),
        _UCI,
        "Guyon et al., Advances in Neural Information Processing Systems 17:545-552, 2004",
    ),
    KnownDataset(
        "BASEHOCK",
        "newsgroup texts, baseball or hockey, word counts",
        f"{_SITE}/BASEHOCK.mat",
        (1993, 4862, 2),
        _NO_LICENCE,
        _study("Lang, International Conference on Machine Learning, 331-339, 1995"),
    ),
    KnownDataset(
        "PCMAC",
        "newsgroup texts, PC or Mac hardware, word counts",
        f"{_SITE}/PCMAC.mat",
        (1943, 3289, 2),
        _NO_LICENCE,
        _study("Lang, International Conference on Machine Learning, 331-339, 1995"),
    ),
    KnownDataset(
        "RELATHE",
        "newsgroup texts, religion or atheism, word counts",
        f"{_SITE}/RELATHE.mat",
        (1427, 4322, 2),
        _NO_LICENCE,
        _study("Lang, International Conference on Machine Learning, 331-339, 1995"),
    ),
)


def list_datasets() -> tuple[KnownDataset, ...]:
    """Return every known public data set, those of the paper first.

    Examples
    --------
    >>> [entry.name for entry in list_datasets() if entry.in_paper]
    ['GSE13159', 'CLL-SUB-111', 'SMK-CAN-187', 'GLI-85']
    """
    return _ENTRIES


def find_dataset(name: str) -> KnownDataset:
    """Return the entry with this name; case, ``-`` and ``_`` are ignored.

    Examples
    --------
    >>> find_dataset("tox_171").shape
    (171, 5748, 4)
    """
    wanted = _normalised(name)
    for entry in _ENTRIES:
        if _normalised(entry.name) == wanted:
            return entry
    names = [entry.name for entry in _ENTRIES]
    raise InvalidParameterError(
        f"there is no public data set {name!r}.{near(name, names)}\n  Known: {', '.join(names)}."
    )


def _normalised(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")

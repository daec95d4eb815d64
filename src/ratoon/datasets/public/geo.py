"""Series of the Gene Expression Omnibus (GEO) by accession, such as GSE13159.

A series with several platforms has one series matrix per platform; the name then ends in the
platform, ``GSE2034-GPL96``.  A series with one platform has one file without it.
"""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

from ratoon.datasets.optional import require
from ratoon.datasets.public.registry import KnownDataset
from ratoon.errors import InvalidParameterError, RatoonError

SERVER = "https://ftp.ncbi.nlm.nih.gov/geo/series"
SERVER_VARIABLE = "RATOON_GEO"
"""Environment variable with the address of another server with the same folders."""

_ACCESSION = re.compile(r"(GSE\d{1,8})(?:-(GPL\d{1,8}))?", re.IGNORECASE | re.ASCII)
_LARGEST_LISTING = 2**20
_LICENCE = "no restrictions placed by NCBI; submitters may hold rights"


def is_accession(name: str) -> bool:
    """Whether a name is an accession of a series, perhaps with a platform.

    Examples
    --------
    >>> is_accession("GSE13159"), is_accession("gse2034-gpl96"), is_accession("GDS507")
    (True, True, False)
    """
    return _ACCESSION.fullmatch(name.strip()) is not None


def folder_of(accession: str) -> str:
    """Return the address of the folder with the series matrices of a series.

    Series of three digits are in ``GSEnnn``, others in a folder with the last three digits masked.

    Examples
    --------
    >>> folder_of("GSE13159").removeprefix(SERVER), folder_of("GSE62").removeprefix(SERVER)
    ('/GSE13nnn/GSE13159/matrix/', '/GSEnnn/GSE62/matrix/')
    """
    server = os.environ.get(SERVER_VARIABLE, SERVER).rstrip("/")
    return f"{server}/GSE{accession[3:-3]}nnn/{accession}/matrix/"


def geo_series(name: str, filename: str | None = None) -> KnownDataset:
    """Return an entry for a series, or for one of its platforms.

    Parameters
    ----------
    name : str
        The accession, and the platform after a dash if there are several.
    filename : str, optional
        Name of the file in the folder, if it is known.

    Examples
    --------
    >>> geo_series("GSE2034-GPL96").filename
    'GSE2034-GPL96_series_matrix.txt.gz'
    """
    match = _ACCESSION.fullmatch(name.strip())
    if match is None:
        raise InvalidParameterError(f"{name!r} is not an accession of GEO, such as GSE13159.")
    accession, platform = match[1].upper(), (match[2] or "").upper()
    stem = f"{accession}-{platform}" if platform else accession
    return KnownDataset(
        stem,
        f"series {accession} of GEO" + (f", platform {platform}" if platform else ""),
        folder_of(accession) + (filename or f"{stem}_series_matrix.txt.gz"),
        (0, 0, 0),
        _LICENCE,
        f"cite the study of {accession}: https://www.ncbi.nlm.nih.gov/geo/query/acc.cgi?acc="
        f"{accession}",
    )


class _Links(HTMLParser):
    """Collects the targets of links."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found += [value for name, value in attrs if name == "href" and value]


def matrices_in(page: str) -> tuple[str, ...]:
    """Return the names of the series matrices in the listing of a folder, sorted.

    Examples
    --------
    >>> matrices_in('<a href="GSE1-GPL8_series_matrix.txt.gz">x</a> <a href="../">up</a>')
    ('GSE1-GPL8_series_matrix.txt.gz',)
    """
    links = _Links()
    links.feed(page)
    names = {unquote(link).rsplit("/", 1)[-1] for link in links.found}
    kept = re.compile(r"GSE\d+(-GPL\d+)?(_\d+|-\d+)?_series_matrix\.txt\.gz", re.ASCII)
    return tuple(sorted(name for name in names if kept.fullmatch(name)))


def _listing(address: str, timeout: float) -> str:
    """Return the page of a folder; empty if it cannot be read, as the download says why."""
    requests = require("requests", "to download data sets")
    how = {"timeout": timeout, "stream": True, "allow_redirects": False}
    try:
        # Not compressed, so that a small answer cannot become a large one.
        headers = {"Accept-Encoding": "identity"}
        with requests.get(address, headers=headers, **how) as response:
            if response.status_code != 200 or "Content-Encoding" in response.headers:
                return ""
            page: Any = response.raw.read(_LARGEST_LISTING)
    except Exception:  # requests and urllib3 raise errors of many kinds for odd answers
        return ""
    return str(page.decode("utf-8", "replace"))


class SeveralPlatformsError(RatoonError, LookupError):
    """A series has several platforms, and one has to be named."""


def find_matrix(entry: KnownDataset, *, timeout: float) -> KnownDataset:
    """Return the entry with the name that the file has on the server.

    The folder of the series is listed.  If the listing cannot be read, the entry stays as it is.

    Raises
    ------
    SeveralPlatformsError
        If there are several series matrices and the entry does not name one.
    """
    address = entry.url.rsplit("/", 1)[0] + "/"
    accession = entry.name.partition("-")[0]
    found = matrices_in(_listing(address, timeout))
    # A server must not answer with the data of another series.
    names = tuple(name for name in found if name.startswith((f"{accession}_", f"{accession}-")))
    if not names or entry.filename in names:
        return entry
    if len(names) == 1:
        return geo_series(entry.name, names[0])
    stems = [name.removesuffix("_series_matrix.txt.gz") for name in names]
    raise SeveralPlatformsError(
        f"{entry.name} has {len(names)} series matrices.\n  Name one of them: {', '.join(stems)}."
    )

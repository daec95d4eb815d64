"""Public data sets: download once, verify the checksum on every use.

Files are kept in one folder: ``RATOON_DATA`` if that is set, otherwise a folder in the user's
cache.  A file copied there by hand is used like a downloaded one.  ``checksums.json`` in the same
folder records the digest of each file at its first use.

An interrupted download is continued.  The bytes received are kept in ``NAME.part`` until the file
is complete; ``NAME.part.json`` records the version of the file on the server.  If the server has
another version by then, the download starts again, so two versions are never mixed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ratoon.datasets.dataset import Dataset
from ratoon.datasets.files import MIB, Limits, open_regular
from ratoon.datasets.optional import require
from ratoon.datasets.public.registry import KnownDataset, find_dataset
from ratoon.datasets.read import read
from ratoon.errors import FormatError, RatoonError

Progress = Callable[[int, int | None], None]
"""Called with the bytes that have arrived and the bytes expected, if known."""

_CHUNK = 2**14  # what is lost at most when a connection breaks


class DownloadError(RatoonError, ConnectionError):
    """A file could not be downloaded; the message says where to put it by hand."""


class ResumingDownloader:
    """A downloader for `pooch.retrieve` that continues partial files.

    Parameters
    ----------
    part : Path
        Where the bytes gather until the file is whole.
    limits : Limits
        A file larger than ``limits.file_bytes`` is given up.
    timeout : float
        Seconds without an answer after which the server counts as gone.
    progress : callable, optional
        Told of the bytes as they arrive.
    """

    def __init__(
        self, part: Path, limits: Limits, timeout: float, progress: Progress | None
    ) -> None:
        self._part, self._limits = part, limits
        self._timeout, self._progress = timeout, progress
        self._tag_file = part.with_name(part.name + ".json")

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:
        """Download ``url``; ``output_file`` appears only when it is whole."""
        requests = require("requests", "to download data sets")
        had = self._part.stat().st_size if self._part.exists() else 0
        tag = self._tag() if had else None
        # No compression on the way: the checksum is that of the file itself.
        headers = {"Accept-Encoding": "identity"}
        if had and tag:
            headers |= {"Range": f"bytes={had}-", "If-Range": tag}
        with requests.get(url, headers=headers, stream=True, timeout=self._timeout) as response:
            response.raise_for_status()
            continues = response.status_code == 206 and self._starts_at(response, had)
            total = self._total(response, had if continues else 0)
            self._remember_tag(response)
            with open(self._part, "ab" if continues else "wb") as file:
                for chunk in response.iter_content(_CHUNK):
                    file.write(chunk)
                    self._limits.check_file(url, file.tell())
                    if self._progress is not None:
                        self._progress(file.tell(), total)
                arrived = file.tell()
        if total is not None and arrived != total:
            raise requests.exceptions.ConnectionError(f"{arrived} of {total} bytes arrived")
        os.replace(self._part, output_file)
        self._tag_file.unlink(missing_ok=True)

    @staticmethod
    def _starts_at(response: Any, had: int) -> bool:
        return str(response.headers.get("Content-Range", "")).startswith(f"bytes {had}-")

    @staticmethod
    def _total(response: Any, had: int) -> int | None:
        length = response.headers.get("Content-Length", "")
        return had + int(length) if length.isdigit() else None

    def _tag(self) -> str | None:
        try:
            tag = json.loads(self._tag_file.read_text(encoding="utf-8"))["tag"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return str(tag) if tag else None

    def _remember_tag(self, response: Any) -> None:
        tag = response.headers.get("ETag") or response.headers.get("Last-Modified")
        if tag and not str(tag).startswith("W/"):  # a weak tag does not promise the same bytes
            self._tag_file.write_text(json.dumps({"tag": tag}), encoding="utf-8")
        else:
            self._tag_file.unlink(missing_ok=True)


_CHECKSUMS = "checksums.json"


def data_folder() -> Path:
    """Return the folder where public data sets are kept; it need not exist yet."""
    if os.environ.get("RATOON_DATA"):
        return Path(os.environ["RATOON_DATA"]).expanduser()
    if sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "ratoon" / "data"


def fetch(
    name: str | KnownDataset,
    *,
    folder: str | os.PathLike[str] | None = None,
    offline: bool = False,
    refresh: bool = False,
    timeout: float = 30.0,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Path:
    """Return the path of a public data set, downloading it if it is not there yet.

    Parameters
    ----------
    name : str or KnownDataset
        A name from `list_datasets`.
    folder : path, optional
        Where files are kept; `data_folder()` by default.
    offline : bool
        Never download; without the file, say where to put it.
    refresh : bool
        Download again, and record the new digest where the registry knows none.
    timeout : float
        Seconds without an answer after which the server counts as gone.
    limits : Limits, optional
        Bounds the size of the download.
    progress : callable, optional
        Called with the bytes that have arrived and the bytes expected (or None).

    Returns
    -------
    Path

    Raises
    ------
    DownloadError
        The file is absent and cannot be downloaded.  What has arrived is kept, and the next
        call goes on from there.
    FormatError
        The file is not the one the registry, or an earlier download, knows.
    """
    entry = find_dataset(name) if isinstance(name, str) else name
    home = Path(folder) if folder is not None else data_folder()
    limits = limits or Limits()
    present = _present(home, entry)
    if present is not None and not refresh:
        _verify(present, entry, home, limits)
        return present
    if offline:
        raise _absent(entry, home, "downloading was not allowed")
    home.mkdir(parents=True, exist_ok=True)
    known = entry.sha256 if refresh else entry.sha256 or _recorded(home, entry.filename)
    path = _download(
        entry,
        home,
        known,
        refresh,
        ResumingDownloader(home / f"{entry.filename}.part", limits, timeout, progress),
    )
    if entry.sha256 is None:
        _record(home, entry.filename, _digest(path, limits))
    return path


def load(
    name: str | KnownDataset,
    *,
    folder: str | os.PathLike[str] | None = None,
    offline: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Dataset:
    """Fetch a public data set and read it.

    Parameters
    ----------
    name, folder, offline, progress
        As for `fetch`.
    **options
        Passed on to `read`, over what the registry says about the file.

    Returns
    -------
    Dataset
    """
    entry = find_dataset(name) if isinstance(name, str) else name
    path = fetch(entry, folder=folder, offline=offline, progress=progress)
    data = read(path, **{**entry.options, **options})
    found = (data.n_samples, data.n_features)
    if found != entry.shape[:2] and not options:
        raise FormatError(
            f"{path}: {found[0]} x {found[1]} values, where {entry.name} has"
            f" {entry.shape[0]} x {entry.shape[1]}.\n  Delete the file and fetch it again."
        )
    return data


def _present(home: Path, entry: KnownDataset) -> Path | None:
    suffix = "".join(Path(entry.filename).suffixes)
    # Copies of these files go by both spellings.
    names = (entry.filename, entry.name + suffix, entry.name.replace("-", "_") + suffix)
    return next((home / name for name in names if (home / name).is_file()), None)


def _verify(path: Path, entry: KnownDataset, home: Path, limits: Limits) -> None:
    digest = _digest(path, limits)
    expected = entry.sha256 or _recorded(home, path.name)
    if expected is None:
        _record(home, path.name, digest)
    elif digest != expected:
        known_by = "the registry" if entry.sha256 else "its first use"
        raise FormatError(
            f"{path}: SHA-256 {digest} is not {expected}, which {known_by} gives.\n"
            "  The file is damaged or another version. Delete it, or download it again with"
            " refresh=True."
        )


def _download(
    entry: KnownDataset, home: Path, known: str | None, refresh: bool, get: ResumingDownloader
) -> Path:
    pooch = require("pooch", "to download data sets")
    requests = require("requests", "to download data sets")
    pooch.get_logger().setLevel("WARNING")
    target = home / entry.filename
    if refresh:
        target.unlink(missing_ok=True)
    try:
        pooch.retrieve(
            entry.url,
            known_hash=None if known is None else f"sha256:{known}",
            fname=entry.filename,
            path=home,
            downloader=get,
        )
    except requests.exceptions.RequestException as error:
        raise _absent(entry, home, _in_short(error)) from None
    except ValueError as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(
            f"{entry.url}: the file that arrived is not the one known by SHA-256 {known}.\n"
            "  It was changed on the server or damaged on the way, and was not kept."
        ) from None
    return target


def _absent(entry: KnownDataset, home: Path, reason: str) -> DownloadError:
    part = home / f"{entry.filename}.part"
    kept = (
        f"\n  {part.stat().st_size} bytes are kept; call again to go on." if part.exists() else ""
    )
    return DownloadError(
        f"{entry.name} is not on this computer, and it could not be downloaded: {reason}.{kept}\n"
        f"  Get {entry.url}\n  from any computer and put it at {home / entry.filename}"
    )


def _in_short(error: Exception) -> str:
    """Return what went wrong on the network in a few words."""
    text = " ".join(str(error).split())
    if "NameResolutionError" in text or "Failed to resolve" in text:
        return "the server's name was not found; there may be no network"
    # What a library of a library says stands at the end, behind its own words.
    inner = re.search(r"Caused by \w+\((.*)\)\)?$", text)
    return (inner[1] if inner else text).strip("'\"")[:200]


def _digest(path: Path, limits: Limits) -> str:
    digest = hashlib.sha256()
    with open_regular(path, limits) as file:
        while chunk := file.read(MIB):
            digest.update(chunk)
    return digest.hexdigest()


def _records(home: Path) -> dict[str, str]:
    try:
        found = json.loads((home / _CHECKSUMS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        raise FormatError(f"{home / _CHECKSUMS}: not JSON; mend or delete the file.") from None
    return {str(name): str(digest) for name, digest in dict(found).items()}


def _recorded(home: Path, filename: str) -> str | None:
    return _records(home).get(filename)


def _record(home: Path, filename: str, digest: str) -> None:
    records = {**_records(home), filename: digest}
    # Written aside and renamed, so that two fetches at once never leave half a file.
    handle, temporary = tempfile.mkstemp(dir=home, prefix=_CHECKSUMS)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(records, file, indent=2, sort_keys=True)
    os.replace(temporary, home / _CHECKSUMS)

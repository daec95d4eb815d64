"""Public data sets: download once, verify the checksum on every use.

Files are kept in one folder: ``RATOON_DATA`` if that is set, otherwise a folder in the user's
cache.  A file copied there by hand is used like a downloaded one.  ``checksums.json`` in the same
folder records the digest of each file at its first use; before an entry without a checksum
is downloaded, a warning names it.

An interrupted download is continued.  The bytes received are kept in ``NAME.part`` until the file
is complete; ``NAME.part.json`` records the version of the file on the server.  If the server has
another version by then, the download starts again, so two versions are never mixed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import stat
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from urllib.parse import urljoin, urlsplit

from ratoon.datasets.dataset import Dataset
from ratoon.datasets.files import MIB, Limits, open_regular
from ratoon.datasets.optional import require
from ratoon.datasets.public.geo import find_matrix, geo_series, is_accession
from ratoon.datasets.public.registry import KnownDataset, find_dataset
from ratoon.datasets.read import read
from ratoon.errors import FormatError, InvalidParameterError, RatoonError
from ratoon.nesting import parse_json

Progress = Callable[[int, int | None], None]
"""Called with the number of bytes received and the number expected, if known."""

_CHUNK = 2**14  # at most this much is lost when a connection breaks


class DownloadError(RatoonError, ConnectionError):
    """A file could not be downloaded; the message says where to put a copy."""


class UnverifiedDownloadWarning(UserWarning):
    """A file is about to be downloaded whose checksum is not known yet."""


class ResumingDownloader:
    """A downloader for `pooch.retrieve` that continues partial files.

    Parameters
    ----------
    part : Path
        File for the bytes received until the download is complete.
    limits : Limits
        A file larger than ``limits.file_bytes`` is refused.
    timeout : float
        Seconds to wait for an answer of the server.
    progress : callable, optional
        Called with the number of bytes received and the number expected (or None).
    """

    def __init__(
        self, part: Path, limits: Limits, timeout: float, progress: Progress | None
    ) -> None:
        self._part, self._limits = part, limits
        self._timeout, self._progress = timeout, progress
        self._tag_file = part.with_name(part.name + ".json")

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:
        """Download ``url``; ``output_file`` appears only when it is complete."""
        requests = require("requests", "to download data sets")
        n_received = self._n_kept()
        tag = self._tag() if n_received else None
        # No compression in transit: the checksum is that of the file itself.
        headers = {"Accept-Encoding": "identity"}
        if n_received and tag:
            headers |= {"Range": f"bytes={n_received}-", "If-Range": tag}
        hooks = {"response": _refuse_unencrypted_redirect}
        with requests.get(
            url, headers=headers, stream=True, timeout=self._timeout, hooks=hooks
        ) as response:
            response.raise_for_status()
            continues = response.status_code == 206 and self._starts_at(response, n_received)
            total = self._total(response, n_received if continues else 0)
            self._remember_tag(response)
            with _open_own(self._part, os.O_APPEND if continues else os.O_TRUNC) as file:
                # As sent: servers declare .gz files to be compressed in transit, too.
                for chunk in response.raw.stream(_CHUNK, decode_content=False):
                    file.write(chunk)
                    self._limits.check_file(url, file.tell())
                    if self._progress is not None:
                        self._progress(file.tell(), total)
                n_received = file.tell()
        if total is not None and n_received != total:
            raise requests.exceptions.ConnectionError(
                f"only {n_received} of {total} bytes were received"
            )
        os.replace(self._part, output_file)
        self._tag_file.unlink(missing_ok=True)

    def _n_kept(self) -> int:
        """Return the number of bytes received earlier."""
        try:
            with _open_own(self._part, os.O_APPEND, creates=False) as file:
                return os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return 0

    @staticmethod
    def _starts_at(response: Any, position: int) -> bool:
        return str(response.headers.get("Content-Range", "")).startswith(f"bytes {position}-")

    @staticmethod
    def _total(response: Any, position: int) -> int | None:
        length = response.headers.get("Content-Length", "")
        is_count = length.isascii() and length.isdigit() and len(length) < 19
        return position + int(length) if is_count else None

    def _tag(self) -> str | None:
        try:
            tag = parse_json(self._tag_file.read_text(encoding="utf-8"))["tag"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return str(tag) if tag else None

    def _remember_tag(self, response: Any) -> None:
        tag = response.headers.get("ETag") or response.headers.get("Last-Modified")
        if tag and not str(tag).startswith("W/"):  # a weak tag does not guarantee the same bytes
            with _open_own(self._tag_file, os.O_TRUNC) as file:
                file.write(json.dumps({"tag": str(tag)}).encode())
        else:
            self._tag_file.unlink(missing_ok=True)


def _open_own(path: Path, flags: int, *, creates: bool = True) -> IO[bytes]:
    """Open a file for writing; a link is not followed, as it could lead to any file of the user."""
    flags |= os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= getattr(os, "O_BINARY", 0) | (os.O_CREAT if creates else 0)
    refusal = DownloadError(
        f"{path} is a link or another special file, and nothing is written through it.\n"
        "  Remove it and try again."
    )
    if path.is_symlink():
        raise refusal  # before O_TRUNC, also where there is no O_NOFOLLOW
    try:
        descriptor = os.open(path, flags & ~os.O_TRUNC, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EMLINK):
            raise refusal from None
        raise
    file = os.fdopen(descriptor, "wb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise refusal
    if flags & os.O_TRUNC:
        file.truncate(0)
    elif flags & os.O_APPEND:
        file.seek(0, os.SEEK_END)
    return file


def _refuse_unencrypted_redirect(response: Any, *_: Any, **__: Any) -> None:
    target = response.headers.get("Location")
    if not response.is_redirect or target is None:
        return
    target = urljoin(response.url, target)
    schemes = urlsplit(response.url).scheme, urlsplit(target).scheme
    if schemes[0] == "https" and schemes[1] != "https":
        requests = require("requests", "to download data sets")
        raise requests.exceptions.InvalidURL(
            f"the server redirects from https to {target[:200]}, which is not encrypted; this is"
            " refused"
        )


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
    """Return the path of a public data set; download it if it is not there yet.

    Parameters
    ----------
    name : str or KnownDataset
        A name from `list_datasets`, or the accession of a series of GEO such as GSE2034, with the
        platform (``GSE2034-GPL96``) if it has several.
    folder : path, optional
        Where files are kept; default `data_folder()`.
    offline : bool
        Do not download; if the file is missing, the error says where to put it.
    refresh : bool
        Download again, and record the new digest if the registry has none.
    timeout : float
        Seconds to wait for an answer of the server.
    limits : Limits, optional
        Limits the size of the download.
    progress : callable, optional
        Called with the number of bytes received and the number expected (or None).

    Returns
    -------
    Path

    Raises
    ------
    DownloadError
        The file is missing and cannot be downloaded.  The bytes received are kept, and the next
        call continues from there.
    FormatError
        The digest of the file differs from that in the registry or of its first use.
    """
    entry = known_or_geo(name) if isinstance(name, str) else name
    home = Path(folder) if folder is not None else data_folder()
    limits = limits or Limits()
    if is_accession(entry.name) and _present(home, entry) is None and not offline:
        entry = find_matrix(entry, timeout=timeout)
    present = _present(home, entry)
    if present is not None and not refresh:
        _verify(present, entry, home, limits)
        return present
    if offline:
        raise _absent(entry, home, "offline=True does not allow it")
    home.mkdir(parents=True, exist_ok=True)
    known = entry.sha256 if refresh else entry.sha256 or _recorded(home, entry.filename)
    if known is None:
        warnings.warn(
            f"{entry.name}: the registry has no checksum, so this download of {entry.url} cannot be"
            f" verified. Its SHA-256 is recorded in {home / _CHECKSUMS} and compared from then on.",
            UnverifiedDownloadWarning,
            stacklevel=2,
        )
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
        Arguments of `read`; they override those in the registry.

    Returns
    -------
    Dataset
    """
    entry = known_or_geo(name) if isinstance(name, str) else name
    path = fetch(entry, folder=folder, offline=offline, progress=progress)
    data = read(path, **{**entry.options, **options})
    found = (data.n_samples, data.n_features)
    if entry.shape[0] and found != entry.shape[:2] and not options:
        raise FormatError(
            f"{path}: the file has {found[0]} x {found[1]} values, {entry.name} should have"
            f" {entry.shape[0]} x {entry.shape[1]}.\n  Delete the file and fetch it again."
        )
    return data


def known_or_geo(name: str) -> KnownDataset:
    """Return the entry of the registry with this name, or one for an accession of GEO."""
    try:
        return find_dataset(name)
    except InvalidParameterError:
        if is_accession(name):
            return geo_series(name)
        raise


def _present(home: Path, entry: KnownDataset) -> Path | None:
    suffix = "".join(Path(entry.filename).suffixes)
    # Copies of these files exist under both spellings.
    names = (entry.filename, entry.name + suffix, entry.name.replace("-", "_") + suffix)
    return next((home / name for name in names if (home / name).is_file()), None)


def _verify(path: Path, entry: KnownDataset, home: Path, limits: Limits) -> None:
    digest = _digest(path, limits)
    expected = entry.sha256 or _recorded(home, path.name)
    if expected is None:
        _record(home, path.name, digest)
    elif digest != expected:
        origin = "given in the registry" if entry.sha256 else "recorded at its first use"
        raise FormatError(
            f"{path}: its SHA-256 is {digest}, not {expected} as {origin}.\n"
            "  The file is damaged or another version. Delete it, or download it again with"
            " refresh=True."
        )


def _download(
    entry: KnownDataset, home: Path, known: str | None, refresh: bool, get: ResumingDownloader
) -> Path:
    pooch = require("pooch", "to download data sets")
    requests = require("requests", "to download data sets")
    urllib3 = require("urllib3", "to download data sets")
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
    except (
        requests.exceptions.RequestException,
        urllib3.exceptions.HTTPError,
        OverflowError,  # of requests, for a length of many digits
        RuntimeError,  # of urllib3, for damaged answers that redirect
    ) as error:
        raise _absent(entry, home, _short_text(error)) from None
    except ValueError as error:
        if isinstance(error, FormatError):
            raise
        if known is None:  # nothing to compare with: the address of a redirect is invalid
            raise _absent(entry, home, _short_text(error)) from None
        hint = "" if entry.sha256 else " To accept a new version, pass refresh=True."
        raise FormatError(
            f"{entry.url}: the downloaded file does not have the expected SHA-256 {known}.\n"
            f"  It was changed on the server or damaged in transit, and was not kept. Try"
            f" again.{hint}"
        ) from None
    return target


def _absent(entry: KnownDataset, home: Path, reason: str) -> DownloadError:
    part = home / f"{entry.filename}.part"
    kept = (
        f"\n  {part.stat().st_size} bytes are kept; call again to continue."
        if part.exists()
        else ""
    )
    return DownloadError(
        f"{entry.name} is not on this computer, and it could not be downloaded: {reason}.{kept}\n"
        f"  Download {entry.url}\n  on any computer and put it at {home / entry.filename}"
    )


def _short_text(error: Exception) -> str:
    """Return a short description of a network error."""
    text = " ".join(str(error).split())
    if "NameResolutionError" in text or "Failed to resolve" in text:
        return "the server's name was not found; is there a network connection?"
    # The innermost cause is at the end of the message.
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
        found = parse_json((home / _CHECKSUMS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        raise FormatError(f"{home / _CHECKSUMS}: not valid JSON; fix or delete the file.") from None
    return {str(name): str(digest) for name, digest in dict(found).items()}


def _recorded(home: Path, filename: str) -> str | None:
    return _records(home).get(filename)


def _record(home: Path, filename: str, digest: str) -> None:
    records = {**_records(home), filename: digest}
    # Written to a temporary file and renamed, so that two fetches at once leave a complete file.
    temporary = home / f"{_CHECKSUMS}.{secrets.token_hex(8)}"
    with temporary.open("x", encoding="utf-8") as file:
        json.dump(records, file, indent=2, sort_keys=True)
    os.replace(temporary, home / _CHECKSUMS)

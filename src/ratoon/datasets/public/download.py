"""One file over HTTP that can be continued where it broke off.

What has arrived stays in ``NAME.part`` until the file is whole; ``NAME.part.json`` remembers which
version of the file it is a part of, so that a file changed on the server is begun anew rather than
patched together from two.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ratoon.datasets.limits import Limits
from ratoon.datasets.optional import require
from ratoon.errors import RatoonError

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

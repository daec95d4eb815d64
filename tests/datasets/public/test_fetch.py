"""Fetching, against a server on the loopback interface that ends with the test."""

import hashlib
import io
import json
import os
import re
import sys
import threading
import warnings
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from ratoon.datasets import (
    DownloadError,
    Limits,
    UnverifiedDownloadWarning,
    data_folder,
    fetch,
    find_dataset,
    list_datasets,
    load,
)
from ratoon.datasets.public import fetch as public_fetch
from ratoon.datasets.public.registry import KnownDataset
from ratoon.errors import FormatError, InvalidParameterError

pytest.importorskip("pooch", reason="pooch is behind the data extra")

requests = pytest.importorskip("requests", reason="requests is behind the data extra")

pytestmark = pytest.mark.filterwarnings("ignore:.*the registry has no checksum")


def archive():
    buffer = io.BytesIO()
    np.savez(buffer, X=np.arange(3000.0).reshape(30, 100), y=np.arange(30) % 2)
    return buffer.getvalue()


class Server:
    """Serves one file, with ranges; can break off, change the file or refuse."""

    def __init__(self):
        self.content, self.break_after, self.status, self.etag = archive(), None, 200, '"one"'
        self.ranges = True
        self.requests = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append(self.headers.get("Range"))
                if outer.status != 200:
                    self.send_error(outer.status)
                    return
                start = 0
                asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
                if asked and outer.ranges and self.headers.get("If-Range") == outer.etag:
                    start = int(asked[1])
                body = outer.content[start:]
                self.send_response(206 if start else 200)
                if start:
                    last = len(outer.content) - 1
                    self.send_header("Content-Range", f"bytes {start}-{last}/{last + 1}")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("ETag", outer.etag)
                self.end_headers()
                self.wfile.write(body[: outer.break_after])

            def log_message(self, *arguments):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def entry(self):
        url = f"http://127.0.0.1:{self.http.server_port}/small.npz"
        return KnownDataset("small", "a test", url, (30, 100, 2), "none", "nobody")

    @property
    def digest(self):
        return hashlib.sha256(self.content).hexdigest()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()
    server.thread.join(5)


def test_a_file_is_downloaded_once_and_recorded(server, tmp_path):
    path = fetch(server.entry, folder=tmp_path)
    again = fetch(server.entry, folder=tmp_path)
    assert path == again == tmp_path / "small.npz"
    assert path.read_bytes() == server.content
    assert len(server.requests) == 1
    assert json.loads((tmp_path / "checksums.json").read_text()) == {"small.npz": server.digest}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checksums.json", "small.npz"]


def test_a_loaded_set_is_read_and_its_shape_checked(server, tmp_path):
    data = load(server.entry, folder=tmp_path)
    assert data.X.shape == (30, 100)
    assert data.sha256 == server.digest
    with pytest.raises(FormatError, match="has 30 x 100 values, small should have 31 x 100"):
        load(replace(server.entry, shape=(31, 100, 2)), folder=tmp_path)


def test_an_interrupted_download_continues(server, tmp_path):
    server.break_after = 20_000
    with pytest.raises(DownloadError, match="20000 bytes are kept; call again to continue"):
        fetch(server.entry, folder=tmp_path)
    server.break_after = None
    seen = []
    path = fetch(
        server.entry, folder=tmp_path, progress=lambda now, total: seen.append((now, total))
    )
    assert path.read_bytes() == server.content
    assert server.requests == [None, "bytes=20000-"]
    assert seen[-1] == (len(server.content), len(server.content))


def test_a_file_that_changed_on_the_server_is_downloaded_from_the_start(server, tmp_path):
    server.break_after = 20_000
    with pytest.raises(DownloadError):
        fetch(server.entry, folder=tmp_path)
    server.break_after, server.etag = None, '"two"'
    server.content = server.content[::-1]
    assert fetch(server.entry, folder=tmp_path).read_bytes() == server.content


def test_a_server_without_ranges_is_asked_for_the_whole_file(server, tmp_path):
    server.ranges, server.break_after = False, 20_000
    with pytest.raises(DownloadError):
        fetch(server.entry, folder=tmp_path)
    server.break_after = None
    assert fetch(server.entry, folder=tmp_path).read_bytes() == server.content


def test_a_file_with_another_checksum_is_not_kept(server, tmp_path):
    entry = replace(server.entry, sha256="0" * 64)
    with pytest.raises(FormatError, match="not have the expected SHA-256 000"):
        fetch(entry, folder=tmp_path)
    assert not (tmp_path / "small.npz").exists()
    entry = replace(server.entry, sha256=server.digest)
    assert fetch(entry, folder=tmp_path).exists()


def test_a_file_that_changed_since_its_first_use_is_refused_until_refreshed(server, tmp_path):
    path = fetch(server.entry, folder=tmp_path)
    path.write_bytes(b"damaged")
    with pytest.raises(FormatError, match="recorded at its first use"):
        fetch(server.entry, folder=tmp_path)
    server.content += b"a new version"
    assert fetch(server.entry, folder=tmp_path, refresh=True).read_bytes() == server.content
    assert fetch(server.entry, folder=tmp_path, offline=True)


def test_a_later_download_must_match_the_first(server, tmp_path):
    fetch(server.entry, folder=tmp_path).unlink()
    server.content += b"tampered with"
    with pytest.raises(FormatError, match="not have the expected"):
        fetch(server.entry, folder=tmp_path)


@pytest.mark.parametrize("status", [404, 500])
def test_an_http_error_gives_the_path_for_the_file(server, tmp_path, status):
    server.status = status
    with pytest.raises(DownloadError, match=f"(?s){status}.*put it at .*small.npz"):
        fetch(server.entry, folder=tmp_path)


def test_without_a_network_the_message_gives_url_and_path(server, tmp_path):
    entry = server.entry
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(DownloadError, match=r"(?s)small\.npz\n.*put it at .*small\.npz"):
        fetch(entry, folder=tmp_path, timeout=2)
    with pytest.raises(DownloadError, match="offline=True"):
        fetch(entry, folder=tmp_path / "nowhere", offline=True)
    assert not (tmp_path / "nowhere").exists()


def test_a_file_copied_by_hand_is_used_and_recorded(server, tmp_path):
    (tmp_path / "small.npz").write_bytes(server.content)
    assert load(server.entry, folder=tmp_path, offline=True).n_samples == 30
    assert server.requests == []
    assert "small.npz" in (tmp_path / "checksums.json").read_text()


def test_both_spellings_of_a_file_name_are_found(tmp_path):
    for name in ("TOX-171.mat", "TOX_171.mat"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_bytes(b"x")
        assert fetch("tox171", folder=folder, offline=True) == folder / name


def test_a_file_above_the_limit_is_not_downloaded(server, tmp_path):
    with pytest.raises(FormatError, match="limit is 100"):
        fetch(server.entry, folder=tmp_path, limits=Limits(file_bytes=100))


def test_the_folder_can_be_set_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("RATOON_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.delenv("RATOON_DATA")
    assert data_folder().parts[-2:] == ("ratoon", "data")


def test_every_entry_is_complete():
    entries = list_datasets()
    assert len({entry.name for entry in entries}) == len({entry.filename for entry in entries})
    for entry in entries:
        assert entry.url.startswith("https://")
        assert entry.licence
        assert entry.citation
        assert entry.what
        assert entry.sha256 is None or re.fullmatch("[0-9a-f]{64}", entry.sha256)
        assert find_dataset(entry.name.lower()) is entry


def test_an_unknown_name_is_an_error_with_a_suggestion():
    with pytest.raises(InvalidParameterError, match="Did you mean 'GLI-85'"):
        fetch("GLI-58")


def test_a_download_without_a_known_checksum_is_announced_and_then_recorded(server, tmp_path):
    with pytest.warns(UnverifiedDownloadWarning, match="small: the registry has no checksum"):
        fetch(server.entry, folder=tmp_path)
    recorded = json.loads((tmp_path / "checksums.json").read_text())
    assert recorded == {"small.npz": server.digest}
    (tmp_path / "small.npz").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fetch(server.entry, folder=tmp_path)
        fetch(replace(server.entry, sha256=server.digest), folder=tmp_path / "known")


@pytest.mark.parametrize("name", ["small.npz.part", "small.npz.part.json"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_in_place_of_a_partial_file_is_not_followed(server, tmp_path, name, exists):
    home, victim = tmp_path / "home", tmp_path / "victim"
    home.mkdir()
    if exists:
        victim.write_text("precious")
    (home / name).symlink_to(victim)
    with pytest.raises(DownloadError, match=r"\.part.* is a link or another special file"):
        fetch(server.entry, folder=home)
    assert victim.exists() == exists
    assert not exists or victim.read_text() == "precious"
    assert not (home / "small.npz").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_pipe_in_place_of_a_partial_file_does_not_block(server, tmp_path):
    os.mkfifo(tmp_path / "small.npz.part")
    with pytest.raises(DownloadError, match="special file"):
        fetch(server.entry, folder=tmp_path)


def redirect(start, target):
    response = requests.Response()
    response.status_code, response.url = 302, start
    response.headers["Location"] = target
    return response


@pytest.mark.parametrize("target", ["http://example.org/a", "ftp://example.org/a", "HTTP://a.b/"])
def test_a_redirect_from_https_to_an_unencrypted_address_is_refused(monkeypatch, tmp_path, target):
    sent = []

    def send(adapter, request, **_):
        sent.append(request.url)
        return redirect(request.url, target)

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", send)
    entry = KnownDataset("small", "a test", "https://example.org/small.npz", (1, 1, 2), "no", "no")
    with pytest.raises(DownloadError, match=r"redirects from https to .*not encrypted"):
        fetch(entry, folder=tmp_path)
    assert sent == [entry.url]


@pytest.mark.parametrize(
    ("start", "target"),
    [
        ("https://a.b/c", "/d"),
        ("https://a.b/c", "HTTPS://d.e/f"),
        ("https://a.b/c", "//d.e/f"),
        ("http://a.b/c", "http://d.e/f"),
    ],
)
def test_a_redirect_that_stays_as_safe_is_followed(start, target):
    public_fetch._refuse_unencrypted_redirect(redirect(start, target))

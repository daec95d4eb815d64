"""Series of GEO by accession, against a server on the loopback interface."""

import gzip
import json
import re
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from ratoon.cli import main
from ratoon.datasets import DownloadError, UnverifiedDownloadWarning, fetch, load
from ratoon.datasets.public.geo import SeveralPlatformsError, folder_of, geo_series, matrices_in
from ratoon.errors import FormatError, InvalidParameterError

pytest.importorskip("pooch", reason="pooch is behind the data extra")
pytest.importorskip("requests", reason="requests is behind the data extra")

pytestmark = pytest.mark.filterwarnings("ignore:.*the registry has no checksum")


def matrix(seed=0, n=30):
    rng = np.random.default_rng(seed)
    names = "\t".join(f'"GSM{k}"' for k in range(n))
    kinds = "\t".join(f'"tissue: {"ill" if k % 2 else "well"}"' for k in range(n))
    rows = "\n".join(
        f'"{k}_at"\t' + "\t".join(f"{v:.3f}" for v in rng.normal(7, 1, n) + (np.arange(n) % 2))
        for k in range(120)
    )
    text = (
        f'!Series_title\t"t"\n!Sample_geo_accession\t{names}\n'
        f"!Sample_characteristics_ch1\t{kinds}\n!series_matrix_table_begin\n"
        f'"ID_REF"\t{names}\n{rows}\n!series_matrix_table_end\n'
    )
    return gzip.compress(text.encode(), mtime=0)


class Server:
    """Serves folders of series, with listings and ranges; can break off."""

    def __init__(self, files):
        self.files, self.requests, self.break_after, self.lists = files, [], None, True
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append((self.path, self.headers.get("Range")))
                if self.path.endswith("/"):
                    inside = [p for p in outer.files if p.startswith(self.path)]
                    if not inside or not outer.lists:
                        self.send_error(404)
                        return
                    links = "".join(f'<a href="{p.rsplit("/", 1)[1]}">x</a>\n' for p in inside)
                    self.answer(200, f'<pre><a href="/geo/">up</a>\n{links}</pre>'.encode())
                    return
                if self.path not in outer.files:
                    self.send_error(404)
                    return
                content = outer.files[self.path]
                asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
                start = int(asked[1]) if asked else 0
                self.answer(206 if start else 200, content[start:], start, len(content))

            def answer(self, status, body, start=0, size=0):
                self.send_response(status)
                if start:
                    self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("ETag", '"one"')
                self.end_headers()
                self.wfile.write(body[: outer.break_after if size else None])

            def log_message(self, *arguments):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()


ONE = "/GSE77nnn/GSE77001/matrix/GSE77001_series_matrix.txt.gz"
TWO = "/GSEnnn/GSE42/matrix/GSE42-GPL{}_series_matrix.txt.gz"


@pytest.fixture
def server(monkeypatch, tmp_path):
    found = Server({ONE: matrix(), TWO.format(96): matrix(1), TWO.format(97): matrix(2)})
    monkeypatch.setenv("RATOON_GEO", f"http://127.0.0.1:{found.http.server_port}")
    monkeypatch.setenv("RATOON_DATA", str(tmp_path))
    yield found
    found.http.shutdown()
    found.http.server_close()


@pytest.mark.parametrize(
    ("accession", "folder"),
    [("GSE1", "GSEnnn/GSE1"), ("GSE999", "GSEnnn/GSE999"), ("GSE1000", "GSE1nnn/GSE1000"),
     ("GSE123456", "GSE123nnn/GSE123456")],
)  # fmt: skip
def test_folders_are_those_of_geo(accession, folder):
    server = "https://ftp.ncbi.nlm.nih.gov/geo/series"
    assert folder_of(accession) == f"{server}/{folder}/matrix/"


def test_a_series_is_downloaded_once_and_its_checksum_kept(server, tmp_path):
    path = fetch("gse77001")
    assert path == tmp_path / "GSE77001_series_matrix.txt.gz"
    assert path.read_bytes() == server.files[ONE]
    assert path.name in json.loads((tmp_path / "checksums.json").read_text())
    asked = len(server.requests)
    assert fetch("GSE77001") == path
    assert len(server.requests) == asked
    data = load("GSE77001", label="tissue")
    assert (data.n_samples, data.n_features, data.class_names) == (30, 120, ("ill", "well"))
    path.write_bytes(matrix(9))
    with pytest.raises(FormatError, match="recorded at its first use"):
        fetch("GSE77001")


def test_one_of_several_platforms_has_to_be_named(server):
    with pytest.raises(SeveralPlatformsError, match="GSE42-GPL96, GSE42-GPL97"):
        fetch("GSE42")
    path = fetch("GSE42-gpl97")
    assert path.read_bytes() == server.files[TWO.format(97)]


def test_the_only_platform_is_found_by_the_listing(server):
    del server.files[TWO.format(97)]
    assert fetch("GSE42").read_bytes() == server.files[TWO.format(96)]


def test_a_server_without_listings_is_asked_for_the_usual_name(server):
    server.lists = False
    assert fetch("GSE77001").read_bytes() == server.files[ONE]


def test_an_interrupted_download_continues(server, tmp_path):
    server.files[ONE] = matrix(n=400)
    server.break_after = 40_000
    with pytest.raises(DownloadError, match="40000 bytes are kept"):
        fetch("GSE77001")
    server.break_after = None
    assert fetch("GSE77001").read_bytes() == server.files[ONE]
    assert server.requests[-1] == (ONE, "bytes=40000-")


def test_without_a_network_the_message_says_what_to_download(server, tmp_path):
    expected = "(?s)GSE77001.*Download http://127.0.0.1.*matrix.txt.gz.*put it at .*GSE77001"
    with pytest.raises(DownloadError, match=expected):
        fetch("GSE77001", offline=True)
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(DownloadError, match=expected):
        fetch("GSE77001", timeout=2)


def test_a_series_that_does_not_exist_is_reported(server):
    with pytest.raises(DownloadError, match="404"):
        fetch("GSE5")


@pytest.mark.parametrize("name", ["GSE", "GSE12x", "GSE1-96", "../GSE1", "GSE123456789"])
def test_other_names_are_not_accessions(name):
    with pytest.raises(InvalidParameterError, match="no public data set"):
        fetch(name)
    with pytest.raises(InvalidParameterError, match="not an accession"):
        geo_series(name)


def test_only_names_of_matrices_are_taken_from_a_listing():
    page = '<a href="../../etc/GSE1_series_matrix.txt.gz">a</a><a href="GSE1_x.txt.gz">b</a>'
    assert matrices_in(page) == ("GSE1_series_matrix.txt.gz",)


def test_a_fetched_series_can_be_trained_on_by_name(server, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "GSE77001", "--label", "tissue"]) == 1
    assert "Download it first: ratoon data fetch GSE77001" in capsys.readouterr().err
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnverifiedDownloadWarning)
        assert main(["data", "fetch", "GSE77001"]) == 0
    assert main(["data", "show", "GSE77001"]) == 0
    assert "samples     30" in capsys.readouterr().out
    assert main(["train", "GSE77001", "--label", "tissue", "-q", "-o", "m.ratoon"]) == 0
    assert main(["evaluate", "m.ratoon", "GSE77001", "-q"]) == 0
    assert main(["train", "GSE7700", "-q"]) == 1


def test_a_name_that_is_nearly_one_of_a_data_set_is_corrected(
    server, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "GLI-58"]) == 1
    assert "Did you mean the data set 'GLI-85'?" in capsys.readouterr().err
    (tmp_path / "expression.csv").write_text("x")
    assert main(["train", "xpression.csv"]) == 1
    assert "Did you mean 'expression.csv'?" in capsys.readouterr().err

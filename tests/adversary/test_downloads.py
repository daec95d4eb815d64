"""Servers that answer oddly: a download is refused with a message, or is what was asked for."""

import gzip
import random
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ratoon.datasets.public.fetch import fetch
from tests.adversary.attacks import only_ratoon_errors, repeat

pytest.importorskip("requests")

NAME = "GSE12_series_matrix.txt.gz"
CONTENT = gzip.compress(b'!Series_title\t"t"\n', mtime=0)
PAGES = (
    f'<a href="{NAME}">x</a>'.encode(),
    b'<a href="GSE9999_series_matrix.txt.gz">x</a>',
    '<a href="GSE\u0661\u0662_series_matrix.txt.gz">x</a>'.encode(),
    b'<a href="../../GSE12_series_matrix.txt.gz">x</a>',
    b"<![if x]><!doctype [[[<![CDATA[ <a href='&#xffffffffff;'" + b"<" * 10_000,
    gzip.compress(bytes(10**7)),
    b"",
)
HEADERS = (
    ("Content-Encoding", "gzip"),
    ("Content-Encoding", "deflate"),
    ("Transfer-Encoding", "chunked"),
    ("Content-Length", "9" * 30),
    ("Content-Length", "-5"),
    ("Content-Length", "100000"),
    ("Content-Range", "bytes 99-"),
    ("ETag", "\x1b[31m"),
)
TARGETS = ("http://[::bad", "file:///etc/passwd", "ftp://127.0.0.1/x", NAME, "", "//", "http://")


class Server:
    """Answers as the random numbers decide; says which files it gave."""

    def __init__(self):
        self.choose = random.Random(0)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 5

            def do_GET(self):
                choose = outer.choose
                body = choose.choice(PAGES) if self.path.endswith("/") else CONTENT
                status = choose.choice((200, 200, 200, 206, 302, 404, 500))
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", choose.choice(TARGETS))
                names = choose.sample(HEADERS, choose.choice((0, 0, 1, 2)))
                for name, value in names:
                    self.send_header(name, value)
                if not any(name in ("Content-Length", "Transfer-Encoding") for name, _ in names):
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()


@pytest.fixture
def server(monkeypatch):
    found = Server()
    monkeypatch.setenv("RATOON_GEO", f"http://127.0.0.1:{found.http.server_port}")
    yield found
    found.http.shutdown()
    found.http.server_close()


def attack(seed, server, folder):
    server.choose = random.Random(seed)
    for path in folder.iterdir():
        path.unlink()
    with only_ratoon_errors():
        path = fetch("GSE12", folder=folder, timeout=1)
        assert path.name == NAME
        assert path.read_bytes() == CONTENT
    allowed = {NAME, f"{NAME}.part", f"{NAME}.part.json", "checksums.json"}
    assert {path.name for path in folder.iterdir()} <= allowed | {f"{NAME}.part.tag"}


def test_a_server_that_answers_oddly_gives_a_message_or_the_file(server, tmp_path):
    for seed in range(40):
        attack(seed, server, tmp_path)


@pytest.mark.soak
def test_servers_that_answer_oddly_give_messages_or_files_for_long(server, tmp_path, minutes, say):
    repeat(lambda seed: attack(seed, server, tmp_path), minutes, say)

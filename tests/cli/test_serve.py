"""`ratoon serve` as a process: load, stalled clients, and its end."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ratoon as package

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

STARTED = re.compile(r"on http://127\.0\.0\.1:(\d+)")


@pytest.fixture
def server(model):
    """Start a service on a free port of the loopback interface; end it afterwards."""
    main = "import sys; from ratoon.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", main, "serve", model, "--port", "0", "--timeout", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if found := STARTED.search(line):
                break
        else:
            pytest.fail("".join(lines))
        process.port = int(found[1])
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)


def ask(port, body, timeout=60):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/predict",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.load(answer)


def test_the_service_answers_under_load_and_ends_on_sigterm(server, model):
    estimator = package.load(model)
    rows = np.random.default_rng(0).normal(size=(200, 12))
    records = [dict(zip(estimator.feature_names_in_, row, strict=True)) for row in rows.tolist()]
    expected = estimator.predict(estimator.align(frame_of(records))).tolist()

    stalled = []
    for _ in range(20):  # half a request each, then nothing
        client = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        client.sendall(
            b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000\r\n\r\n{"
        )
        stalled.append(client)
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda one: ask(server.port, {"records": [one]})["predictions"][0], records)
        )
    assert found == expected
    assert ask(server.port, {"records": records})["predictions"] == expected

    for client in stalled:
        assert client.recv(1000).startswith(b"HTTP/1.1 408")
        client.close()

    for garbage in (b"\x00" * 100, b"GET / HTTP/9.9\r\n\r\n", b"A" * 200_000):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
            client.sendall(garbage)
    with pytest.raises(urllib.error.HTTPError, match="422"):
        ask(server.port, {"rows": [[1.0]]})

    started = time.monotonic()
    server.send_signal(signal.SIGTERM)
    out, err = server.communicate(timeout=60)
    assert out == ""
    assert "Traceback" not in err
    assert time.monotonic() - started < 55


def frame_of(records):
    import pandas as pd

    return pd.DataFrame(records)


def test_what_is_not_a_model_is_refused_before_the_port_is_opened(ratoon, table):
    outcome = ratoon("serve", table)
    assert outcome.code == 1
    assert "model file" in outcome.err


def test_a_port_that_is_in_use_is_an_error(ratoon, model):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        outcome = ratoon("serve", model, "--port", taken.getsockname()[1])
    assert outcome.code == 1
    assert "in use" in outcome.err


@pytest.mark.parametrize("error", [socket.gaierror(-2, "unknown"), TypeError("encoding failed")])
def test_a_host_that_does_not_exist_is_refused(ratoon, model, monkeypatch, error):
    def create_server(*_, **__):
        raise error

    monkeypatch.setattr(socket, "create_server", create_server)
    outcome = ratoon("serve", model, "--host", "a" * 300, "--port", "0", "-q")
    assert outcome.code == 1
    assert "there is no such host" in outcome.err

"""Closed, full and ASCII output streams, and unexpected errors, end with a message."""

import os
import subprocess
import sys

import pytest

from ratoon.cli import app, main

COMMAND = f"{sys.executable} -c 'import sys; from ratoon.cli import main; sys.exit(main())'"


def shell(command, **environment):
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.skipif(sys.platform != "linux", reason="uses /dev/full")
@pytest.mark.parametrize(
    ("stream", "code", "message"),
    [
        ("inspect MODEL | head -c0", 1, ""),
        ("inspect MODEL >&-", 0, ""),
        ("inspect MODEL --json >&-", 1, "stdout is closed"),
        ("inspect MODEL 2>&-", 0, ""),
        ("inspect MODEL >/dev/full", 1, "ratoon: No space left on device."),
        ("--help >/dev/full", 1, "ratoon: No space left on device."),
    ],
)
def test_a_stream_that_cannot_be_written_ends_with_a_message(model, stream, code, message):
    done = shell(f"{COMMAND} {stream.replace('MODEL', str(model))}")
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_an_ascii_terminal_gets_escapes_and_an_ascii_file_an_error(model, tmp_path):
    table = tmp_path / "new.csv"
    genes = ",".join(f"gene{k}" for k in range(12))
    table.write_text(f"sample,{genes}\nM\u00fcller{',1' * 12}\n", encoding="utf-8")
    done = shell(f"{COMMAND} data show m\u00fc.csv", PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert "m\\xfc.csv" in done.stderr
    done = shell(f"{COMMAND} predict {model} {table} -q", PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert "Write to a file with -o FILE" in done.stderr
    assert done.stdout == ""
    done = shell(f"{COMMAND} predict {model} {table} -q -o {tmp_path}/o", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "M\u00fcller" in (tmp_path / "o").read_text(encoding="utf-8")


def test_an_unexpected_error_is_a_message_or_on_request_a_traceback(capsys, monkeypatch):
    def fail(**options):
        raise KeyError("\x1b[31mname")

    monkeypatch.setattr(app, "app", fail)
    monkeypatch.delenv(app.TRACEBACK, raising=False)
    assert main([]) == 1
    error = capsys.readouterr().err
    assert "internal error: KeyError: '\\x1b[31mname'" in error
    assert "RATOON_TRACEBACK=1" in error
    monkeypatch.setenv(app.TRACEBACK, "1")
    with pytest.raises(KeyError):
        main([])


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("data make x.npz --samples 1" + 30 * "0", "values; at most 1e+10 are generated"),
        ("data make x.npz --features 1" + 30 * "0", "values; at most 1e+10 are generated"),
        ("select TABLE --label outcome -k 2 --jobs 1" + 30 * "0", "at most 4096"),
        ("inspect .", "not a regular file"),
    ],
)
def test_extreme_options_are_refused(ratoon, table, command, message):
    outcome = ratoon(*command.replace("TABLE", str(table)).split())
    assert outcome.code == 1
    assert message in outcome.err.replace("\n", " ")
    assert "internal error" not in outcome.err

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "audit.py"

CLEAN = {"name": "numpy", "version": "2.0", "vulns": []}
HOLED = {
    "name": "tqdm",
    "version": "4.66.0",
    "vulns": [{"id": "CVE-2024-34062", "fix_versions": ["4.66.3"]}],
}
UNKNOWN = {"name": "rich", "skip_reason": "Dependency not found on PyPI"}


@pytest.fixture(scope="module")
def audit():
    if not SCRIPT.exists():
        pytest.skip("only a checkout has the scripts of continuous integration")
    spec = importlib.util.spec_from_file_location("audit", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("packages", "code", "expected"),
    [
        ([CLEAN], 0, "1 of 1 packages looked up, 0 known holes"),
        ([CLEAN, HOLED], 1, "tqdm 4.66.0: CVE-2024-34062, fixed in 4.66.3"),
        ([HOLED, UNKNOWN], 1, "not looked up: rich"),
        ([CLEAN, UNKNOWN], 2, "not looked up: rich"),
        ([UNKNOWN], 2, "Nothing was audited"),
        ([], 2, "Nothing was audited"),
    ],
)
def test_only_packages_that_were_looked_up_are_clean(audit, packages, code, expected):
    found, lines = audit.summary({"dependencies": packages})
    assert found == code
    assert expected in "\n".join(lines)


@pytest.mark.skipif(os.name != "posix", reason="the stand-in is a shell script")
@pytest.mark.parametrize(
    ("report", "code", "expected"),
    [
        (json.dumps({"dependencies": [CLEAN]}), 0, "1 of 1 packages looked up"),
        (json.dumps({"dependencies": [CLEAN, HOLED]}), 1, "CVE-2024-34062"),
        (json.dumps({"dependencies": [UNKNOWN]}), 2, "Nothing was audited"),
        ("", 2, "Nothing was audited"),
    ],
)
def test_the_exit_code_depends_on_what_pip_audit_found(audit, tmp_path, report, code, expected):
    stand_in = tmp_path / "pip-audit"
    stand_in.write_text(f"#!/bin/sh\ncat <<'END'\n{report}\nEND\n")
    stand_in.chmod(0o755)
    done = subprocess.run(
        [sys.executable, SCRIPT, stand_in, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert expected in done.stdout

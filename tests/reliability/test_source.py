"""What the package must never do, looked for in its source."""

import ast
from pathlib import Path

import pytest

import ratoon

FILES = sorted(Path(ratoon.__file__).parent.rglob("*.py"))
RUN_CODE = {"pickle", "cloudpickle", "dill", "marshal", "shelve"}
"""Modules whose readers run what a file says."""
FORBIDDEN_CALLS = {"eval", "exec", "joblib.load", "torch.load"}


def dotted(node):
    """Return the name of what is called, like ``np.load``."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def offences(source):
    """Return what in a source would run code out of a file, with line numbers."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found += [
            (node.lineno, name)
            for name in names
            if name.split(".")[0] in RUN_CODE or name in FORBIDDEN_CALLS
        ]
        if isinstance(node, ast.Call):
            allows = [word.value for word in node.keywords if word.arg == "allow_pickle"]
            if any(not (isinstance(v, ast.Constant) and v.value is False) for v in allows):
                found.append((node.lineno, "allow_pickle"))
            if dotted(node.func) in FORBIDDEN_CALLS:
                found.append((node.lineno, dotted(node.func)))
            if dotted(node.func) in ("np.load", "numpy.load") and not allows:
                found.append((node.lineno, "np.load"))
    return found


def test_no_pickle_is_loaded_and_no_text_is_run():
    assert len(FILES) > 50
    found = {path.name: offences(path.read_text(encoding="utf-8")) for path in FILES}
    assert {name: where for name, where in found.items() if where} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from dill.session import load_session",
        "from joblib import load",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=trusted)",
        "joblib.load(path)",
        "torch.load(path)",
        "eval(text)",
    ],
)
def test_the_search_finds_calls_that_run_code(source):
    assert offences(source) != []

"""The documents: every block of Python runs, every command exists, every link has a target."""

import ast
import importlib
import re
import shlex
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import pytest
import typer.main
from matplotlib import pyplot

import ratoon
import ratoon.datasets
from ratoon.cli.app import app
from ratoon.evolution import STRATEGIES

ROOT = Path(__file__).parent.parent
FOUND = (
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("docs/methods/*.md")),
)
PAGES = [page for page in FOUND if page.exists()]

pytestmark = pytest.mark.skipif(not PAGES, reason="the documents are not next to the tests")

# A block that cannot run here begins with ```python notest; this page has none that could.
NOT_RUN = {"docs/data.md": "reads files of the reader, and downloads"}
NEEDS = {"docs/in-pytorch.md": "torch"}

BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page, language, *, to_run=False):
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        if match[1] == language and not (to_run and "notest" in match[2]):
            yield text[: match.start()].count("\n") + 2, match[3]


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """Run in an empty folder, show no windows, and forget strategies that pages register."""
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    known = dict(STRATEGIES)
    yield tmp_path
    STRATEGIES.clear()
    STRATEGIES.update(known)
    pyplot.close("all")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_python_can_be_read(page):
    for line, code in blocks(page, "python"):
        ast.parse(code, filename=f"{name_of(page)}, line {line}")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(blocks(page, "python", to_run=True))], ids=name_of
)
def test_every_block_of_python_runs(page, nowhere):
    if name_of(page) in NOT_RUN:
        pytest.skip(NOT_RUN[name_of(page)])
    if name_of(page) in NEEDS:
        torch = pytest.importorskip(NEEDS[name_of(page)])
        torch.set_num_threads(1)  # as in tests/torch/conftest.py, and for its reasons
    names = {"__name__": "__main__"}
    for line, code in blocks(page, "python", to_run=True):
        # Empty lines before the code make tracebacks name the line of the page.
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)


def commands_of(page):
    for line, text in blocks(page, "console"):
        joined = text.replace("\\\n", " ")
        for number, entered in enumerate(joined.splitlines()):
            if not entered.startswith("$ "):
                continue
            words = list(shlex.shlex(entered[2:], posix=True, punctuation_chars=True))
            ends = [k for k, word in enumerate(words) if set(word) <= set("&|;<>")]
            for first, last in pairwise([-1, *ends, len(words)]):
                if words[first + 1 : first + 2] == ["ratoon"]:
                    yield line + number, words[first + 1 : last]


@pytest.mark.parametrize("page", [page for page in PAGES if any(commands_of(page))], ids=name_of)
def test_every_command_and_option_exists(page):
    for line, words in commands_of(page):
        command = typer.main.get_command(app)
        rest = words[1:]
        while rest and hasattr(command, "commands") and rest[0] in command.commands:
            command = command.commands[rest.pop(0)]
        known = {"--help"} | {opt for param in command.params for opt in param.opts}
        used = [word for word in rest if word.startswith("-") and not word[1:2].isdigit()]
        assert set(used) <= known, f"{name_of(page)}, line {line}: {' '.join(words)}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_to_a_file_has_a_target(page):
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(text):
        file = target.split("#")[0]
        if file and not re.match(r"[a-z]+:", target):
            assert (page.parent / file).exists(), target


def test_every_page_is_in_the_menu_and_on_the_front_page():
    menu = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    front = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in ROOT.glob("docs/*.md"):
        if page.stem != "index":
            assert f'"{page.stem}"' in menu, page
            assert f"({page.name}" in front, page


def test_the_readme_fits_two_screens():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100


def test_the_api_page_has_every_name_of_the_package():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [name for name in ratoon.__all__ if name not in text and name != "__version__"] == []


API = (ROOT / "docs/api.md").read_text(encoding="utf-8") if PAGES else ""
# Returned by functions that are listed, and described there.
NOT_LISTED = {
    "Alignment",
    "DownloadError",
    "Examination",
    "Finding",
    "KnownDataset",
    "MIN_COVERAGE",
    "TIES",
    "can_stay_on_disk",
    "MissingPackageError",
    "data_folder",
}
LISTED = re.findall(r"^   (ratoon(?:\.\w+)+)$", API, re.MULTILINE)


def test_the_api_reference_lists_names_that_exist():
    assert len(LISTED) > 100
    for name in LISTED:
        module, _, attribute = name.rpartition(".")
        if module.startswith("ratoon.torch"):
            continue  # behind an extra; `make docs` imports it
        assert hasattr(importlib.import_module(module), attribute), name


def test_the_api_reference_lists_every_public_name():
    for package in (ratoon, ratoon.datasets, ratoon.survival):
        for name in set(package.__all__) - {"__version__", *NOT_LISTED}:
            assert f"{package.__name__}.{name}" in LISTED

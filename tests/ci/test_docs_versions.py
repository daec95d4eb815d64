"""The menu of versions of the documentation."""

import importlib.util
import json
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "docs_versions.py"


@pytest.fixture(scope="module")
def versions():
    if not SCRIPT.exists():
        pytest.skip("only a checkout has the scripts of continuous integration")
    spec = importlib.util.spec_from_file_location("docs_versions", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_newest_versions_are_first_and_candidates_before_their_release(versions):
    found = versions.listed(["1.2.0", "1.10.0", "1.10.0rc2", "1.10.0rc10", "2.0.0rc1"])
    assert [one["version"] for one in found] == [
        "2.0.0rc1",
        "1.10.0",
        "1.10.0rc10",
        "1.10.0rc2",
        "1.2.0",
    ]
    assert [one["version"] for one in found if one["preferred"]] == ["1.10.0"]


def test_a_candidate_is_preferred_if_there_is_nothing_else(versions):
    assert versions.listed(["1.0.0rc1"])[0]["preferred"]


def test_adding_a_version_keeps_the_others_and_replaces_its_own_pages(versions, tmp_path):
    pages, site = tmp_path / "pages", tmp_path / "site"
    for version, text in (("1.0.0", "one"), ("1.1.0", "two"), ("1.0.0", "three")):
        pages.mkdir(exist_ok=True)
        (pages / "index.html").write_text(text)
        versions.add(pages, site, version)
    assert (site / "1.0.0" / "index.html").read_text() == "three"
    assert (site / "1.1.0" / "index.html").read_text() == "two"
    assert "1.1.0/index.html" in (site / "index.html").read_text()
    entries = json.loads((site / "versions.json").read_text())
    assert {entry["url"] for entry in entries} == {"../1.0.0/index.html", "../1.1.0/index.html"}

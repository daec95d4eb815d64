"""Files that describe a release agree with pyproject.toml."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / ".ci").exists():
    pytest.skip("only a checkout has the files of a release", allow_module_level=True)

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("check", ROOT / ".ci" / "release_check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text()
    recipe = (ROOT / ".ci" / "conda" / "recipe.yaml").read_text()
    assert json.loads((ROOT / "codemeta.json").read_text())["version"] == PROJECT["version"]
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == PROJECT["version"]
    assert re.search(r'^  version: "(.*)"$', recipe, re.MULTILINE)[1] == PROJECT["version"]
    assert f"## [{PROJECT['version']}]" in (ROOT / "CHANGELOG.md").read_text()


def test_dependencies_and_keywords_are_the_same_everywhere():
    meta = json.loads((ROOT / "codemeta.json").read_text())
    assert meta["softwareRequirements"] == PROJECT["dependencies"]
    assert meta["keywords"] == PROJECT["keywords"]
    recipe = (ROOT / ".ci" / "conda" / "recipe.yaml").read_text()
    for dependency in [*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"]:
        name, floor = dependency.split(">=")
        name = {"matplotlib": "matplotlib-base"}.get(name, name)
        assert f"    - {name} >={floor}\n" in recipe


def test_from_python_3_12_on_one_wheel_serves_all(check):
    assert [check.expected_tag(v) for v in [(3, 11), (3, 12), (3, 14)]] == [
        "cp311-cp311",
        "cp312-abi3",
        "cp312-abi3",
    ]
    assert check.expected_tag((3, 14), is_free_threaded=True) == "cp314-cp314t"


def test_missing_and_unexpected_files_are_found(check):
    check.check_names(["a", "b/c"], ["a"], ["d/"], "it")
    for names in (["b/c"], ["a", "d/e"]):
        with pytest.raises(check.ReleaseError):
            check.check_names(names, ["a"], ["d/"], "it")


def test_provenance_names_every_file_with_its_digest(check, tmp_path):
    path = tmp_path / "x.whl"
    path.write_bytes(b"wheel")
    found = check.statement([path], "c0ffee", dirty=False)
    assert found["subject"] == [{"name": "x.whl", "digest": {"sha256": check.digest(path)}}]
    assert found["predicate"]["buildDefinition"]["resolvedDependencies"][0]["digest"] == {
        "gitCommit": "c0ffee"
    }

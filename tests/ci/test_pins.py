"""The lowest versions that `make test-oldest` installs are those of pyproject.toml."""

import importlib.util
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / ".ci/pins.py").exists():
    pytest.skip("the repository is not next to the tests", allow_module_level=True)


@pytest.fixture
def lowest():
    spec = importlib.util.spec_from_file_location("pins", ROOT / ".ci/pins.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.lowest


def test_every_requirement_with_a_lower_bound_is_pinned_to_it(lowest):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = lowest(project, {"polars"})
    for text in project["dependencies"]:
        assert text.replace(">=", "==") in pins
    assert "dask[distributed]==2024.1" in pins
    assert not any(pin.startswith(("polars", "ruff", "torch")) for pin in pins)


def test_two_lower_bounds_of_a_package_are_an_error(lowest):
    clash = {"dependencies": ["a>=1"], "optional-dependencies": {"test": [], "x": ["a>=2"]}}
    with pytest.raises(ValueError, match="a has the lower bounds 1 and 2"):
        lowest(clash)

"""Print the lowest versions that pyproject.toml declares, as requirements for pip.

`make test-oldest` installs exactly these.  Development tools that are pinned anyway are left out,
and so are the packages named with --without.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
INDIRECT = ("click==8.1.8",)
"""Packages of our requirements that warn of the lowest versions of these when they are newer."""
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(?P<extras>\[[\w,]+\])?>=(?P<version>[\w.]+)")


def lowest(project: dict[str, object], without: set[str] = frozenset()) -> list[str]:
    """Return a pin for every requirement with a lower bound, in the order of their names.

    Raises
    ------
    ValueError
        If a package has two lower bounds: only one of them would be tested.
    """
    extras: dict[str, list[str]] = project["optional-dependencies"]  # type: ignore[assignment]
    wanted = [*project["dependencies"], *extras["test"]]  # type: ignore[misc]
    every = [*wanted, *(item for name, items in extras.items() if name != "test" for item in items)]
    bounds: dict[str, str] = {}
    for text in every:
        if (found := REQUIREMENT.fullmatch(text)) is None:
            continue
        name, version = found["name"], found["version"]
        if bounds.setdefault(name, version) != version:
            raise ValueError(f"{name} has the lower bounds {bounds[name]} and {version}")
    pins = []
    for text in wanted:
        found = REQUIREMENT.fullmatch(text)
        if found is not None and found["name"] not in without:
            pins.append(f"{found['name']}{found['extras'] or ''}=={found['version']}")
    return sorted([*pins, *INDIRECT])


def main() -> None:
    """Print the pins."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", default="", help="packages to leave out, with commas")
    parser.add_argument("--names", action="store_true", help="print names without versions")
    given = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = lowest(project, set(given.without.split(",")))
    print("\n".join(pin.partition("==")[0] if given.names else pin for pin in pins))


if __name__ == "__main__":
    main()

"""Copy built pages to a folder of their version, and list all versions for the menu of the pages.

    python .ci/docs_versions.py build/docs SITE

``SITE`` then has one folder per version, `versions.json`, and `index.html`, which leads to the
newest version that is not a candidate.
"""

import argparse
import json
import re
import shutil
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
INDEX = (
    '<!doctype html><meta charset="utf-8"><title>ratoon</title>'
    '<meta http-equiv="refresh" content="0; url={0}/index.html">'
    '<a href="{0}/index.html">ratoon</a>\n'
)


def order(version):
    """Return a key that sorts versions; a candidate is before its release."""
    numbers = [int(part) for part in re.findall(r"\d+", version.split("rc")[0])]
    candidate = re.search(r"rc(\d+)", version)
    return (numbers, candidate is None, int(candidate[1]) if candidate else 0)


def listed(versions):
    """Return the entries of the menu, newest first."""
    newest_first = sorted(versions, key=order, reverse=True)
    stable = next((one for one in newest_first if "rc" not in one), newest_first[0])
    return [
        {
            "version": one,
            "name": f"{one} (stable)" if one == stable and "rc" not in one else one,
            "url": f"../{one}/index.html",
            "preferred": one == stable,
        }
        for one in newest_first
    ]


def add(pages, site, version):
    """Add the pages of a version to a site."""
    shutil.rmtree(site / version, ignore_errors=True)
    shutil.copytree(pages, site / version, ignore=shutil.ignore_patterns(".doctrees"))
    versions = [path.name for path in site.iterdir() if (path / "index.html").exists()]
    entries = listed(versions)
    (site / "versions.json").write_text(json.dumps(entries, indent=1) + "\n")
    preferred = next(entry["version"] for entry in entries if entry["preferred"])
    (site / "index.html").write_text(INDEX.format(preferred))


def main():
    """Add the pages of the current version."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", type=Path)
    parser.add_argument("site", type=Path)
    given = parser.parse_args()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    add(given.pages, given.site, version)
    print(f"{given.site / version}, and {given.site / 'versions.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

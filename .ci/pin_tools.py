"""Write requirements-tools.txt: what builds and checks ratoon, pinned by version and by hash.

    .venv/bin/python .ci/pin_tools.py > requirements-tools.txt

pip is asked, for every platform and every Python that the file is to serve, what it would install
and what its hash is.  Versions are those named here, and for what they need in turn the newest of
today; the file is the union of all answers.  Libraries that ratoon runs with are not pinned: it is
to be tested with those its users have.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

WANTED = [
    "pip==26.3",
    "scikit-build-core==1.1.1",
    "nanobind==3.1.0",
    "cmake==4.4.4",
    "ninja==1.13.2",
    "ruff==0.17.4",
    "mypy==2.4.1",
    "import-linter==2.16",
    "clang-format==23.1.3",
    "codespell==2.4.3",
    "pytest==9.2.0",
    "pytest-cov==7.1.0",
    "pytest-xdist==3.8.0",
    "hypothesis==6.170.15",
]
PLATFORMS = {
    "Linux, x86": ["manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"],
    "Linux, ARM": ["manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"],
    "macOS, ARM": ["macosx_14_0_arm64", "macosx_11_0_arm64", "macosx_11_0_universal2"],
}
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def installed_by(platforms: list[str], python: str) -> list[tuple[str, str, str]]:
    """Return name, version and hash of everything pip would install there."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
        command += ["--ignore-installed", "--only-binary=:all:", "--target", folder]
        command += ["--report", str(report), "--python-version", python]
        for platform in platforms:
            command += ["--platform", platform]
        subprocess.run([*command, *WANTED], check=True, stdout=sys.stderr)
        found = json.loads(report.read_text())["install"]
    return [
        (
            item["metadata"]["name"].lower().replace("_", "-"),
            item["metadata"]["version"],
            item["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for item in found
    ]


def main() -> None:
    """Ask pip everything and print the file."""
    pinned: dict[tuple[str, str], set[str]] = {}
    for name, platforms in PLATFORMS.items():
        for python in PYTHONS:
            print(f"{name}, Python {python}", file=sys.stderr)
            for package, version, digest in installed_by(platforms, python):
                pinned.setdefault((package, version), set()).add(digest)
    names = [package for package, _ in pinned]
    twice = sorted({package for package in names if names.count(package) > 1})
    if twice:
        raise SystemExit(f"different versions on different platforms: {', '.join(twice)}")
    print(
        "# Made by .ci/pin_tools.py; not to be edited.  Everything that builds and checks ratoon."
    )
    for (package, version), digests in sorted(pinned.items()):
        lines = [f"{package}=={version}", *(f"--hash=sha256:{each}" for each in sorted(digests))]
        print(" \\\n    ".join(lines))


if __name__ == "__main__":
    main()

"""Build the source distribution and wheels, and check them as a release would be used.

    python .ci/release_check.py DIST [--pythons python3.11 python3.12 ...]

Steps: build the sdist and look at its content; build a wheel from the sdist for every Python; check
its tag (one abi3 wheel from Python 3.12 on), its metadata and its content; repair it for manylinux
where auditwheel can; install it in a new environment and use it; write checksums, a bill of
materials (CycloneDX) and a statement of provenance (SLSA 1.0, unsigned) next to it; render the
conda recipe with rattler-build, which refuses unknown keys.
"""

import argparse
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
RECIPE = ROOT / ".ci" / "conda" / "recipe.yaml"
NOT_IN_SDIST = (".ci/", "research/", ".venv", "build/", "dist/")
IN_SDIST = ("pyproject.toml", "CMakeLists.txt", "native/network.cpp", "src/ratoon/__init__.py")
IN_WHEEL = ("ratoon/__init__.py", "ratoon/py.typed", "ratoon/report/templates/page.html")

SMOKE = """
import subprocess, sys, tempfile
from pathlib import Path
import numpy as np
import ratoon
from ratoon.inference import Predictor

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 20)).astype("float32")
y = np.where(X[:, 0] > 0, "ill", "well")
model = ratoon.SparseMLPClassifier((50,), evolution="rigl", random_state=0).fit(X, y)
assert model.score(X, y) > 0.9
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.ratoon"
    model.save(path)
    assert (ratoon.load(path).predict(X) == model.predict(X)).all()
    assert np.allclose(Predictor.load(path).predict_proba(X), model.predict_proba(X), atol=1e-5)
    command = [sys.executable, "-m", "ratoon", "inspect", str(path)]
    subprocess.run(command, check=True, capture_output=True)
print("ratoon", ratoon.__version__, "works on Python", sys.version.split()[0])
"""


class ReleaseError(Exception):
    """A file that would be released is wrong."""


def tool(name):
    """Return the path of a program of this environment."""
    return str(Path(sys.executable).with_name(name))


def run(*command, **options):
    """Run a command; print what it printed and raise if it fails."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, **options
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_names(names, required, forbidden, what):
    """Raise unless all required files are there and no forbidden ones are."""
    missing = [name for name in required if name not in names]
    extra = [name for name in names if name.startswith(tuple(forbidden))] if forbidden else []
    if missing or extra:
        raise ReleaseError(f"{what}: missing {missing}, not expected {extra[:5]}")


def build_sdist(folder):
    """Build the source distribution, and return it."""
    run(tool("python"), "-m", "build", "--sdist", "--outdir", folder, ROOT)
    (path,) = folder.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = ["/".join(name.split("/")[1:]) for name in archive.getnames()]
    check_names(names, IN_SDIST, NOT_IN_SDIST, path.name)
    return path


def expected_tag(version, *, is_free_threaded=False):
    """Return the tag of the wheel that a Python of this version builds.

    From 3.12 on one wheel of the stable ABI serves every later version that has a global lock.
    """
    if version >= (3, 12) and not is_free_threaded:
        return "cp312-abi3"
    name = f"cp{version[0]}{version[1]}"
    return f"{name}-{name}{'t' * is_free_threaded}"


VERSION = """
import json, sys, sysconfig
print(json.dumps([sys.version_info[:2], bool(sysconfig.get_config_var("Py_GIL_DISABLED"))]))
"""


def build_wheel(sdist, python, folder):
    """Build a wheel from the source distribution, as pip would, and return it."""
    version, is_free_threaded = json.loads(run(python, "-c", VERSION))
    tag = expected_tag(tuple(version), is_free_threaded=is_free_threaded)
    with tempfile.TemporaryDirectory() as place:
        run(python, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", place, sdist)
        (built,) = Path(place).glob("*.whl")
        if tag not in built.name:
            raise ReleaseError(f"{built.name} has no tag {tag}")
        with zipfile.ZipFile(built) as archive:
            names = archive.namelist()
        check_names(names, IN_WHEEL, ("tests/", "benchmarks/", "ratoon/tests"), built.name)
        if "abi3" in built.name:
            run(tool("abi3audit"), "--strict", built)
        repaired = repair(built, folder)
    return repaired


def repair(wheel, folder):
    """Return the wheel with a manylinux tag, where auditwheel can; otherwise a copy of it."""
    if platform.system() != "Linux":
        return Path(shutil.copy(wheel, folder))
    before = set(folder.iterdir())
    run(tool("auditwheel"), "repair", "--wheel-dir", folder, wheel, env=with_path())
    (repaired,) = set(folder.iterdir()) - before
    return repaired


def with_path():
    """Return the environment in which tools find each other."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def use(wheel, python, folder):
    """Install the wheel in a new environment, use it, and write its bill of materials."""
    with tempfile.TemporaryDirectory() as place:
        run(python, "-m", "venv", place)
        inside = Path(place) / "bin" / "python"
        run(inside, "-m", "pip", "install", "--quiet", wheel)
        run(inside, "-m", "pip", "check")
        print(run(inside, "-I", "-c", SMOKE, cwd=place).strip())
        sbom = folder / "sbom.cdx.json"
        run(tool("cyclonedx-py"), "environment", "--of", "JSON", "-o", sbom, inside)
    parts = {part["name"] for part in json.loads(sbom.read_text())["components"]}
    if not {"ratoon", "numpy", "scipy", "scikit-learn"} <= parts:
        raise ReleaseError(f"{sbom.name} does not list the dependencies: {sorted(parts)}")


def check_recipe(path):
    """Render the conda recipe for two platforms and Pythons; raise if it has an error."""
    import rattler_build as conda

    given = {"python": ["3.11.* *_cpython", "3.13.* *_cp313"], "c_stdlib_version": ["2.28"]}
    stdlib = {"linux-64": "sysroot", "osx-arm64": "macosx_deployment_target"}
    rendered = []
    try:
        for platform_name, name in stdlib.items():
            variants = conda.VariantConfig({**given, "c_stdlib": [name]})
            config = conda.PlatformConfig(target_platform=platform_name)
            recipe = conda.Stage0Recipe.from_file(str(path))
            rendered += recipe.render(variants, conda.RenderConfig(config))
    except conda.RattlerBuildError as error:
        raise ReleaseError(f"{path.name}: {error}") from error
    builds = {one.recipe.to_dict()["build"]["string"][:5] for one in rendered}
    if len(rendered) != 4 or builds != {"py311", "py313"}:
        raise ReleaseError(f"{path.name}: rendered to {builds}")
    return len(rendered)


def digest(path):
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def statement(paths, commit, *, dirty):
    """Return where the files come from, in the form of SLSA provenance 1.0."""
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": path.name, "digest": {"sha256": digest(path)}} for path in paths],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://packaging.python.org/en/latest/flow/",
                "externalParameters": {"command": "make release-check"},
                "internalParameters": {"uncommittedChanges": dirty},
                "resolvedDependencies": [{"name": "ratoon", "digest": {"gitCommit": commit}}],
            },
            "runDetails": {
                "builder": {"id": "local", "version": {"python": platform.python_version()}},
                "metadata": {"finishedOn": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")},
            },
        },
    }


def describe(folder, paths):
    """Write checksums and provenance next to the files."""
    commit = run("git", "-C", ROOT, "rev-parse", "HEAD").strip()
    dirty = bool(run("git", "-C", ROOT, "status", "--porcelain").strip())
    lines = [f"{digest(path)}  {path.name}\n" for path in paths]
    (folder / "SHA256SUMS").write_text("".join(lines))
    provenance = json.dumps(statement(paths, commit, dirty=dirty), indent=1)
    (folder / "provenance.json").write_text(provenance + "\n")


def main():
    """Build and check everything; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pythons", nargs="+", default=[sys.executable])
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    try:
        sdist = build_sdist(given.folder)
        print(f"{sdist.name}: content checked")
        wheels = {}
        for python in given.pythons:
            wheel = build_wheel(sdist, python, given.folder)
            wheels[wheel.name] = wheel
            print(f"{wheel.name}: tag and content checked")
            use(wheel, python, given.folder)
        files = [sdist, *wheels.values()]
        run(tool("twine"), "check", "--strict", *files)
        describe(given.folder, files)
        print(f"conda recipe: renders to {check_recipe(RECIPE)} builds")
    except ReleaseError as error:
        print(f"release-check: {error}", file=sys.stderr)
        return 1
    print(f"{len(files)} files, SHA256SUMS, sbom.cdx.json and provenance.json in {given.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Look up every package of an environment in a database of vulnerabilities.

    python .ci/audit.py PIP_AUDIT FOLDER [--service osv]

pip-audit reports an environment as clean even if its database knew none of the packages, as with
an index without such data.  Here a package counts as clean only if it was looked up.
Exit code 0: all packages looked up, none with a known hole.  1: a hole.  2: not all looked up.
"""

import argparse
import json
import subprocess
import sys


def summary(report):
    """Return the exit code and what to print, given the JSON report of pip-audit."""
    packages = report["dependencies"]
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    holes = [
        f"{package['name']} {package['version']}: {found['id']}, fixed in "
        + (", ".join(found["fix_versions"]) or "no version yet")
        for package in packages
        for found in package.get("vulns", [])
    ]
    looked_up = len(packages) - len(skipped)
    lines = [*holes, f"{looked_up} of {len(packages)} packages looked up, {len(holes)} known holes"]
    if not looked_up:
        lines.append("Nothing was audited: no database of vulnerabilities was reached. Run this")
        lines.append("where PyPI is reachable, or use another database: make audit SERVICE=osv")
    elif skipped:
        lines.append(f"not looked up: {', '.join(skipped)}")
    return (1 if holes else 2 if skipped or not packages else 0), lines


def ask(pip_audit, folder, service):
    """Return the report of pip-audit, or None if it printed none."""
    command = [pip_audit, "--format", "json", "--progress-spinner", "off", "--skip-editable"]
    done = subprocess.run(
        [*command, "--vulnerability-service", service, "--path", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        error = done.stderr.strip() or f"{pip_audit} printed nothing"
        print(error.splitlines()[-1], file=sys.stderr)
        return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pip_audit")
    parser.add_argument("folder")
    parser.add_argument("--service", default="pypi", choices=["pypi", "osv", "esms"])
    given = parser.parse_args()
    report = ask(given.pip_audit, given.folder, given.service)
    code, lines = summary(report or {"dependencies": []})
    print("\n".join(lines))
    sys.exit(code)

"""The scripts of the gallery run, are short, and come to what their words say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("plot_*.py"))

# Figures that a script prints, and the least they must be.  With generous margins: they are there
# to notice that an example has stopped working, not to measure.
LEAST = {
    "plot_1_first_steps": (r"test samples: ([\d.]+)", 0.6),
    "plot_2_gene_expression": (r"inside each fold: accuracy ([\d.]+)", 0.6),
    "plot_3_sparse_text": (r"accuracy: ([\d.]+)", 0.9),
    "plot_4_comparing_strategies": (r"RigL +last epoch ([\d.]+)", 0.8),
    "plot_5_evolving_topology": (r"([\d.]+)% at the end", 30.0),
    "plot_6_from_file_to_page": (r"test accuracy: ([\d.]+)", 0.8),
    "plot_7_inferring_genes": (r"better than linear regression on ([\d.]+) %", 80.0),
    "plot_8_mnist": (r"rigl +last epoch ([\d.]+)", 0.9),
    "plot_9_survival": (r"held-out samples: ([\d.]+)", 0.6),
}


def test_every_script_is_listed():
    assert [path.stem for path in SCRIPTS] == list(LEAST)


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_of_the_gallery_runs(path, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error::FutureWarning", str(path)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,  # against hanging, not against being slow
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pattern, least = LEAST[path.stem]
    found = re.search(pattern, done.stdout)
    assert found, done.stdout
    assert float(found[1]) >= least


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_of_the_gallery_is_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 64

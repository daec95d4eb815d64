"""`ratoon select` ranks features by name and says how sure it is."""

import csv
import json

import numpy as np
import pytest

from ratoon.cli import main
from ratoon.datasets import make_microarray, write


@pytest.fixture(scope="module")
def genes(tmp_path_factory):
    data, informative = make_microarray(60, 150, n_informative=6, effect=4.0, random_state=0)
    path = tmp_path_factory.mktemp("data") / "genes.csv"
    write(data, path)
    return path, {data.feature_names[j] for j in informative}


def test_the_table_names_strength_stability_and_direction(genes, tmp_path, capsys):
    path, informative = genes
    table, picture = tmp_path / "panel.csv", tmp_path / "panel.png"
    code = main(
        [
            "select",
            str(path),
            "-k",
            "6",
            "--repeats",
            "2",
            "-o",
            str(table),
            "--picture",
            str(picture),
        ]
    )
    assert code == 0
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["rank"] for row in rows] == list("123456")
    assert len({row["feature"] for row in rows} & informative) >= 4
    assert all(row["direction"].startswith("highest in class") for row in rows)
    assert picture.stat().st_size > 0
    assert set(rows[0]) >= {"importance", "stability", "difference", "statistic", "fdr"}
    printed = capsys.readouterr().err
    assert "Stability index" in printed
    assert "expected number of false ones among them: at most" in printed
    assert "on the 60 rows given" in printed


def test_json_is_one_document(genes, capsys):
    assert main(["select", str(genes[0]), "-k", "3", "--repeats", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["features"]) == 3
    assert -1.0 <= found["stability_index"] <= 1.0
    assert set(found["stable"]["features"]) <= {row["feature"] for row in found["features"]}
    assert found["stable"]["expected_false"] == pytest.approx(3**2 / (150 * 0.8))


def test_no_labels_are_needed_without_supervision(genes, tmp_path):
    table = tmp_path / "panel.tsv"
    arguments = ["select", str(genes[0]), "-k", "4", "--unsupervised", "--repeats", "1"]
    assert main([*arguments, "-o", str(table), "-q"]) == 0
    assert len(table.read_text(encoding="utf-8").splitlines()) == 5
    assert "\t" in table.read_text(encoding="utf-8")


def test_groups_stay_together(tmp_path, capsys):
    rng = np.random.default_rng(0)
    lines = ["outcome,patient," + ",".join(f"gene{k}" for k in range(8))]
    for k in range(48):
        values = rng.normal(size=8) + (k % 2) * np.eye(8)[3] * 4
        cells = ",".join(f"{v:.3f}" for v in values)
        lines.append(f"{'ab'[k % 2]},P{k // 4},{cells}")
    path = tmp_path / "patients.csv"
    path.write_text("\n".join(lines) + "\n")
    given = ["select", str(path), "--label", "outcome", "-k", "2", "--repeats", "2", "--json"]
    assert main([*given, "--group", "patient"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["features"][0]["feature"] == "gene3"
    assert main([*given, "--read", "ignore=patient"]) == 0
    other = json.loads(capsys.readouterr().out)
    assert [row["spread"] for row in other["features"]] != [
        row["spread"] for row in found["features"]
    ]

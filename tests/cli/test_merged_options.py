"""Groups, preparation and survival times in every command that reads a model."""

import json
import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

import ratoon
from ratoon import SparseMLPClassifier
from ratoon.cli import main
from ratoon.datasets import Dataset, make_microarray, read
from ratoon.report import render_report

PREPARED = ["--group", "batch", "--center-groups", "--log2", "yes", "--normalize", "quantile"]
SURVIVAL = ["--time", "months", "--event", "status", "--group", "batch"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with data files of classes and of survival times, and a model of each."""
    folder = tmp_path_factory.mktemp("merged")
    data, _ = make_microarray(48, 120, n_informative=8, random_state=0)
    x = np.asarray(data.X)
    genes = pd.DataFrame(
        np.exp2(x + 8).round(2),
        columns=[f"G{j}" for j in range(120)],
        index=[f"S{k}" for k in range(48)],
    )
    genes.index.name = "sample"
    genes.insert(0, "batch", [f"b{k % 6}" for k in range(48)])
    survival = genes.copy()
    rng = np.random.default_rng(0)
    survival.insert(0, "status", np.where(rng.random(48) < 0.8, "dead", "alive"))
    survival.insert(0, "months", (rng.exponential(np.exp(-x[:, 0])) + 0.01).round(4))
    survival.to_csv(folder / "survival.csv")
    genes.insert(0, "outcome", np.where(np.asarray(data.y) == 0, "well", "ill"))
    genes.to_csv(folder / "genes.csv")
    for name, given in (
        ("genes", ["--label", "outcome", *PREPARED, "--cv", "none"]),
        ("survival", SURVIVAL),
    ):
        where = ["-o", str(folder / f"{name}.ratoon"), "--report", str(folder / f"{name}.html")]
        assert main(["train", str(folder / f"{name}.csv"), *given, *where, "-q"]) == 0
    return folder


@pytest.mark.parametrize("name", ["genes", "survival"])
@pytest.mark.parametrize("command", ["predict", "evaluate", "explain", "report", "slim"])
def test_the_training_file_needs_no_options(files, capsys, command, name):
    given = [command, str(files / f"{name}.ratoon"), str(files / f"{name}.csv")]
    given += ["-o", str(files / "x.html")] if command == "report" else []
    assert main(given) == 0, capsys.readouterr().err
    assert "pass --label" not in capsys.readouterr().err


def test_one_sample_is_explained_as_it_is_predicted(files, capsys):
    """A sample of a batch that is new is centred by all samples of the file."""
    new = pd.read_csv(files / "genes.csv").assign(batch="b9")
    new.to_csv(files / "new.csv", index=False)
    model = ratoon.load(files / "genes.ratoon")
    data = read(files / "new.csv", label="outcome", group="batch")
    called = ["explain", str(files / "genes.ratoon"), str(files / "new.csv"), "-s", "S3", "--json"]
    assert main(called) == 0
    found = json.loads(capsys.readouterr().out)[0]
    assert found["output"] == pytest.approx(model.explain(data).outputs[3])
    alone = model.explain(data.take([3])).outputs[0]
    assert found["output"] != pytest.approx(alone)


def test_explaining_survival_adds_up_to_the_risk(files):
    model = ratoon.load(files / "survival.ratoon")
    data = read(files / "survival.csv", group="batch", time="months", event="status")
    found = model.explain(data, rows=[4, 2])
    assert found.outputs == pytest.approx(model.predict(data)[[4, 2]])
    total = found.values.sum(axis=1) + found.base_values
    assert total == pytest.approx(found.outputs, abs=1e-4)
    assert found.sample_names == ("S4", "S2")


def test_the_page_shows_prepared_samples_and_groups(files):
    text = (files / "genes.html").read_text(encoding="utf-8")
    assert "log2(max(v, 0) + 1) of all values, then quantile normalisation" in text
    assert "6 of &#39;batch&#39;" in text


def test_maps_of_a_page_are_of_prepared_samples():
    """The same places as those of a model of samples that were prepared by hand."""
    rng = np.random.default_rng(0)
    raw, y = np.exp2(rng.normal(8, 2, (40, 6))), np.arange(40) % 2
    pages = []
    for x, prepare in ((raw, "log2"), (np.log2(raw + 1), None)):
        given = {"max_iter": 3, "random_state": 0, "prepare": prepare}
        data = Dataset(x, y, class_names=("ill", "well"))
        model = SparseMLPClassifier((8,), epsilon=4, **given).fit(data)
        page = render_report(model, data)
        # The page rounds places, and float32 logarithms differ in the last bit.
        places = re.findall(r'<circle[^>]* cx="([-\d.]+)"[^>]* cy="([-\d.]+)"', page)
        pages.append(np.array(places, dtype=float))
    assert len(pages[0]) >= 80
    assert np.allclose(pages[0], pages[1], atol=0.2)


def test_the_page_of_training_samples_shows_risks_of_models_without_them(files):
    model = ratoon.load(files / "survival.ratoon")
    data = read(files / "survival.csv", group="batch", time="months", event="status")
    page = files / "again.html"
    called = ["report", str(files / "survival.ratoon"), str(files / "survival.csv")]
    assert main([*called, "-q", "-o", str(page)]) == 0
    for path in (files / "survival.html", page):
        text = path.read_text(encoding="utf-8")
        assert "predicted by models that were trained without it" in " ".join(text.split())
        assert f"{model.score(data, data.y):.3f}</dd>" not in text


@pytest.mark.parametrize(
    ("name", "given"),
    [("genes", ["--label", "outcome", *PREPARED]), ("survival", SURVIVAL)],
)
def test_how_to_repeat_it_keeps_groups_and_preparation(files, capsys, name, given):
    page = files / "repeat.html"
    called = ["train", str(files / f"{name}.csv"), *given, "--test", "0.3", "--json"]
    assert main([*called, "--report", str(page)]) == 0
    first = json.loads(capsys.readouterr().out)
    text = page.read_text(encoding="utf-8")
    _, code = (unescape(one) for one in re.findall(r"<pre>(.*?)</pre>", text, re.DOTALL))
    exec(compile(code, "page", "exec"), {})
    score = first["test_score"] or first["concordance_of_held_out_samples"]
    assert float(capsys.readouterr().out) == score


def test_inspect_and_the_card_show_the_preparation(files, capsys):
    model = str(files / "genes.ratoon")
    for options in (["--top", "0"], ["--card"], ["--json"]):
        assert main(["inspect", model, *options]) == 0
        outcome = capsys.readouterr()
        text = " ".join((outcome.out + outcome.err).split())
        assert "quantile normalisation to the training samples" in text
    assert main(["inspect", str(files / "survival.ratoon"), "--card"]) == 0
    card = capsys.readouterr().out
    assert "  - survival-analysis" in card
    assert "| concordance on test data |" in card
    assert "R squared" not in card


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["train", "{survival}", *SURVIVAL, "--label", "batch"], "--label batch cannot be used"),
        (["train", "{survival}", *SURVIVAL, "--distributed", "mpi"], "survival times"),
        (["train", "{genes}", "--duplicates", "some"], "--duplicates must be one of"),
        (
            ["compare-strategies", "{genes}", "--label", "outcome", "--read", "group=batch"],
            "does not keep groups together",
        ),
        (["serve", "{model}"], "rows of a request have no groups"),
        (["train", "{genes}", "--label", "outcome"], "patients or batches, pass --group"),
    ],
)
def test_what_a_command_cannot_do_is_refused(files, capsys, given, message):
    names = {"genes": "genes.csv", "survival": "survival.csv", "model": "genes.ratoon"}
    paths = {name: str(files / file) for name, file in names.items()}
    assert main([one.format(**paths) for one in given]) == 1
    assert message in " ".join(capsys.readouterr().err.split())


def test_split_networks_refuse_a_preparation(files, tmp_path, capsys):
    given = ["--distributed", "mpi", "--split", "neurons", "--checkpoint", str(tmp_path / "parts")]
    called = ["train", str(files / "genes.csv"), "--label", "outcome", "--read", "ignore=batch"]
    assert main([*called, "--log2", "yes", *given]) == 1
    assert "--log2" in capsys.readouterr().err


def test_survival_times_are_labels_for_data_show(files, capsys):
    given = ("time=months", "event=status", "group=batch")
    names = [one for name in given for one in ("--read", name)]
    assert main(["data", "show", str(files / "survival.csv"), *names]) == 0
    found = capsys.readouterr().out
    assert "survival: time from 'months'" in found
    assert "labels      none" not in found

"""`ratoon report` and `ratoon train --report` write one page."""

import pytest

from ratoon.cli import main
from ratoon.datasets import make_microarray, write


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    data, _ = make_microarray(40, 60, n_informative=10, random_state=0)
    write(data, folder / "genes.csv")
    return folder


def test_training_can_end_with_a_report(files):
    page = files / "train.html"
    network = ["--hidden", "20", "--epsilon", "3", "--epochs", "3"]
    where = ["-o", str(files / "m.ratoon"), "--report", str(page)]
    assert main(["train", str(files / "genes.csv"), "--test", "0.3", "-q", *network, *where]) == 0
    text = page.read_text(encoding="utf-8")
    assert "were held out" in text
    assert "Training on genes.csv" in text

    other = files / "later.html"
    called = ["report", str(files / "m.ratoon"), str(files / "genes.csv"), "-o", str(other)]
    assert main([*called, "-q", "--title", "A & B", "--top", "3"]) == 0
    text = other.read_text(encoding="utf-8")
    assert "<h1>A &amp; B</h1>" in text
    assert "not known: the model has no fingerprints" in text
    assert text.count('class="bar"') == 3
    assert "of a single network can be unstable" in text

    assert main([*called, "-q", "--stability", "2", "--top", "3"]) == 0
    text = other.read_text(encoding="utf-8")
    assert "averaged over 2" in text
    assert '<th scope="col">stability</th>' in text
    assert text.count('class="bar"') == 3


def test_a_missing_model_is_an_error(files, capsys):
    assert main(["report", str(files / "no.ratoon"), str(files / "genes.csv")]) == 1
    assert "no.ratoon" in capsys.readouterr().err

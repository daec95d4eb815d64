"""`ratoon report` and `ratoon train --report` write one page."""

import json
import re
import shlex
from html import unescape

import pytest

from ratoon.cli import main
from ratoon.datasets import make_microarray, write


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    data, _ = make_microarray(40, 60, n_informative=10, random_state=0)
    write(data, folder / "genes.csv")
    return folder


NETWORK = ["--hidden", "20", "--epsilon", "3", "--epochs", "3"]


def test_training_can_end_with_a_report(files):
    page = files / "train.html"
    where = ["-o", str(files / "m.ratoon"), "--report", str(page)]
    assert main(["train", str(files / "genes.csv"), "--test", "0.3", "-q", *NETWORK, *where]) == 0
    text = page.read_text(encoding="utf-8")
    assert "were held out" in text
    assert "Training on genes.csv" in text
    assert "Names of the held-out samples" in text

    other = files / "later.html"
    called = ["report", str(files / "m.ratoon"), str(files / "genes.csv"), "-o", str(other)]
    assert main([*called, "-q", "--title", "A & B", "--top", "3"]) == 0
    text = other.read_text(encoding="utf-8")
    assert "<h1>A &amp; B</h1>" in text
    assert "28 of 40 samples were used for training" in text
    assert "does not describe new samples" in text
    assert text.count('class="bar"') == 3
    assert "can be unstable" in text

    assert main([*called, "-q", "--stability", "2", "--top", "3"]) == 0
    text = other.read_text(encoding="utf-8")
    assert "averaged over 2" in text
    assert '<th scope="col">stability</th>' in text
    assert text.count('class="bar"') == 3

    assert main([*called, "-q", "--held-out"]) == 0
    assert "The 40 scored samples were held out" in other.read_text(encoding="utf-8")


def test_a_model_of_all_samples_is_cross_validated_for_its_report(files):
    model, page = str(files / "all.ratoon"), files / "all.html"
    data = str(files / "genes.csv")
    assert main(["train", data, "-q", *NETWORK, "-o", model, "--report", str(page)]) == 0
    first = page.read_text(encoding="utf-8")
    assert "Estimated by 5-fold cross-validation, repeated 3 times" in first
    assert "correlated" in first
    assert main(["report", model, data, "-q", "-o", str(page)]) == 0
    second = page.read_text(encoding="utf-8")
    # The same folds of the same estimator: the same predictions of all samples.
    block = re.compile(r'id="samples-data">(.*?)</script>')
    assert block.search(first)[1] == block.search(second)[1]
    assert main(["report", model, data, "-q", "-o", str(page), "--cv", "none"]) == 0
    assert "do not describe new samples" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("how", [["--test", "0.3"], ["--cv", "3x2"]])
def test_how_to_repeat_it_repeats_it(files, capsys, how):
    page, data = files / "first.html", str(files / "genes.csv")
    given = ["train", data, *NETWORK, "--seed", "5", "--report", str(page), *how, "--json"]
    assert main(given) == 0
    first = json.loads(capsys.readouterr().out)
    text = page.read_text(encoding="utf-8")
    command, code = (unescape(one) for one in re.findall(r"<pre>(.*?)</pre>", text, re.DOTALL))

    words = shlex.split(command)
    assert words[0] == "ratoon"
    assert main(words[1:]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again == first

    exec(compile(code, "page", "exec"), {})
    printed = capsys.readouterr().out
    if first["test_samples"]:
        assert float(printed) == first["test_score"]
    else:
        accuracy = first["cross_validation"]["accuracy"]
        assert f"accuracy {accuracy['value']:.3f} ({accuracy['low']:.3f} to" in printed


def test_held_out_and_cross_validation_exclude_each_other(files, capsys):
    model = str(files / "m.ratoon")
    called = ["report", model, str(files / "genes.csv"), "-o", str(files / "x.html")]
    assert main([*called, "--held-out", "--cv", "5"]) == 1
    assert "use one of them" in capsys.readouterr().err
    assert main([*called, "--cv", "own"]) == 1
    assert "ratoon train" in capsys.readouterr().err


def test_a_missing_model_is_an_error(files, capsys):
    assert main(["report", str(files / "no.ratoon"), str(files / "genes.csv")]) == 1
    assert "no.ratoon" in capsys.readouterr().err

"""`ratoon train`: from a table to a model, with options from anywhere, and what can go wrong."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import ratoon as package
from ratoon.storage import CheckpointDirectory
from ratoon.training import ProgressBar
from tests.cli.conftest import write_table

QUICK = ["--label", "outcome", "--epochs", "3", "--hidden", "20", "--epsilon", "3"]


def assert_same_network(one, other):
    assert one.widths == other.widths
    for a, b in zip(one.layers, other.layers, strict=True):
        assert a.topology == b.topology
        np.testing.assert_array_equal(a.weights, b.weights)


def test_a_model_is_written_and_told_of(ratoon, table, tmp_path):
    told = ratoon("train", table, *QUICK, "-o", tmp_path / "m.ratoon", "--test", "0.25")
    assert told.code == 0
    assert "96" in told.out, "connections of the first layer: 3 * (12 + 20)"
    assert "accuracy on 15 held-out samples" in told.out
    assert "trained for 3 epochs with Adam" in " ".join(told.out.split())
    assert "labels from column 'outcome'" in told.err
    assert f"The model is in {tmp_path / 'm.ratoon'}" in told.err
    model = package.load(tmp_path / "m.ratoon")
    assert model.classes_.tolist() == ["ill", "well"]
    assert model.feature_names_in_[0] == "gene0"
    assert model.n_iter_ == 3
    assert model.callbacks is None


def test_json_has_the_figures_and_nothing_else(ratoon, table):
    told = ratoon("train", table, *QUICK, "--test", "0.25", "--json")
    figures = json.loads(told.out)
    assert told.err == ""
    assert figures["model"] is None
    assert (figures["samples"], figures["test_samples"], figures["epochs"]) == (45, 15, 3)
    assert 0.0 <= figures["test_score"] <= 1.0
    assert figures["loss"] > 0
    assert figures["solver"] == "adam"
    assert figures["reason"].startswith("the closed form is for 20 to 3,000 samples")
    assert [layer["connections"] for layer in figures["layers"]] == [96, 40]
    assert figures["layers"][0] == {
        "inputs": 12, "outputs": 20, "connections": 96, "requested_density": 0.4,
        "density": 0.4,
    }  # fmt: skip


def test_without_an_output_it_says_that_nothing_is_kept(ratoon, table):
    assert "No model was written" in ratoon("train", table, *QUICK).err


def test_quiet_means_quiet(ratoon, table, tmp_path):
    told = ratoon("train", table, *QUICK, "-q", "-o", tmp_path / "m.ratoon")
    assert told.err == ""


def test_silence_and_a_progress_bar_lead_to_the_same_model(ratoon, tmp_path):
    # Few samples, many features, no wish: the case in which the network is solved for.
    np.savez(
        tmp_path / "few.npz",
        X=np.random.default_rng(0).normal(size=(24, 120)),
        y=np.repeat(["ill", "well"], 12),
    )
    for name, more in {"a": [], "b": ["-q"]}.items():
        assert ratoon("train", tmp_path / "few.npz", "-o", tmp_path / name, *more).code == 0
    a, b = (package.load(tmp_path / name) for name in "ab")
    assert (a.n_iter_, b.n_iter_) == (1, 1)
    assert_same_network(a.network_, b.network_)


def test_the_same_seed_makes_the_same_network(ratoon, table, tmp_path):
    for name, more in {"a": [], "b": ["--threads", "2"], "c": ["--seed", "1"]}.items():
        assert ratoon("train", table, *QUICK, "-o", tmp_path / name, *more).code == 0
    a, b, c = (package.load(tmp_path / name).network_ for name in "abc")
    assert_same_network(a, b)
    assert a.layers[0].topology != c.layers[0].topology


def test_every_option_reaches_the_estimator(ratoon, table, tmp_path):
    options = {
        "--preset": "fast",
        "--density": "0.3",
        "--evolution": "set",
        "--zeta": "0.2",
        "--epochs": "2",
        "--batch-size": "7",
        "--learning-rate": "0.02",
        "--momentum": "0.8",
        "--dropout": "0.1",
        "--class-weight": "balanced",
        "--seed": "5",
        "--threads": "1",
        "--hidden": "9,8",
    }
    flat = [part for pair in options.items() for part in pair]
    told = ratoon(
        "train", table, "--label", "outcome", *flat, "--early-stopping", "-o", tmp_path / "m"
    )
    assert told.code == 0, told.err
    found = package.load(tmp_path / "m").get_params()
    assert found["hidden_layer_sizes"] == (9, 8)
    expected = {
        "preset": "fast", "density": 0.3, "evolution": "set", "zeta": 0.2, "max_iter": 2,
        "batch_size": 7, "learning_rate_init": 0.02, "momentum": 0.8, "dropout": 0.1,
        "class_weight": "balanced", "random_state": 5, "n_jobs": 1, "early_stopping": True,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected


def test_no_hidden_layer_is_zero(ratoon, table):
    told = ratoon("train", table, "--label", "outcome", "--hidden", "0", "--epochs", "2", "--json")
    assert len(json.loads(told.out)["layers"]) == 1


def test_numbers_are_regressed_and_may_be_told_to_be(ratoon, tmp_path):
    x = np.random.default_rng(0).normal(size=(30, 4))
    np.savez(tmp_path / "fractions.npz", X=x, y=x[:, 0])
    np.savez(tmp_path / "counts.npz", X=x, y=np.arange(30) % 5)
    told = ratoon("train", tmp_path / "fractions.npz", "--epochs", "2", "--test", "0.2")
    assert "R squared on 6 held-out samples" in told.out
    for task, n_outputs in (("auto", 5), ("classify", 5), ("regress", 1)):
        told = ratoon("train", tmp_path / "counts.npz", "--epochs", "1", "--task", task, "--json")
        assert json.loads(told.out)["layers"][-1]["outputs"] == n_outputs


def test_a_dry_run_tells_memory_and_time_and_trains_nothing(ratoon, table, tmp_path):
    told = ratoon("train", table, *QUICK, "--dry-run", "-o", tmp_path / "m.ratoon")
    assert told.code == 0
    assert "12 -> 20 -> 2" in told.out
    assert "without the data" in told.out
    assert not (tmp_path / "m.ratoon").exists()
    told = ratoon("train", table, *QUICK, "--dry-run", "--json")
    assert json.loads(told.out)["n_connections"] == 136


# ----------------------------------------------------------------------------------------- TOML


def test_options_may_stand_in_a_file(ratoon, table, tmp_path):
    config = tmp_path / "experiment.toml"
    config.write_text(
        '[train]\nlabel = "outcome"\nhidden = [20, 10]\nepsilon = 3\nbatch-size = 5\n'
        "[plan]\nsamples = 3\n"
    )
    told = ratoon("train", table, "--config", config, "--epochs", "2", "--json")
    assert told.code == 0, told.err
    figures = json.loads(told.out)
    assert [layer["outputs"] for layer in figures["layers"]] == [20, 10, 2]
    assert figures["epochs"] == 2


def test_flags_win_over_the_file_and_the_table_may_be_left_out(ratoon, table, tmp_path):
    config = tmp_path / "experiment.toml"
    config.write_text('label = "outcome"\nepochs = 9\nhidden = 20\nearly_stopping = false\n')
    told = ratoon("train", table, "--config", config, "--epochs", "2", "--json")
    assert told.code == 0, told.err
    assert json.loads(told.out)["epochs"] == 2


def test_even_the_data_may_be_named_there(ratoon, table, tmp_path):
    config = tmp_path / "experiment.toml"
    config.write_text(f'[train]\ndata = "{table}"\nlabel = "outcome"\nepochs = 1\n')
    assert ratoon("train", "--config", config).code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[train]\nepoch = 3\n", "did you mean"),
        ("[train]\nzzz = 3\n", "not an option of"),
        ("train = 3\n", "must be a table"),
        ("[train\n", "not a TOML file"),
        ("[train]\nepochs = 'many'\n", "'--epochs'"),
        ("[train]\nepochs = 0\n", "'--epochs'"),
    ],
)
def test_a_wrong_file_is_a_wrong_call(ratoon, table, tmp_path, text, message):
    config = tmp_path / "experiment.toml"
    config.write_text(text)
    told = ratoon("train", table, "--config", config)
    assert told.code == 2
    assert message in told.err.replace("\n", " ")
    assert ratoon("train", table, "--config", tmp_path / "absent.toml").code == 2


# ------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.csv"], "absent.csv: no such file"),
        (["{bare}"], "no labels were found"),
        (["{table}", "--label", "nonsense"], "nonsense"),
        (["{table}", *QUICK, "--preset", "huge"], "`preset` must be one of"),
        (["{table}", *QUICK, "--hidden", "many"], "--hidden must be whole numbers"),
        (["{table}", *QUICK, "--hidden", "-5"], "--hidden must be whole numbers"),
        (["{table}", *QUICK, "--hidden", "20,,20"], "--hidden must be whole numbers"),
        (["{table}", *QUICK, "--task", "guess"], "--task must be one of"),
        (["{table}", *QUICK, "--missing", "guess"], "--missing must be one of"),
        (["{table}", *QUICK, "--evolution", "darwin"], "`evolution` must be"),
        (["{table}", *QUICK, "--density", "0.1"], "epsilon"),
        (["{table}", *QUICK, "--class-weight", "heavy"], "class_weight"),
        (["{table}", *QUICK, "--learning-rate", "-1"], "learning_rate_init"),
        (["{table}", *QUICK, "--resume"], "--checkpoint FOLDER"),
        (["{table}", *QUICK, "-o", "/no/such/folder/m.ratoon"], "/no/such/folder"),
        (["{numbers}", "--class-weight", "balanced"], "for classification"),
        (["{text}"], "text.csv"),
    ],
)
def test_what_is_wrong_is_said_in_one_message(ratoon, tmp_path, arguments, message):
    files = {
        "{table}": write_table(tmp_path / "genes.csv"),
        "{bare}": write_table(tmp_path / "bare.csv", outcome=False),
        "{numbers}": tmp_path / "numbers.npz",
        "{text}": tmp_path / "text.csv",
    }
    np.savez(files["{numbers}"], X=np.eye(4), y=np.linspace(0, 1, 4))
    files["{text}"].write_text("Dear Sir or Madam,\nthis is no table.\n")
    told = ratoon("train", *(files.get(argument, argument) for argument in arguments))
    assert told.code == 1
    assert message in told.err
    assert "ratoon: " in told.err
    assert "Traceback" not in told.err


def test_a_training_that_diverges_says_so(ratoon, table):
    told = ratoon("train", table, *QUICK, "--learning-rate", "1e200")
    assert told.code == 1
    assert "diverged" in told.err


def test_one_class_is_nothing_to_learn(ratoon, tmp_path):
    table = tmp_path / "one.csv"
    table.write_text("sample,a,b,class\n1,0.1,0.2,ill\n2,0.3,0.4,ill\n")
    told = ratoon("train", table)
    assert told.code == 1
    assert "one class only" in told.err


# ------------------------------------------------------------------------ interruption, resumption


class InterruptAt:
    """Stand in for Ctrl-C at the end of an epoch."""

    def __init__(self, monkeypatch, epoch):
        def interrupt(bar, training, record):
            if record.epoch == epoch:
                raise KeyboardInterrupt

        monkeypatch.setattr(ProgressBar, "on_epoch_end", interrupt)


def test_a_training_interrupted_and_resumed_ends_with_the_same_network(
    ratoon, table, tmp_path, monkeypatch
):
    command = ["train", table, *QUICK, "--epochs", "8"]
    assert ratoon(*command, "-o", tmp_path / "whole").code == 0
    resumable = [*command, "--checkpoint", tmp_path / "run", "--every", "3", "--resume"]
    with monkeypatch.context() as patch:
        InterruptAt(patch, epoch=4)
        told = ratoon(*resumable)
    assert told.code == 130
    assert "interrupted" in told.err
    assert f"--resume goes on from {tmp_path / 'run'}" in told.err
    assert CheckpointDirectory(tmp_path / "run").numbers()[-1] >= 3
    assert ratoon(*resumable, "-o", tmp_path / "parts").code == 0
    whole, parts = package.load(tmp_path / "whole"), package.load(tmp_path / "parts")
    assert parts.n_iter_ == 8
    assert_same_network(whole.network_, parts.network_)


def test_old_checkpoints_are_not_mixed_up_with_a_new_training(ratoon, table, tmp_path):
    command = ["train", table, *QUICK, "--checkpoint", tmp_path / "run"]
    assert ratoon(*command).code == 0
    told = ratoon(*command)
    assert told.code == 1
    assert "Go on from them with --resume" in told.err
    told = ratoon(*command, "--resume", "--seed", "1")
    assert told.code == 1
    assert "belongs to another training" in told.err


def test_ctrl_c_without_checkpoints_ends_with_130(ratoon, table, monkeypatch):
    InterruptAt(monkeypatch, epoch=1)
    told = ratoon("train", table, *QUICK)
    assert told.code == 130
    assert "Traceback" not in told.err


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals for other processes")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_training_and_leaves_a_checkpoint_behind(table, tmp_path, number, code):
    script = "import sys; from ratoon.cli import main; sys.exit(main(sys.argv[1:]))"
    run = tmp_path / "run"
    command = [
        sys.executable, "-c", script, "train", str(table), "--label", "outcome", "--hidden", "50",
        "--epochs", "1000000", "--checkpoint", str(run), "--every", "5", "-q",
    ]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        while process.poll() is None and not CheckpointDirectory(run).numbers():
            time.sleep(0.02)
        process.send_signal(number)
        errors = process.stderr.read().decode()
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    assert CheckpointDirectory(run).latest() is not None


# ------------------------------------------------------------------------------ prior knowledge


@pytest.fixture
def pathways(tmp_path):
    path = tmp_path / "sets.gmt"
    lines = ["one\tfirst genes\tGENE0\tgene1\tgene2\tgene3", "two\t-\tgene3\tgene4\tunheard"]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_groups_are_where_a_network_starts_and_may_leave(ratoon, table, pathways, tmp_path):
    how = ["--label", "outcome", "--epochs", "8", "--hidden", "6", "--evolution", "set"]
    told = ratoon("train", table, *how, "--groups", pathways, "-o", tmp_path / "m.ratoon")
    assert told.code == 0, told.err
    assert "2 groups over 12 features, 6 memberships" in told.err
    assert "1 members are no features" in told.err
    layer = package.load(tmp_path / "m.ratoon").network_.layers[0]
    assert layer.shape == (12, 6)
    assert layer.allowed is None
    assert layer.n_connections == 6


def test_groups_may_be_a_limit(ratoon, table, pathways, tmp_path):
    how = ["--label", "outcome", "--epochs", "8", "--groups", pathways, "--within"]
    assert ratoon("train", table, *how, "-o", tmp_path / "m.ratoon").code == 0
    layer = package.load(tmp_path / "m.ratoon").network_.layers[0]
    allowed = {(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (4, 1)}
    assert set(zip(*map(list, layer.topology.pairs()), strict=True)) < allowed
    told = ratoon("inspect", tmp_path / "m.ratoon")
    assert "Layer 1 keeps to a limit: 6 positions are allowed." in told.err


def test_groups_that_do_not_fit_are_refused_with_a_way_out(ratoon, table, pathways, tmp_path):
    how = ["--label", "outcome", "--epochs", "2"]
    assert "--groups FILE" in ratoon("train", table, *how, "--within").err
    told = ratoon("train", table, *how, "--groups", pathways, "--hidden", "1")
    assert "let it begin with 2 or more" in told.err
    told = ratoon("train", table, *how, "--groups", pathways, "--within", "--hidden", "9")
    assert "let it begin with 2: with --within" in told.err
    np.savez(tmp_path / "bare.npz", X=np.eye(4), y=[0, 1, 0, 1])
    told = ratoon("train", tmp_path / "bare.npz", "--groups", pathways)
    assert "have no names" in told.err
    other = tmp_path / "other.tsv"
    other.write_text("ENSG01\tset1\n")
    told = ratoon("train", table, *how, "--groups", other)
    assert "Are they named alike?" in told.err

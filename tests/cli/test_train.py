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
from ratoon.cli import main
from ratoon.cli.estimate import planned_cv
from ratoon.datasets import read
from ratoon.estimators.state import MissingStrategyWarning, UnsavedParameterWarning
from ratoon.evolution import RigL
from ratoon.storage import CheckpointDirectory
from ratoon.training import ProgressBar
from tests.cli.conftest import write_table

QUICK = ["--label", "outcome", "--epochs", "3", "--hidden", "20", "--epsilon", "3"]


def assert_same_network(one, other):
    assert one.widths == other.widths
    for a, b in zip(one.layers, other.layers, strict=True):
        assert a.topology == b.topology
        np.testing.assert_array_equal(a.weights, b.weights)


def test_a_model_is_written_and_reported(ratoon, table, tmp_path):
    outcome = ratoon("train", table, *QUICK, "-o", tmp_path / "m.ratoon", "--test", "0.25")
    assert outcome.code == 0
    assert "96" in outcome.out, "connections of the first layer: 3 * (12 + 20)"
    assert "scores on 15 held-out samples" in outcome.out
    assert "trained for 3 epochs with Adam" in " ".join(outcome.out.split())
    assert "labels from column 'outcome'" in outcome.err
    assert f"The model is in {tmp_path / 'm.ratoon'}" in outcome.err
    model = package.load(tmp_path / "m.ratoon")
    assert model.classes_.tolist() == ["ill", "well"]
    assert model.feature_names_in_[0] == "gene0"
    assert model.n_iter_ == 3
    assert model.callbacks is None


def test_json_has_the_figures_and_nothing_else(ratoon, table):
    outcome = ratoon("train", table, *QUICK, "--test", "0.25", "--json")
    figures = json.loads(outcome.out)
    assert outcome.err == ""
    assert figures["model"] is None
    assert (figures["samples"], figures["test_samples"], figures["epochs"]) == (45, 15, 3)
    assert 0.0 <= figures["test_score"] <= 1.0
    assert figures["loss"] > 0
    assert figures["solver"] == "adam"
    assert "were set" in figures["reason"]
    assert [layer["connections"] for layer in figures["layers"]] == [96, 40]
    assert figures["layers"][0] == {
        "inputs": 12, "outputs": 20, "connections": 96, "requested_density": 0.4,
        "density": 0.4,
    }  # fmt: skip


def test_a_model_that_is_not_saved_is_reported(ratoon, table):
    assert "The model was not saved" in ratoon("train", table, *QUICK).err


def test_quiet_prints_no_notes_and_no_progress(ratoon, table, tmp_path):
    outcome = ratoon("train", table, *QUICK, "-q", "-o", tmp_path / "m.ratoon")
    assert outcome.err == ""


def test_progress_in_a_log_is_lines_without_carriage_returns(ratoon, table):
    outcome = ratoon("train", table, *QUICK, "--epochs", "1")
    assert "\r" not in outcome.err
    assert "training: 1 of 1 epoch, loss=" in outcome.err
    assert "trained for 1 epoch with" in " ".join(outcome.out.split())


def test_a_closed_form_fit_is_reported_as_such(ratoon, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "wide.npz", X=rng.normal(size=(24, 120)), y=np.repeat(["a", "b"], 12))
    outcome = ratoon("train", tmp_path / "wide.npz", "-o", tmp_path / "m")
    assert "solved in closed form, because" in " ".join(outcome.out.split())
    outcome = ratoon("inspect", tmp_path / "m")
    assert "SparseMLPClassifier, solved in closed form in" in outcome.err
    assert "history" not in outcome.out


def test_the_estimator_is_fitted_to_the_data_set_itself(ratoon, table, monkeypatch):
    given = []
    fit = package.SparseMLPClassifier.fit

    def spy(self, X, *args, **kwargs):
        given.append(X)
        return fit(self, X, *args, **kwargs)

    monkeypatch.setattr(package.SparseMLPClassifier, "fit", spy)
    assert ratoon("train", table, *QUICK, "--cv", "none").code == 0
    [data] = given
    assert data.feature_names == tuple(f"gene{k}" for k in range(12))
    assert data.class_names == ("ill", "well")


def test_test_samples_are_scored_and_not_trained_on(ratoon, table, monkeypatch):
    trained = []
    called = package.SparseMLPClassifier.fit

    def spy(self, X, *args, **kwargs):
        trained.append(set(X.sample_names))
        return called(self, X, *args, **kwargs)

    monkeypatch.setattr(package.SparseMLPClassifier, "fit", spy)
    found = json.loads(ratoon("train", table, *QUICK, "--test", "0.25", "--json").out)
    [names] = trained
    assert (len(names), len(found["test_sample_names"])) == (45, 15)
    assert not names & set(found["test_sample_names"])
    assert found["test_score"] == found["test_scores"]["accuracy"]["value"]
    assert found["test_scores"]["n_samples"] == 15
    assert found["cross_validation"] is None


def test_without_a_test_set_the_score_is_estimated_by_cross_validation(ratoon, table):
    outcome = ratoon("train", table, *QUICK)
    assert "by 5-fold cross-validation, repeated 3 times" in " ".join(outcome.out.split())
    assert "count every sample once" in outcome.err
    found = json.loads(ratoon("train", table, *QUICK, "--json").out)
    estimate = found["cross_validation"]
    assert (estimate["n_samples"], estimate["n_repeats"]) == (60, 3)
    assert 0.0 < estimate["accuracy"]["low"] < estimate["accuracy"]["high"] < 1.0
    again = json.loads(ratoon("train", table, *QUICK, "--json").out)["cross_validation"]
    assert again == estimate
    assert (
        json.loads(ratoon("train", table, *QUICK, "--json", "--cv", "none").out)["cross_validation"]
        is None
    )
    both = json.loads(ratoon("train", table, *QUICK, "--json", "--cv", "3", "--test", "0.2").out)
    assert both["cross_validation"]["n_samples"] == 48
    assert both["test_scores"]["n_samples"] == 12


def test_long_trainings_are_not_repeated_unless_asked(table):
    samples = read(table, label="outcome")
    model = package.SparseMLPClassifier((2000,), density=1.0, max_iter=9999)
    planned = planned_cv("auto", model, samples, has_test=False)
    assert planned.cv == "none"
    assert "--cv 5x1" in planned.reason
    assert planned_cv("5x3", model, samples, has_test=False).cv == "5x3"
    assert planned_cv("auto", package.SparseMLPClassifier(), samples, has_test=False).cv == "5x3"


@pytest.mark.parametrize(
    ("cv", "text"), [("0x3", "--cv must be the number of folds"), ("own", "no out-of-fold outputs")]
)
def test_an_impossible_cross_validation_is_refused(ratoon, table, cv, text):
    outcome = ratoon("train", table, *QUICK, "--cv", cv)
    assert (outcome.code, text in outcome.err) == (1, True)


def test_the_own_folds_of_the_closed_form_are_said_to_be_too_good(ratoon, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "wide.npz", X=rng.normal(size=(24, 120)), y=np.repeat(["a", "b"], 12))
    outcome = ratoon("train", tmp_path / "wide.npz", "--cv", "own", "-q")
    assert "slightly too good" in " ".join(outcome.out.split())


def test_held_out_samples_that_equal_training_samples_are_counted(ratoon, table):
    lines = table.read_text().splitlines()
    table.write_text("\n".join(lines + [f"copy-{line}" for line in lines[1:]]) + "\n")
    outcome = ratoon("train", table, *QUICK, "--test", "0.5")
    assert "also occur among the training samples" in " ".join(outcome.err.split())


def test_quiet_and_progress_give_the_same_closed_form_model(ratoon, tmp_path):
    # Few samples, many features and no options: the network is solved in closed form.
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
    outcome = ratoon(
        "train", table, "--label", "outcome", *flat, "--early-stopping", "-o", tmp_path / "m"
    )
    assert outcome.code == 0, outcome.err
    found = package.load(tmp_path / "m").get_params()
    assert found["hidden_layer_sizes"] == (9, 8)
    expected = {
        "preset": "fast", "density": 0.3, "evolution": "set", "zeta": 0.2, "max_iter": 2,
        "batch_size": 7, "learning_rate_init": 0.02, "momentum": 0.8, "dropout": 0.1,
        "class_weight": "balanced", "random_state": 5, "n_jobs": 1, "early_stopping": True,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected


def test_no_hidden_layer_is_zero(ratoon, table):
    outcome = ratoon(
        "train", table, "--label", "outcome", "--hidden", "0", "--epochs", "2", "--json"
    )
    assert len(json.loads(outcome.out)["layers"]) == 1


def test_numeric_labels_are_regressed_if_fractions_or_by_option(ratoon, tmp_path):
    x = np.random.default_rng(0).normal(size=(30, 4))
    np.savez(tmp_path / "fractions.npz", X=x, y=x[:, 0])
    np.savez(tmp_path / "counts.npz", X=x, y=np.arange(30) % 5)
    outcome = ratoon("train", tmp_path / "fractions.npz", "--epochs", "2", "--test", "0.2")
    assert "scores on 6 held-out samples" in outcome.out
    assert "R squared" in outcome.out
    for task, n_outputs in (("auto", 5), ("classify", 5), ("regress", 1)):
        outcome = ratoon(
            "train", tmp_path / "counts.npz", "--epochs", "1", "--task", task, "--json"
        )
        assert json.loads(outcome.out)["layers"][-1]["outputs"] == n_outputs


def test_a_dry_run_shows_memory_and_time_and_does_not_train(ratoon, table, tmp_path):
    outcome = ratoon("train", table, *QUICK, "--dry-run", "-o", tmp_path / "m.ratoon")
    assert outcome.code == 0
    assert "12 -> 20 -> 2" in outcome.out
    assert "without the data" in outcome.out
    assert not (tmp_path / "m.ratoon").exists()
    outcome = ratoon("train", table, *QUICK, "--dry-run", "--json")
    assert json.loads(outcome.out)["n_connections"] == 136


# ----------------------------------------------------------------------------------------- TOML


def test_options_can_be_read_from_a_file(ratoon, table, tmp_path):
    config = tmp_path / "experiment.toml"
    config.write_text(
        '[train]\nlabel = "outcome"\nhidden = [20, 10]\nepsilon = 3\nbatch-size = 5\n'
        "[plan]\nsamples = 3\n"
    )
    outcome = ratoon("train", table, "--config", config, "--epochs", "2", "--json")
    assert outcome.code == 0, outcome.err
    figures = json.loads(outcome.out)
    assert [layer["outputs"] for layer in figures["layers"]] == [20, 10, 2]
    assert figures["epochs"] == 2


def test_flags_override_the_file_and_the_table_name_is_optional(ratoon, table, tmp_path):
    config = tmp_path / "experiment.toml"
    config.write_text('label = "outcome"\nepochs = 9\nhidden = 20\nearly_stopping = false\n')
    outcome = ratoon("train", table, "--config", config, "--epochs", "2", "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["epochs"] == 2


def test_a_configuration_nested_too_deeply_is_refused(ratoon, table, tmp_path):
    config = tmp_path / "experiment.toml"
    config.write_text("hidden = " + "[" * 100_000)
    done = ratoon("train", table, "--config", config)
    assert done.code == 2
    assert "nested more than 16 deep" in done.err


def test_a_configuration_can_name_the_data(ratoon, table, tmp_path):
    config = tmp_path / "experiment.toml"
    config.write_text(f'[train]\ndata = "{table}"\nlabel = "outcome"\nepochs = 1\n')
    assert ratoon("train", "--config", config).code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[train]\nepoch = 3\n", "Did you mean"),
        ("[train]\nzzz = 3\n", "not an option of"),
        ("train = 3\n", "must be a table"),
        ("[train\n", "not a TOML file"),
        ("[train]\nepochs = 'many'\n", "'--epochs'"),
        ("[train]\nepochs = 0\n", "'--epochs'"),
    ],
)
def test_an_invalid_configuration_is_a_usage_error(ratoon, table, tmp_path, text, message):
    config = tmp_path / "experiment.toml"
    config.write_text(text)
    outcome = ratoon("train", table, "--config", config)
    assert outcome.code == 2
    assert message in outcome.err.replace("\n", " ")
    assert ratoon("train", table, "--config", tmp_path / "absent.toml").code == 2


# ------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.csv"], "absent.csv: no such file"),
        (["{bare}"], "no labels found.\n"),
        (["{table}", "--label", "nonsense"], "nonsense"),
        (["{table}", *QUICK, "--preset", "huge"], "--preset must be one of 'paper'"),
        (["{table}", *QUICK, "--hidden", "many"], "--hidden must be whole numbers"),
        (["{table}", *QUICK, "--hidden", "-5"], "--hidden must be whole numbers"),
        (["{table}", *QUICK, "--hidden", "20,,20"], "--hidden must be whole numbers"),
        (["{table}", *QUICK, "--task", "guess"], "--task must be one of"),
        (["{table}", *QUICK, "--missing", "guess"], "--missing must be one of"),
        (["{table}", *QUICK, "--evolution", "darwin"], "--evolution must be"),
        (["{table}", *QUICK, "--evolution", "no.such:Rule"], "No module named 'no'"),
        (["{table}", *QUICK, "--evolution", "rigl(eta=1)"], "no parameter `eta`"),
        (["{table}", *QUICK, "--density", "0.1"], "epsilon"),
        (["{table}", *QUICK, "--class-weight", "heavy"], "--class-weight must be"),
        (["{table}", *QUICK, "--learning-rate", "-1"], "--learning-rate must be"),
        (["{table}", *QUICK, "--resume"], "--checkpoint FOLDER"),
        (["{table}", *QUICK, "-o", "/no/such/folder/m.ratoon"], "/no/such/folder"),
        (["{numbers}", "--class-weight", "balanced"], "for classification"),
        (["{text}"], "text.csv"),
    ],
)
def test_wrong_input_ends_with_one_message(ratoon, tmp_path, arguments, message):
    files = {
        "{table}": write_table(tmp_path / "genes.csv"),
        "{bare}": write_table(tmp_path / "bare.csv", outcome=False),
        "{numbers}": tmp_path / "numbers.npz",
        "{text}": tmp_path / "text.csv",
    }
    np.savez(files["{numbers}"], X=np.eye(4), y=np.linspace(0, 1, 4))
    files["{text}"].write_text("Dear Sir or Madam,\nthis is no table.\n")
    outcome = ratoon("train", *(files.get(argument, argument) for argument in arguments))
    assert outcome.code == 1
    assert message in outcome.err
    assert "ratoon: " in outcome.err
    assert "Traceback" not in outcome.err


def test_divergence_is_an_error(ratoon, table):
    outcome = ratoon("train", table, *QUICK, "--learning-rate", "1e200")
    assert outcome.code == 1
    assert "diverged" in outcome.err


def test_a_single_class_is_refused(ratoon, tmp_path):
    table = tmp_path / "one.csv"
    table.write_text("sample,a,b,class\n1,0.1,0.2,ill\n2,0.3,0.4,ill\n")
    outcome = ratoon("train", table)
    assert outcome.code == 1
    assert "one class only" in outcome.err


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
        outcome = ratoon(*resumable)
    assert outcome.code == 130
    assert "interrupted" in outcome.err
    assert f"--resume continues from {tmp_path / 'run'}" in outcome.err
    assert CheckpointDirectory(tmp_path / "run").numbers()[-1] >= 3
    assert ratoon(*resumable, "-o", tmp_path / "parts").code == 0
    whole, parts = package.load(tmp_path / "whole"), package.load(tmp_path / "parts")
    assert parts.n_iter_ == 8
    assert_same_network(whole.network_, parts.network_)


def test_old_checkpoints_are_not_mixed_up_with_a_new_training(ratoon, table, tmp_path):
    command = ["train", table, *QUICK, "--checkpoint", tmp_path / "run"]
    assert ratoon(*command).code == 0
    outcome = ratoon(*command)
    assert outcome.code == 1
    assert "Continue from them with --resume" in outcome.err
    outcome = ratoon(*command, "--resume", "--seed", "1")
    assert outcome.code == 1
    assert "belongs to another training" in outcome.err


def test_ctrl_c_without_checkpoints_ends_with_130(ratoon, table, monkeypatch):
    InterruptAt(monkeypatch, epoch=1)
    outcome = ratoon("train", table, *QUICK)
    assert outcome.code == 130
    assert "Traceback" not in outcome.err


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


def test_groups_are_initial_connections_that_can_be_replaced(ratoon, table, pathways, tmp_path):
    how = ["--label", "outcome", "--epochs", "8", "--hidden", "6", "--evolution", "set"]
    outcome = ratoon("train", table, *how, "--groups", pathways, "-o", tmp_path / "m.ratoon")
    assert outcome.code == 0, outcome.err
    assert "2 groups over 12 features, 6 memberships" in outcome.err
    assert "1 members are not features" in outcome.err
    layer = package.load(tmp_path / "m.ratoon").network_.layers[0]
    assert layer.shape == (12, 6)
    assert layer.allowed is None
    assert layer.n_connections == 6


def test_groups_can_be_a_limit(ratoon, table, pathways, tmp_path):
    how = ["--label", "outcome", "--epochs", "8", "--groups", pathways, "--within"]
    assert ratoon("train", table, *how, "-o", tmp_path / "m.ratoon").code == 0
    layer = package.load(tmp_path / "m.ratoon").network_.layers[0]
    allowed = {(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (4, 1)}
    assert set(zip(*map(list, layer.topology.pairs()), strict=True)) < allowed
    outcome = ratoon("inspect", tmp_path / "m.ratoon")
    assert "Layer 1: connections are limited to 6 positions." in outcome.err


def test_groups_that_do_not_fit_are_refused_with_advice(ratoon, table, pathways, tmp_path):
    how = ["--label", "outcome", "--epochs", "2"]
    assert "--groups FILE" in ratoon("train", table, *how, "--within").err
    outcome = ratoon("train", table, *how, "--groups", pathways, "--hidden", "1")
    assert "start it with 2 or more" in outcome.err
    outcome = ratoon("train", table, *how, "--groups", pathways, "--within", "--hidden", "9")
    assert "start it with 2: with --within" in outcome.err
    np.savez(tmp_path / "bare.npz", X=np.eye(4), y=[0, 1, 0, 1])
    outcome = ratoon("train", tmp_path / "bare.npz", "--groups", pathways)
    assert "have no names" in outcome.err
    other = tmp_path / "other.tsv"
    other.write_text("ENSG01\tset1\n")
    outcome = ratoon("train", table, *how, "--groups", other)
    assert "Do both use the same names?" in outcome.err


RULES = """
from ratoon.evolution import SET

class Mine(SET):
    pass
"""


def test_a_class_in_the_current_folder_is_a_strategy(ratoon, table, tmp_path, monkeypatch):
    (tmp_path / "rules_to_train.py").write_text(RULES)
    monkeypatch.chdir(tmp_path)
    how = ["--label", "outcome", "--epochs", "8", "--hidden", "6", "--density", "0.3"]
    given = "rules_to_train:Mine(zeta=0.4)"
    with pytest.warns(UnsavedParameterWarning, match="is neither registered nor installed"):
        done = ratoon("train", table, *how, "--evolution", given, "-o", "m.ratoon")
    assert done.code == 0, done.err
    with pytest.warns(MissingStrategyWarning, match="rules_to_train:Mine"):
        model = package.load(tmp_path / "m.ratoon")
    assert model.evolution.stored["fields"]["zeta"] == 0.4
    with pytest.warns(MissingStrategyWarning, match="Prediction works without it"):
        done = ratoon("predict", "m.ratoon", table)
    assert done.code == 0, done.err


def test_a_named_strategy_takes_parameters(ratoon, table, tmp_path):
    how = ["--label", "outcome", "--epochs", "8", "--hidden", "6", "--density", "0.3"]
    path = tmp_path / "m.ratoon"
    done = ratoon("train", table, *how, "--evolution", "rigl(every=3)", "-o", path)
    assert done.code == 0, done.err
    assert package.load(path).evolution == RigL(every=3)


def test_images_are_augmented_in_training(tmp_path, capsys):
    rng = np.random.default_rng(0)
    path, model = tmp_path / "images.npz", tmp_path / "m.ratoon"
    np.savez(path, X=rng.normal(size=(40, 48)), y=rng.integers(0, 2, 40))
    given = ["train", str(path), "--epochs", "2", "--hidden", "8", "-o", str(model), "--augment"]
    assert main([*given, "shift=1,flip,shape=8x3x2"]) == 0
    found = package.load(model).settings_.augment
    assert (found.shape, found.shift, found.flip) == ((8, 3, 2), 1, True)
    assert main([*given, "shift"]) != 0
    assert "--augment" in capsys.readouterr().err

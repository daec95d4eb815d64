"""`ratoon predict` and `ratoon evaluate`: the right features, the right way round."""

import csv
import io
import json

import numpy as np
import pytest

import ratoon as package
from tests.cli.conftest import write_table


def rows_of(text):
    return list(csv.reader(io.StringIO(text)))


@pytest.fixture
def new(tmp_path):
    return write_table(tmp_path / "new.csv", seed=1, n=30, outcome=False)


def test_predictions_are_one_line_each(ratoon, model, new):
    outcome = ratoon("predict", model, new)
    assert outcome.code == 0
    header, *rows = rows_of(outcome.out)
    assert header == ["sample", "prediction"]
    assert [row[0] for row in rows] == [f"S{k}" for k in range(30)]
    x = np.random.default_rng(1).normal(size=(30, 12))
    right = np.where(x[:, 0] > 0, "ill", "well") == [row[1] for row in rows]
    assert right.mean() > 0.8


def test_probabilities_have_a_column_per_class(ratoon, model, new):
    header, *rows = rows_of(ratoon("predict", model, new, "--probabilities").out)
    assert header == ["sample", "prediction", "p(ill)", "p(well)"]
    for _, prediction, ill, well in rows:
        assert float(ill) + float(well) == pytest.approx(1)
        assert prediction == ("ill" if float(ill) > float(well) else "well")


def test_json_has_one_object_a_sample(ratoon, model, new):
    outcome = ratoon("predict", model, new, "-p", "--json")
    objects = json.loads(outcome.out)
    assert outcome.err == ""
    assert set(objects[0]) == {"sample", "prediction", "p(ill)", "p(well)"}
    assert isinstance(objects[0]["p(ill)"], float)


def test_a_file_gets_the_same_text_as_stdout(ratoon, model, new, tmp_path):
    screen = ratoon("predict", model, new).out
    outcome = ratoon("predict", model, new, "-o", tmp_path / "labels.csv")
    assert outcome.out == ""
    assert "30 predictions written to" in outcome.err
    assert (tmp_path / "labels.csv").read_text() == screen


def test_columns_are_found_by_name_in_any_order(ratoon, model, new, tmp_path):
    names = [f"gene{k}" for k in range(12)]
    shuffled = [*names[5:], "stranger", *names[:5]]
    other = write_table(tmp_path / "other.csv", seed=1, n=30, columns=shuffled, outcome=False)
    assert ratoon("predict", model, other).out == ratoon("predict", model, new).out


def test_reordered_and_additional_features_are_reported(ratoon, model, new, tmp_path):
    assert "features found" not in ratoon("predict", model, new).err
    names = [f"gene{k}" for k in range(12)]
    other = write_table(tmp_path / "other.csv", columns=[*names[::-1], "stranger"], outcome=False)
    outcome = ratoon("predict", model, other)
    assert "12 of 12 features found (100.0%); 1 extra left out (stranger)" in outcome.err
    assert "reordered" in outcome.err
    assert "found" not in ratoon("predict", model, other, "-q").err


def test_too_many_missing_features_are_refused_by_name(ratoon, model, tmp_path):
    few = write_table(
        tmp_path / "few.csv", columns=[f"gene{k}" for k in range(2, 12)], outcome=False
    )
    outcome = ratoon("predict", model, few)
    assert outcome.code == 1
    assert "10 of the 12 required features are present (83.3%)" in outcome.err
    assert "gene0, gene1" in outcome.err
    assert "--min-coverage" in outcome.err
    outcome = ratoon("predict", model, few, "--min-coverage", "0.8")
    assert outcome.code == 0
    assert "2 missing (gene0, gene1); missing features get their mean" in outcome.err


def test_an_id_map_translates_the_names_of_the_file(ratoon, model, new, tmp_path):
    header, *lines = new.read_text().splitlines()
    probes = tmp_path / "probes.csv"
    probes.write_text("\n".join([header.replace("gene", "probe"), *lines]) + "\n")
    assert ratoon("predict", model, probes).code == 1
    pairs = tmp_path / "map.csv"
    pairs.write_text("".join(f"probe{k},gene{k}\n" for k in range(12)))
    outcome = ratoon("predict", model, probes, "--id-map", pairs)
    assert outcome.out == ratoon("predict", model, new).out
    assert "12 renamed by the ID map" in outcome.err
    pairs.write_text("probe0\n")
    outcome = ratoon("predict", model, probes, "--id-map", pairs)
    assert (outcome.code, "map.csv, line 1" in outcome.err) == (1, True)


def test_an_id_map_needs_names(ratoon, model, tmp_path):
    np.savez(tmp_path / "plain.npz", X=np.zeros((2, 12)))
    (tmp_path / "map.csv").write_text("a,b\n")
    outcome = ratoon("predict", model, tmp_path / "plain.npz", "--id-map", tmp_path / "map.csv")
    assert (outcome.code, "needs feature names" in outcome.err) == (1, True)


def test_without_names_the_number_of_features_must_agree(ratoon, model, tmp_path):
    np.savez(tmp_path / "right.npz", X=np.zeros((2, 12)))
    np.savez(tmp_path / "wrong.npz", X=np.zeros((2, 5)))
    assert ratoon("predict", model, tmp_path / "right.npz").code == 0
    outcome = ratoon("predict", model, tmp_path / "wrong.npz")
    assert outcome.code == 1
    assert "5 features; the model was trained on 12" in outcome.err


def test_regressors_predict_numbers(ratoon, regressor):
    outcome = ratoon("predict", regressor, regressor.parent / "numbers.npz", "-q")
    _, *rows = rows_of(outcome.out)
    truth = np.load(regressor.parent / "numbers.npz")["y"]
    predicted = [float(row[1]) for row in rows]
    assert np.corrcoef(truth, predicted)[0, 1] > 0.9
    assert ratoon("predict", regressor, regressor.parent / "numbers.npz", "-p").code == 1


def test_several_targets_have_a_column_each(ratoon, tmp_path):
    x = np.random.default_rng(0).normal(size=(20, 3))
    network = package.SparseMLPRegressor((10,), max_iter=2, random_state=0).fit(x, x[:, :2])
    network.save(tmp_path / "two.ratoon")
    np.savez(tmp_path / "x.npz", X=x)
    header, *_ = rows_of(ratoon("predict", tmp_path / "two.ratoon", tmp_path / "x.npz").out)
    assert header == ["sample", "prediction_1", "prediction_2"]


# -------------------------------------------------------------------------------------- evaluate


def test_a_score_comes_with_the_matrix(ratoon, model, tmp_path):
    held = write_table(tmp_path / "held.csv", seed=2, n=40)
    outcome = ratoon("evaluate", model, held, "--label", "outcome", "--json")
    result = json.loads(outcome.out)
    matrix = np.array(result["confusion_rows_predicted"])
    assert result["samples"] == matrix.sum() == 40
    assert result["score"] == np.trace(matrix) / 40 > 0.8
    assert result["classes"] == ["ill", "well"]
    truth = np.where(np.random.default_rng(2).normal(size=(40, 12))[:, 0] > 0, "ill", "well")
    assert matrix.sum(axis=0).tolist() == [(truth == c).sum() for c in ("ill", "well")]


def test_the_matrix_is_shown_and_drawn(ratoon, model, tmp_path):
    held = write_table(tmp_path / "held.csv", seed=2)
    picture = tmp_path / "matrix.png"
    outcome = ratoon("evaluate", model, held, "--label", "outcome", "--picture", picture)
    assert outcome.code == 0
    assert "rows predicted, columns true" in outcome.out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_model_with_numeric_classes_is_scored_on_text_labels(ratoon, tmp_path):
    x = np.random.default_rng(0).normal(size=(50, 3))
    y = (x[:, 0] > 0).astype(int)
    clf = package.SparseMLPClassifier((20,), epsilon=5, max_iter=30, random_state=0).fit(x, y)
    clf.save(tmp_path / "m.ratoon")
    np.savez(tmp_path / "data.npz", X=x, y=y)
    outcome = ratoon("evaluate", tmp_path / "m.ratoon", tmp_path / "data.npz", "--json")
    assert json.loads(outcome.out)["training_score"] == clf.score(x, y)


def test_regressors_are_scored_by_r_squared(ratoon, regressor):
    data = regressor.parent / "numbers.npz"
    outcome = ratoon("evaluate", regressor, data)
    assert "R squared" in outcome.out
    found = json.loads(ratoon("evaluate", regressor, data, "--json").out)
    assert found["training_score"] > 0.8
    assert found["score"] is None
    outcome = ratoon("evaluate", regressor, data, "--picture", "x.png")
    assert (
        outcome.code,
        "needs a classifier; this model predicts numbers" in " ".join(outcome.err.split()),
    ) == (1, True)


def test_training_samples_are_known_and_do_not_count(ratoon, tmp_path):
    everything = write_table(tmp_path / "all.csv", n=60, seed=5)
    lines = everything.read_text().splitlines()
    part = tmp_path / "part.csv"
    part.write_text("\n".join(lines[:39]) + "\n")
    model = tmp_path / "m.ratoon"
    train = ["train", part, "--label", "outcome", "-q", "--cv", "none", "-o", model]
    assert ratoon(*train).code == 0
    evaluate = ["evaluate", model, everything, "--label", "outcome"]
    found = json.loads(ratoon(*evaluate, "--json").out)
    assert (found["training_samples"], found["new_samples"]) == (38, 22)
    assert found["scores"]["n_samples"] == 22
    assert sum(map(sum, found["confusion_rows_predicted"])) == 22
    clf = package.load(model)
    data = package.datasets.read(everything, label="outcome")
    new = data.take(range(38, 60))
    assert found["score"] == clf.score(new, new.labels)
    seen = data.take(range(38))
    assert found["training_score"] == clf.score(seen, seen.labels)
    text = " ".join(ratoon(*evaluate).out.split())
    assert "38 of 60 samples were used for training; accuracy on the 22 others is" in text
    assert "(does not describe new samples)" in text
    text = " ".join(ratoon("evaluate", model, part, "--label", "outcome").out.split())
    assert "All 38 samples were used for training" in text

    assert ratoon(*train, "--no-fingerprints").code == 0
    outcome = ratoon(*evaluate)
    assert "It is not known whether" in outcome.err
    assert json.loads(ratoon(*evaluate, "--json").out)["training_samples"] is None


def test_samples_without_labels_cannot_be_scored(ratoon, model, new):
    outcome = ratoon("evaluate", model, new)
    assert outcome.code == 1
    assert "there is no column 'outcome'" in outcome.err  # the label of the training file


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_file_that_is_not_a_model_is_refused(ratoon, table, tmp_path, command):
    outcome = ratoon(command, table, table)
    assert outcome.code == 1
    assert str(table) in outcome.err
    assert "Expected a model file" in outcome.err
    outcome = ratoon(command, tmp_path / "absent.ratoon", table)
    assert (outcome.code, "no such file" in outcome.err) == (1, True)


def test_a_damaged_model_is_refused(ratoon, model, table, tmp_path):
    broken = tmp_path / "broken.ratoon"
    broken.write_bytes(model.read_bytes()[:-10])
    outcome = ratoon("predict", broken, table)
    assert outcome.code == 1
    assert "Traceback" not in outcome.err

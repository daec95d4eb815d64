"""A parameter is honoured or refused, never ignored: every parameter, in every way of fitting."""

import contextlib
import io
import json
import re
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import typer

from ratoon import SparseMLPClassifier, SparseMLPRegressor, load
from ratoon.cli import main
from ratoon.cli.app import app
from ratoon.errors import InvalidParameterError
from ratoon.estimators.parameters import PARAMETERS, changed_parameters
from ratoon.evolution import SET
from ratoon.optimizers import SGD, Adam
from ratoon.training import Callback

KINDS = {"classifier": SparseMLPClassifier, "regressor": SparseMLPRegressor}


class CountEpochs(Callback):
    """Counts the epochs it is called after."""

    def __init__(self):
        self.n_epochs = 0

    def on_epoch_end(self, training, record):
        self.n_epochs += 1


def samples(way):
    n, n_features = (20, 100) if way in CLOSED_FORM else (80, 40)
    rng = np.random.default_rng(0)
    X = 0.3 + 0.7 * rng.normal(size=(n, n_features))
    return X, X[:, 0] + X[:, 1] - 0.6 + 0.5 * rng.normal(size=n)


CLOSED_FORM = ("closed form", "auto on wide data")
QUICK = {"hidden_layer_sizes": (6,), "epsilon": 2.0, "batch_size": 16, "max_iter": 3}
STOPPING = {"early_stopping": True, "learning_rate_init": 0.05, "max_iter": 30}
WAYS = {
    "closed form": {"solver": "ridge"},
    "auto on wide data": {},
    "averaged": {},
    "SGD": {**QUICK, "solver": "sgd"},
    "Adam": {**QUICK, "solver": "adam"},
    "default preset": {"max_iter": 3},
    "paper preset": {"preset": "paper", "max_iter": 3},
    "fast preset": {"preset": "fast", "max_iter": 3},
    "large preset": {"preset": "large", "max_iter": 3},
    "early stopping": {**QUICK, **STOPPING},
    "validation data": {**QUICK, **STOPPING},
    "plateau": {**QUICK, "n_iter_no_change": 3, "tol": 0.02, "max_iter": 30},
    "objects": {**QUICK, "solver": SGD(momentum=0.5), "evolution": SET(zeta=0.2)},
    "Adam object": {**QUICK, "solver": Adam()},
    "static": {**QUICK, "evolution": "static"},
    "RigL": {**QUICK, "evolution": "rigl", "max_iter": 40},
    "leaky ReLU": {**QUICK, "activation": "leaky_relu"},
    "no hidden layer": {**QUICK, "hidden_layer_sizes": (), "epsilon": 0.6, "output_init": "he"},
    "given topology": {**QUICK, "epsilon": None, "topology": "whole"},
    "several labels": QUICK,
}


def diagonals(*widths):
    return [scipy.sparse.eye_array(*shape, format="csr") for shape in pairwise(widths)]


# Candidates: the first that is not already the value of the fit without it is taken.
VALUES = {
    "hidden_layer_sizes": [(7,)],
    "epsilon": [1.0],
    "density": [0.2],
    "zeta": [0.9],
    "evolution": ["static", "set"],
    "activation": ["tanh"],
    "slope": [0.4],
    "dropout": [0.5],
    "loss": ["squared_error"],
    "solver": ["sgd", "adam"],
    "learning_rate_init": [0.007],
    "learning_rate": ["step"],
    "learning_rate_min": [0.0009],
    "warm_up": [0.5],
    "momentum": [0.3],
    "nesterovs_momentum": [True],
    "weight_decay": [0.1],
    "decay": ["coupled", "released"],
    "beta_1": [0.5],
    "beta_2": [0.5],
    "adam_eps": [0.1],
    "batch_size": [9],
    "max_iter": [5],
    "shuffle": [False],
    "augment": ["shift=1,shape=4x10", "flip,shape=4x10"],
    "init": ["zero", "set"],
    "output_init": ["set", "zero"],
    "start": ["paper", "f", "brf"],
    "topology": ["first layer"],
    "scale": [None, "global"],
    "clip": [0.5],
    "prepare": ["quantile", "log2"],
    "label_smoothing": [0.2],
    "early_stopping": [True],
    "validation_fraction": [0.4],
    "n_iter_no_change": [1],
    "tol": [10.0],
    "restore_best": [False],
    "class_weight": [{0: 20.0}],
    "warm_start": [True],
    "preset": ["paper", "fast"],
    "callbacks": ["counter"],
    "n_jobs": [2, 3],
    "random_state": [1],
    "dtype": ["float32", "float64"],
    "verbose": [1],
}
# Values that the regressor or a way of fitting must refuse, or other values for it.
OTHER_VALUES = {
    ("regressor", "loss"): ["huber"],
    ("averaged", "early_stopping"): [False],
    ("early stopping", "early_stopping"): [False],
    ("validation data", "early_stopping"): [False],
    ("plateau", "tol"): [0.0],
    ("given topology", "evolution"): ["set"],  # enough to rewire one of six connections
}


REFUSED = {
    "SGD": {"slope", "decay", "beta_1", "beta_2", "adam_eps"},
    "Adam": {"momentum", "nesterovs_momentum", "decay", "slope"},
    "validation data": {"validation_fraction"},
    "objects": {"zeta", "momentum", "nesterovs_momentum", "weight_decay", "beta_1"},
    "static": {"zeta"},
    "no hidden layer": {"dropout", "activation", "slope"},
    "closed form": {"zeta", "max_iter", "tol", "scale", "callbacks", "warm_start", "evolution"},
}
HONOURED = {
    "SGD": {
        "momentum",
        "nesterovs_momentum",
        "zeta",
        "weight_decay",
        "warm_up",
        "label_smoothing",
        "class_weight",
    },
    "Adam": {"beta_1", "beta_2", "adam_eps", "weight_decay", "shuffle", "augment"},
    "paper preset": {"decay", "momentum", "zeta"},
    "RigL": {"zeta"},
    "leaky ReLU": {"slope"},
    "plateau": {"n_iter_no_change", "tol"},
    "early stopping": {"validation_fraction", "n_iter_no_change", "tol", "restore_best"},
    "validation data": {"n_iter_no_change", "tol", "restore_best"},
    "closed form": {"class_weight", "loss", "n_jobs", "random_state", "verbose"},
}


def test_every_constructor_parameter_has_a_value():
    for kind in KINDS.values():
        assert set(kind().get_params()) <= set(VALUES)
    # `ties` is a parameter of SparseMLPSurvival alone.
    assert set(VALUES) == set(PARAMETERS) - {"ties"}


def fitted(kind, way, parameters, *, widths=None, twice=False):
    """Fit, and return everything that a parameter may have an effect on."""
    X, y = samples(way)
    if kind == "classifier":
        y = (y > 0.3).astype(int)
    if way == "several labels":
        y = np.c_[y, X[:, 2] > 0.3].astype(y.dtype)
    parameters = {"random_state": 0, **parameters}
    if parameters.get("topology") == "whole":
        parameters["topology"] = diagonals(40, 6, 1 if kind == "regressor" else 2)
    if parameters.get("topology") == "first layer":
        parameters["topology"] = diagonals(*widths[:2])
    callback = CountEpochs()
    if "callbacks" in parameters:
        parameters["callbacks"] = callback
    model = KINDS[kind](**parameters)
    eval_set = None
    if way == "validation data":
        eval_set, X, y = (X[50:], y[50:]), X[:50], y[:50]
    with contextlib.redirect_stderr(io.StringIO()) as screen:
        for _ in range(1 + twice):
            model.fit(X, y, eval_set=eval_set)
    network = model.network_
    arrays = [network.scaling.shift, network.scaling.scale, network.scaling.clip]
    for layer in network.layers:
        arrays += [layer.topology.packed, layer.weights, layer.bias, layer.activation, layer.slope]
    facts = [
        *(None if a is None else (np.asarray(a).dtype.str, np.asarray(a).tolist()) for a in arrays),
        model.loss_curve_,
        model.validation_scores_,
        model.solver_,
        model.settings_.n_threads,
        callback.n_epochs,
        bool(screen.getvalue()),
    ]
    return facts, model


@pytest.fixture(scope="module")
def without():
    """Fits without the parameter, each made once."""
    made = {}

    def get(kind, way, *, twice):
        if (kind, way, twice) not in made:
            made[kind, way, twice] = fitted(kind, way, WAYS[way], twice=twice)
        return made[kind, way, twice]

    return get


def cases():
    for kind, make in KINDS.items():
        for way in WAYS:
            for name in make().get_params():
                # What the closed form honours is tested with `solver="ridge"`.
                if way != "auto on wide data" or not PARAMETERS[name].in_closed_form:
                    yield kind, way, name


@pytest.mark.parametrize(("kind", "way", "name"), list(cases()))
def test_a_parameter_has_an_effect_or_raises_an_error_that_names_it(kind, way, name, without):
    twice = name == "warm_start" and way not in CLOSED_FORM
    expected, model = without(kind, way, twice=twice)
    before = {**model.get_params(), **vars(model.settings_)}
    before["evolution"] = model.settings_.strategy_name
    candidates = OTHER_VALUES.get((kind, name)) or OTHER_VALUES.get((way, name)) or VALUES[name]
    value = next(value for value in candidates if value != before[name])
    if name == "solver":
        value = next(value for value in candidates if value != model.solver_)
    if name == "n_jobs":
        value = next(value for value in candidates if value != model.settings_.n_threads)
    # Without early stopping it looks at the training loss, which falls here unless `tol` is large.
    more = (
        {"tol": 10.0} if name == "n_iter_no_change" and not model.settings_.early_stopping else {}
    )
    if name == "learning_rate_min":
        value = model.settings_.learning_rate_init  # a training that stops early sees no lower one
    found = None
    try:
        found, _ = fitted(
            kind,
            way,
            {**more, **WAYS[way], name: value},
            widths=model.network_.widths if name == "topology" else None,
            twice=twice,
        )
    except InvalidParameterError as error:
        refusal = str(error)
    else:
        refusal = ""
    if name in REFUSED.get(way, ()):
        assert refusal
    if name in HONOURED.get(way, ()) and kind == "classifier":
        assert not refusal
    assert f"`{name}" in refusal or (not refusal and found != expected), refusal or "no effect"


def test_changed_parameters_are_found_by_the_signature():
    for kind in KINDS.values():
        assert changed_parameters(kind()) == []
        assert changed_parameters(kind(hidden_layer_sizes=None, batch_size=None)) == []
        assert changed_parameters(kind(verbose=False, tol=np.float64(1e-4))) == []
        for name in kind().get_params():
            assert changed_parameters(kind(**{name: VALUES[name][0]})) == (
                [name] if VALUES[name][0] is not None or name == "scale" else []
            )


# ------------------------------------------------------------------------------ the command line

NO_WIDTH = "genes.csv --label outcome --epochs 3 --json -o m.ratoon"
NO_DENSITY = f"{NO_WIDTH} --hidden 20"
USUAL = f"{NO_DENSITY} --epsilon 3"
QUIETER = USUAL.replace(" --json", "")
NUMBERS = "numbers.csv --epochs 3 --hidden 20 --epsilon 3 --json"
GAPS = USUAL.replace("genes.csv", "gaps.csv")
SURVIVAL = USUAL.replace("genes.csv --label outcome", "survival.csv")
# Parameter of the command: value, and the arguments of both runs.  True is a switch.
FLAGS = {
    "output": ("other.ratoon", f"{NUMBERS} --label level"),
    "label": ("level", f"{NUMBERS} -o m.ratoon"),
    "task": ("regress", f"{NUMBERS} -o m.ratoon --label level"),
    "missing": ("mean", GAPS),
    "reading": (["ignore=g3"], USUAL),
    "duplicates": ("mean", USUAL.replace("genes.csv", "twice.csv")),
    "id_map": ("map.tsv", USUAL),
    "log2": ("yes", USUAL),
    "normalize": ("quantile", USUAL),
    "group": ("batch", f"{USUAL} --read ignore=nothing --test 0.3".replace("genes", "batches")),
    "center_groups": (True, f"{USUAL} --group batch --task classify".replace("genes", "batches")),
    "time": ("months", f"{SURVIVAL} --event dead"),
    "event": ("dead", f"{SURVIVAL} --time months"),
    "test": (0.25, USUAL),
    "cv": ("2x1", USUAL),
    "preset": ("fast", NO_WIDTH),
    "hidden": ("9", f"{NO_WIDTH} --epsilon 3"),
    "epsilon": (1.0, NO_DENSITY),
    "density": (0.3, NO_DENSITY),
    "evolution": ("static", USUAL),
    "zeta": (0.9, USUAL),
    "dropout": (0.4, USUAL),
    "groups": ("groups.gmt", NO_WIDTH),
    "within": (True, f"{NO_WIDTH} --groups groups.gmt"),
    "epochs": (2, USUAL.replace("--epochs 3", "")),
    "batch_size": (7, USUAL),
    "learning_rate": (0.05, USUAL),
    "momentum": (0.3, f"{USUAL} --learning-rate 0.05"),
    "augment": ("shift=1,shape=3x4", USUAL),
    "class_weight": ("balanced", USUAL),
    "early_stopping": (True, USUAL),
    "seed": (3, USUAL),
    "threads": (2, USUAL),
    "checkpoint": ("kept", USUAL),
    "every": (1, f"{USUAL} --checkpoint kept"),
    "resume": (True, f"{USUAL} --checkpoint earlier"),
    "dry_run": (True, USUAL),
    "report": ("page.html", USUAL),
    "no_fingerprints": (True, USUAL),
    "distributed_by": ("tcp", USUAL),
    "average_every": ("3", USUAL),
    "split_by": ("neurons", USUAL),
    "parts": (2, USUAL),
    "rank_groups": (2, USUAL),
    "log_json": (True, f"{USUAL} -q"),
    "as_json": (True, QUIETER),
    "quiet": (True, QUIETER),
}


def options():
    parameters = typer.main.get_command(app).commands["train"].params
    return {
        one.name: next(flag for flag in one.opts if flag.startswith("--"))
        for one in parameters
        if one.param_type_name == "option"
    }


def test_every_flag_of_train_has_a_value():
    assert set(options()) - {"help", "config"} == set(FLAGS)


def write_table(path, rows, label="outcome"):
    header = [*(f"g{k}" for k in range(12)), label]
    path.write_text("\n".join(",".join(map(str, row)) for row in [header, *rows]) + "\n")


@pytest.fixture(scope="module")
def data_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    x = np.random.default_rng(0).normal(size=(60, 12)).round(4)
    rows = [[*row, "ill" if row[0] > 0.6 else "well"] for row in x.tolist()]
    write_table(folder / "genes.csv", rows)
    write_table(folder / "gaps.csv", [["", *rows[0][1:]], *rows[1:]])
    batches = [[*row[:-1], f"b{number % 3}", row[-1]] for number, row in enumerate(rows)]
    names = [*(f"g{k}" for k in range(12)), "batch", "outcome"]
    (folder / "batches.csv").write_text(
        "\n".join(",".join(map(str, row)) for row in [names, *batches]) + "\n"
    )
    text = (folder / "genes.csv").read_text()
    (folder / "twice.csv").write_text(text.replace("g1,", "g0,", 1))
    (folder / "map.tsv").write_text("".join(f"g{k}\tG{k // 2}\n" for k in range(12)))
    lines = (folder / "batches.csv").read_text().replace("batch,outcome", "months,dead")
    for number in range(3):
        lines = lines.replace(f"b{number},", f"{number + 1.5},")
    (folder / "survival.csv").write_text(lines.replace(",ill", ",1").replace(",well", ",0"))
    numbers = [[*row[:-1], int(row[2] > 0)] for row in rows]
    write_table(folder / "numbers.csv", numbers, "level")
    (folder / "groups.gmt").write_text("one\tx\tg0\tg1\tg2\ntwo\tx\tg3\tg4\n")
    return folder


@pytest.fixture
def run_train(data_files, tmp_path, monkeypatch, capsys):
    """Return a function that runs `train` and returns all that can be seen of the run."""

    def run(name, arguments):
        folder = tmp_path / name
        shutil.copytree(data_files, folder)
        monkeypatch.chdir(folder)
        if "earlier" in arguments:
            assert main(["train", *f"{USUAL} --checkpoint earlier".split()]) == 0
            Path("m.ratoon").unlink()
        capsys.readouterr()
        code = main(["train", *arguments])
        out, err = capsys.readouterr()
        facts = [code, re.sub(r"[\d.]+ m?s\b", "", out), bool(err)]
        facts.append(sorted(str(path) for path in Path().rglob("*") if path.suffix != ".toml"))
        if Path("m.ratoon").exists():
            model = load("m.ratoon")
            facts += [model.settings_.n_threads, model.loss_curve_, model.network_.widths]
            facts.append("_trained_rows" in vars(model))
            facts += [layer.weights.tolist() for layer in model.network_.layers]
        return facts, code, err

    return run


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_and_a_key_of_a_file_have_the_same_effect_or_are_refused(name, run_train):
    value, usual = FLAGS[name]
    flag, usual = options()[name], usual.split()
    values = value if isinstance(value, list) else [value]
    given = [flag] if value is True else [part for one in values for part in (flag, str(one))]
    by_flag, code, err = run_train("flag", [*usual, *given])
    if code == 0:
        assert by_flag != run_train("without", usual)[0], f"{flag} had no effect and no error"
    else:
        assert flag in err
    config = Path("options.toml").absolute()
    config.write_text(f"[train]\n{flag.removeprefix('--')} = {json.dumps(value)}\n")
    by_key, *_ = run_train("key", [*usual, "--config", str(config)])
    assert by_key == by_flag


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ("--zeta 0.2 --evolution static", "--zeta 0.2"),
        ("--momentum 0.3", "--momentum 0.3"),
        ("--every 1", "--every"),
        ("--average-every 4", "--average-every"),
        ("--within", "--within"),
        ("--resume", "--resume"),
    ],
)
def test_a_flag_that_would_have_no_effect_is_refused(more, named, run_train):
    _, code, err = run_train("refused", [*USUAL.split(), *more.split()])
    assert code != 0
    assert named in err

"""What training accepted, prediction accepts: every kind of file predicts its own samples."""

import json

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

N, GENES = 40, 12
NAMES = [f"S{k}" for k in range(N)]
SYMBOLS = [f"SYM{k // 2}" for k in range(GENES)]  # every symbol twice
PROBES = [f"{k}_at" for k in range(GENES)]
TEXT = h5py.string_dtype()


@pytest.fixture(scope="module")
def values():
    rng = np.random.default_rng(0)
    y = np.repeat(["ill", "well"], N // 2)
    effect = np.where(np.arange(GENES) < 4, 3, -1) * (y == "ill")[:, None]
    return np.round(2 ** (rng.normal(8, 0.5, (N, GENES)) + effect), 3), y


def frame(values, names=SYMBOLS, **columns):
    x, y = values
    found = pd.DataFrame(x, columns=names, index=pd.Index(NAMES, name="sample"))
    for name, cells in ({"diagnosis": y} | columns).items():
        found.insert(0, name, cells, allow_duplicates=True)
    return found


def csv_of(values, folder, **columns):
    frame(values, **columns).to_csv(folder / "a.csv")
    return folder / "a.csv"


def transposed(values, folder):
    frame(values).T.to_csv(folder / "a.csv", index_label="gene")
    return folder / "a.csv"


def semicolons(values, folder):
    frame(values).to_csv(folder / "a.csv", sep=";", decimal=",")
    return folder / "a.csv"


def workbook(values, folder):
    frame(values).reset_index().to_excel(folder / "a.xlsx", index=False)
    return folder / "a.xlsx"


def with_sheet(values, folder):
    frame(values).drop(columns="diagnosis").to_csv(folder / "a.csv")
    frame(values)[["diagnosis"]].to_csv(folder / "sheet.csv")
    return folder / "a.csv", "--read", f"sample_sheet={folder / 'sheet.csv'}"


def gct(values, folder):
    x, y = values
    head = f"#1.2\n{GENES}\t{N}\nName\tDescription\t" + "\t".join(NAMES) + "\n"
    lines = [
        "\t".join([name, "na", *map(str, row)]) for name, row in zip(SYMBOLS, x.T, strict=True)
    ]
    (folder / "a.gct").write_text(head + "\n".join(lines) + "\n")
    codes = " ".join("0" if one == "ill" else "1" for one in y)
    (folder / "a.cls").write_text(f"{N} 2 1\n# ill well\n{codes}\n")
    return folder / "a.gct"


def series_matrix(values, folder):
    x, y = values
    quoted = "\t".join(f'"{name}"' for name in NAMES)
    fields = "\t".join(f'"diagnosis: {one}"' for one in y)
    rows = "\n".join(
        "\t".join([f'"{name}"', *map(str, row)]) for name, row in zip(SYMBOLS, x.T, strict=True)
    )
    (folder / "a_series_matrix.txt").write_text(
        f'!Series_title\t"t"\n!Sample_geo_accession\t{quoted}\n'
        f"!Sample_characteristics_ch1\t{fields}\n!series_matrix_table_begin\n"
        f'"ID_REF"\t{quoted}\n{rows}\n!series_matrix_table_end\n'
    )
    return folder / "a_series_matrix.txt"


def anndata(values, folder):
    x, y = values
    with h5py.File(folder / "a.h5ad", "w") as file:
        matrix, group = sp.csr_array(x), file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "shape": x.shape})
        group["data"], group["indices"], group["indptr"] = (
            matrix.data, matrix.indices, matrix.indptr,
        )  # fmt: skip
        for name, index in (("obs", NAMES), ("var", SYMBOLS)):
            part = file.create_group(name)
            part.attrs["_index"] = "_index"
            part.create_dataset("_index", data=np.array(index, dtype=object), dtype=TEXT)
        file["obs"].create_dataset("diagnosis", data=y.astype(object), dtype=TEXT)
    return folder / "a.h5ad"


def anndata_on_disk(values, folder):
    return anndata(values, folder), "--read", "on_disk=true"


def npz(values, folder):
    x, y = values
    np.savez(folder / "a.npz", X=x, diagnosis=y, feature_names=np.array(SYMBOLS))
    return folder / "a.npz"


def mat(values, folder):
    x, y = values
    scipy.io.savemat(folder / "a.mat", {"X": x, "diagnosis": (y == "ill").astype(int)[:, None]})
    return folder / "a.mat"


def more_columns(values, folder):
    numbers = {"age": np.arange(N), "batch": np.tile(["u", "v"], N // 2)}
    path = csv_of(values, folder, **numbers)
    return path, "--read", "ignore=age", "--group", "batch"


KINDS = [
    csv_of, transposed, semicolons, workbook, with_sheet, gct, series_matrix, anndata,
    anndata_on_disk, npz, mat, more_columns,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "options",
    [[], ["--duplicates", "mean", "--log2", "auto", "--normalize", "quantile"]],
    ids=["as it is", "prepared"],
)
def test_a_file_predicts_its_own_samples(ratoon, values, tmp_path, kind, options):
    made = kind(values, tmp_path)
    path, *reading = made if isinstance(made, tuple) else (made,)
    if options and kind is mat:
        options = options[2:]  # there are no names to collapse
    if options and kind in (anndata, anndata_on_disk):
        options = options[:4] if kind is anndata else options[2:4]  # sparse
    label = [] if kind is gct else ["--label", "diagnosis"]
    model = tmp_path / "model.ratoon"
    trained = ratoon(
        "train",
        path,
        *label,
        *reading,
        *options,
        "-o",
        model,
        "--cv",
        "none",
        "--epochs",
        "100",
        "-q",
    )
    assert trained.code == 0, trained.err
    of_sheet = [part for part in reading if "sample_sheet" in part or "on_disk" in part]
    again = ["--read", *of_sheet] if of_sheet else []
    predicted = ratoon("predict", model, path, "-q", *(["--read", again[1]] if again else []))
    if kind is with_sheet:  # without the sheet as well
        predicted = ratoon("predict", model, path, "-q")
    assert predicted.code == 0, predicted.err
    assert predicted.out.count("\n") == N + 1
    scored = ratoon("evaluate", model, path, "--json", *again)
    assert scored.code == 0, scored.err
    assert accuracy_of(scored.out) > 0.9


def accuracy_of(text):
    """Return the accuracy, which is that of training samples where the model knows them."""
    found = json.loads(text)
    return found["training_score"] if found["score"] is None else found["score"]


@pytest.mark.parametrize("how", ["mean", "median", "zero"])
@pytest.mark.parametrize("options", [[], ["--duplicates", "mean", "--log2", "auto"]], ids=str)
def test_values_missing_in_training_may_be_missing_later(ratoon, values, tmp_path, how, options):
    x, y = values
    holes = x.copy()
    holes[np.random.default_rng(1).random(x.shape) < 0.05] = np.nan
    path = csv_of((holes, y), tmp_path)
    model = tmp_path / "model.ratoon"
    trained = ratoon(
        "train", path, "--label", "diagnosis", "--missing", how, *options, "--cv", "none",
        "-o", model, "-q",
    )  # fmt: skip
    assert trained.code == 0, trained.err
    scored = json.loads(ratoon("evaluate", model, path, "--json").out)
    assert scored["training_samples"] == N  # the same values were filled in, to the bit
    all_of_it = ratoon("predict", model, path).out.splitlines()
    frame((holes, y)).iloc[:1].to_csv(tmp_path / "one.csv")
    alone = ratoon("predict", model, tmp_path / "one.csv")
    assert alone.code == 0, alone.err
    assert alone.out.splitlines()[1].split(",")[:2] == all_of_it[1].split(",")[:2]
    where = csv_of(values, tmp_path)
    plain = tmp_path / "plain.ratoon"
    ratoon("train", where, "--label", "diagnosis", "--cv", "none", "-o", plain, "-q")
    path = csv_of((holes, y), tmp_path)
    assert "values are missing" in ratoon("predict", plain, path).err


def test_a_german_sample_heading_is_recognised(ratoon, values, tmp_path):
    x, y = values
    found = frame((x, y)).rename_axis("Probe")
    found.index = [f"GSM{100 + k}" for k in range(N)]
    found.to_csv(tmp_path / "a.csv", sep=";", decimal=",", index_label="Probe")
    model = tmp_path / "model.ratoon"
    trained = ratoon(
        "train", tmp_path / "a.csv", "--label", "diagnosis", "--cv", "none", "-o", model
    )
    assert f"{N} samples of {GENES} features" in " ".join(trained.out.split())
    assert ratoon("predict", model, tmp_path / "a.csv").out.count("\n") == N + 1
    found.index = [f"sick {k}" for k in range(N)]  # only the label tells the orientation
    found.to_csv(tmp_path / "a.csv", sep=";", decimal=",", index_label="Probe")
    assert ratoon("predict", model, tmp_path / "a.csv").out.count("\n") == N + 1


def test_a_sample_sheet_is_asked_for_where_training_had_one(ratoon, values, tmp_path):
    path, *reading = with_sheet(values, tmp_path)
    sheet = tmp_path / "sheet.csv"
    rows = sheet.read_text().splitlines()
    lines = [f"{row},{'batch' if k == 0 else f'b{k % 2}'}" for k, row in enumerate(rows)]
    sheet.write_text("\n".join(lines) + "\n")
    model = tmp_path / "model.ratoon"
    trained = ratoon(
        "train", path, *reading, "--label", "diagnosis", "--group", "batch", "--center-groups",
        "--cv", "none", "-o", model, "-q",
    )  # fmt: skip
    assert trained.code == 0, trained.err
    for command in ("predict", "evaluate"):
        found = ratoon(command, model, path)
        assert "The model was trained with '" in found.err
        assert "pass --read sample_sheet=" in found.err
        found = ratoon(command, model, path, *reading)
        assert found.code == 0, found.err


def test_an_id_map_is_remembered(ratoon, values, tmp_path):
    frame(values, names=PROBES).to_csv(tmp_path / "probes.csv")
    pairs = "".join(f"{k}_at\tSYM{k // 2}{' /// MORE' * (k == 3)}\n" for k in range(GENES - 2))
    (tmp_path / "map.tsv").write_text(pairs)
    model = tmp_path / "model.ratoon"
    trained = ratoon(
        "train", tmp_path / "probes.csv", "--label", "diagnosis", "--id-map", tmp_path / "map.tsv",
        "--duplicates", "max", "-o", model, "--cv", "none", "--epochs", "100",
    )  # fmt: skip
    assert trained.code == 0, trained.err
    assert "2 features are not in it and were left out" in trained.err
    own = ratoon("evaluate", model, tmp_path / "probes.csv", "--json")
    assert accuracy_of(own.out) > 0.9
    # Another file has symbols; those of several columns are collapsed in the same way.
    csv_of(values, tmp_path)
    other = ratoon("predict", model, tmp_path / "a.csv", "--min-coverage", "0.8")
    assert other.code == 0, other.err
    assert "5 combined from several columns" in other.err


def test_repeated_names_can_be_an_error(ratoon, values, tmp_path):
    found = ratoon(
        "train", csv_of(values, tmp_path), "--label", "diagnosis", "--duplicates", "error"
    )
    assert found.code != 0
    assert "6 feature names occur more than once, for instance 'SYM0'" in found.err
    assert "--duplicates mean" in found.err


def test_options_of_preparation_are_checked(ratoon, values, tmp_path):
    path = csv_of(values, tmp_path, patient=[f"P{k // 4}" for k in range(N)])
    for options, message in (
        (["--center-groups"], "--center-groups needs the groups: --group COLUMN"),
        (["--log2", "aut"], "Did you mean 'auto'?"),
        (["--normalize", "quantiles"], "Did you mean 'quantile'?"),
        (["--time", "months"], "--time and --event are given together"),
        (["--group", "nothing"], "there is no column 'nothing'"),
        (["--group", "patiens"], "there is no column 'patiens'. Did you mean 'patient'?"),
        (["--missing", "meam"], "Did you mean 'mean'?"),
        (["--evolution", "rigll", "--group", "patient"], "Did you mean 'rigl'?"),
        (["--read", "sparsed=true"], "Did you mean 'sparse'?"),
    ):
        found = ratoon("train", path, "--label", "diagnosis", *options)
        assert found.code != 0
        assert message in found.err


def test_held_out_samples_are_of_other_groups(ratoon, values, tmp_path):
    patients = [f"P{k // 4}" for k in range(N)]
    path = csv_of(values, tmp_path, patient=patients)
    found = ratoon(
        "train", path, "--label", "diagnosis", "--group", "patient", "--test", "0.3", "--json",
        "--cv", "none", "--epochs", "2",
    )  # fmt: skip
    assert found.code == 0, found.err
    assert json.loads(found.out)["test_samples"] % 4 == 0

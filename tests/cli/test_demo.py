"""`ratoon demo`: a table, a picture, and figures a program can read."""

import json


def test_the_demo_ends_with_a_table_and_a_picture(ratoon, tmp_path):
    picture = tmp_path / "demo.png"
    told = ratoon("demo", "--epochs", "2", "-o", picture)
    assert told.code == 0
    assert "42,285 neurons" in told.out
    for line in (
        "test accuracy, last epoch",
        "at the validation-chosen epoch",
        "connections",
        "seconds per epoch",
        "memory of the network",
    ):
        assert line in told.out
    assert "462,830" in told.out
    assert "445,700,000" in told.out
    assert max(len(line) for line in told.out.splitlines()) <= 80
    assert "SET" in told.err, "the progress bar"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000


def test_figures_for_programs_are_the_same_every_time(ratoon, tmp_path):
    def figures(threads):
        told = ratoon(
            "demo", "--epochs", "1", "--json", "--threads", threads, "-o", tmp_path / "d.png"
        )
        assert told.err == ""
        return json.loads(told.out)

    one, two = figures(1), figures(2)
    assert [trial["method"] for trial in one["trials"]] == ["SET", "FixProb"]
    for a, b in zip(one["trials"], two["trials"], strict=True):
        assert a["connections"] == 462_830
        assert a["seconds_per_epoch"] > 0
        for name in ("test_accuracy_last_epoch", "test_accuracy_validation_chosen_epoch"):
            assert 0.0 <= a[name] <= 1.0
            assert a[name] == b[name]


def test_a_picture_that_cannot_be_written_is_said(ratoon, tmp_path):
    told = ratoon("demo", "--epochs", "1", "--json", "-o", tmp_path / "no" / "demo.png")
    assert told.code == 1
    assert "demo.png" in told.err

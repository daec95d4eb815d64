import os

import pytest

from ratoon.errors import FormatError, InvalidParameterError
from ratoon.storage import CheckpointDirectory, CheckpointWarning, Document, write_document


def a_checkpoint(number):
    return Document({"number": number}, kind="checkpoint")


@pytest.fixture
def checkpoints(tmp_path):
    with CheckpointDirectory(tmp_path / "run") as directory:
        for number in (1, 2, 3):
            directory.save(number, a_checkpoint(number))
        yield directory


def damage(path):
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))


def test_the_last_two_are_kept(checkpoints):
    assert checkpoints.numbers() == [2, 3]
    assert sorted(os.listdir(checkpoints.path)) == [
        "checkpoint-00000002.ratoon",
        "checkpoint-00000003.ratoon",
        "lock",
    ]


def test_the_newest_is_found_without_a_lock(checkpoints):
    number, document = CheckpointDirectory(checkpoints.path).latest()
    assert number == 3
    assert document.config == {"number": 3}


def test_directories_are_made_as_deep_as_needed(tmp_path):
    with CheckpointDirectory(tmp_path / "a" / "b" / "c") as directory:
        directory.save(1, a_checkpoint(1))
    assert directory.latest()[0] == 1


def test_a_file_in_place_of_the_directory_is_an_error(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(OSError):
        CheckpointDirectory(tmp_path / "run").acquire()


def test_an_empty_or_missing_directory_has_none(tmp_path):
    assert CheckpointDirectory(tmp_path).latest() is None
    assert CheckpointDirectory(tmp_path / "missing").latest() is None


@pytest.mark.parametrize("harm", [damage, lambda path: os.truncate(path, 0)])
def test_a_damaged_one_is_passed_over_loudly(checkpoints, harm):
    harm(checkpoints.path_of(3))
    with pytest.warns(CheckpointWarning, match=r"going back to .*02\.ratoon, because\n.*03\.rato"):
        number, _ = checkpoints.latest()
    assert number == 2


def test_nothing_is_made_up_when_none_can_be_used(checkpoints):
    for number in (2, 3):
        damage(checkpoints.path_of(number))
    with pytest.raises(FormatError, match=r"(?s)no checkpoint can be used.*03\.rat.*02\.rat"):
        checkpoints.latest()


def test_a_model_under_a_checkpoints_name_is_not_taken(checkpoints):
    write_document(Document({}), checkpoints.path_of(4))
    with pytest.warns(CheckpointWarning, match="this is a model, not a checkpoint"):
        assert checkpoints.latest()[0] == 3


def test_a_future_that_was_given_up_is_removed(checkpoints):
    checkpoints.save(9, a_checkpoint(9))
    checkpoints.save(4, a_checkpoint(4))
    assert checkpoints.numbers() == [3, 4]


def test_the_same_number_can_be_written_again(checkpoints):
    checkpoints.save(3, Document({"number": "again"}, kind="checkpoint"))
    assert checkpoints.numbers() == [2, 3]
    assert checkpoints.latest()[1].config == {"number": "again"}


def test_writing_needs_the_lock(tmp_path):
    with pytest.raises(RuntimeError, match="must be locked"):
        CheckpointDirectory(tmp_path).save(1, a_checkpoint(1))


def test_models_and_impossible_numbers_are_refused(checkpoints):
    for number, kind in ((1, "model"), (-1, "checkpoint"), (10**12, "checkpoint")):
        with pytest.raises(InvalidParameterError):
            checkpoints.save(number, Document({}, kind=kind))


def test_what_killed_writers_left_is_cleared_and_nothing_else(tmp_path):
    for name in (".ratoon-0123456789abcdef.tmp", "notes.txt", ".ratoon-xyz.tmp", "checkpoint-1"):
        (tmp_path / name).write_text("x")
    with CheckpointDirectory(tmp_path) as directory:
        assert directory.numbers() == []
        expected = [".ratoon-xyz.tmp", "checkpoint-1", "lock", "notes.txt"]
        assert sorted(os.listdir(tmp_path)) == expected


def test_the_clock_does_not_matter(checkpoints):
    os.utime(checkpoints.path_of(2), (4e9, 4e9))
    os.utime(checkpoints.path_of(3), (0, 0))
    assert checkpoints.latest()[0] == 3

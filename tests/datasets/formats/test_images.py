"""Folders of images: classes, sizes, channels, and images that cannot be used."""

import os

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon import SparseMLPClassifier, load
from ratoon.cli import main
from ratoon.datasets import Limits, examine, read
from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError

Image = pytest.importorskip("PIL.Image")


def save(path, pixels, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)


@pytest.fixture
def folder(tmp_path):
    """Two classes of ten RGB images of 6 x 4 pixels, by name and content."""
    rng = np.random.default_rng(0)
    for name, low in (("cat", 0), ("dog", 128)):
        for k in range(10):
            pixels = rng.integers(low, low + 128, (4, 6, 3)).astype(np.uint8)
            save(tmp_path / "animals" / name / f"{k}.png", pixels)
    return tmp_path / "animals"


def test_every_folder_is_a_class(folder):
    data = read(folder)
    assert data.X.shape == (20, 72)
    assert data.X.dtype == np.uint8
    assert data.image_shape == (4, 6, 3)
    assert data.class_counts == {"cat": 10, "dog": 10}
    assert data.sample_names[:2] == ("cat/0.png", "cat/1.png")
    with Image.open(folder / "dog" / "3.png") as image:
        assert_array_equal(data.X[13], np.asarray(image).ravel())
    assert data.notes == (
        "labels from the 2 folders",
        "RGB images of 6 x 4 pixels, as uint8",
    )
    assert len(data.sha256) == 64
    assert examine(folder).n_samples == 20
    isolated = read(folder, isolated=True)
    assert_array_equal(isolated.X, data.X)
    assert isolated.image_shape == (4, 6, 3)


def test_another_image_is_another_digest(folder):
    before = read(folder).sha256
    save(folder / "cat" / "0.png", np.zeros((4, 6, 3), np.uint8))
    assert read(folder).sha256 != before


def test_images_without_folders_have_no_labels(folder):
    data = read(folder / "cat")
    assert data.y is None
    assert data.sample_names == tuple(f"{k}.png" for k in range(10))


def test_hidden_and_other_files_are_left_out(folder):
    for name in (".hidden.png", "cat/.DS_Store", ".git/x.png", "notes.txt", "dog/list.csv"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"no image")
    (folder / "empty").mkdir()
    data = read(folder)
    assert data.X.shape == (20, 72)
    assert "left out 2 files that are not images" in data.notes


def test_of_train_and_test_the_first_is_read(folder):
    (folder.parent / "all").mkdir()
    os.rename(folder, folder.parent / "all" / "train")
    save(folder.parent / "all" / "test" / "cat" / "0.png", np.zeros((4, 6, 3), np.uint8))
    data = read(folder.parent / "all")
    assert data.class_counts == {"cat": 10, "dog": 10}
    assert data.notes[0].startswith("images of the folder 'train'")
    assert read(folder.parent / "all" / "test").n_samples == 1


def test_images_inside_folders_of_a_class_belong_to_it(folder):
    save(folder / "cat" / "kitten" / "young.png", np.zeros((4, 6, 3), np.uint8))
    data = read(folder)
    assert data.class_counts["cat"] == 11
    assert "cat/kitten/young.png" in data.sample_names


def test_links_to_folders_inside_a_class_are_not_followed(folder):
    (folder / "cat" / "loop").symlink_to(folder, target_is_directory=True)
    assert read(folder).n_samples == 20


@pytest.mark.parametrize(
    ("pixels", "shape"),
    [
        (np.full((4, 6), 7, np.uint8), (4, 6)),
        (np.full((4, 6), True), (4, 6)),
        (np.full((4, 6, 4), 9, np.uint8), (4, 6, 3)),
    ],
)
def test_channels_follow_from_the_images(tmp_path, pixels, shape):
    save(tmp_path / "a.png", pixels)
    assert read(tmp_path).image_shape == shape
    gray, rgb = (read(tmp_path, color=color) for color in ("gray", "rgb"))
    assert (gray.image_shape, rgb.image_shape) == ((4, 6), (4, 6, 3))
    assert_array_equal(rgb.X.reshape(4, 6, 3)[..., 0], gray.X.reshape(4, 6))


def test_one_image_in_colour_makes_all_rgb(folder):
    save(folder / "cat" / "0.png", np.zeros((4, 6), np.uint8))
    assert read(folder).image_shape == (4, 6, 3)


def test_images_of_other_sizes_are_refused_or_resized(folder):
    save(folder / "cat" / "odd.jpg", np.full((9, 5, 3), 77, np.uint8))
    with pytest.raises(InvalidInputError, match=r"cat/odd.jpg has 5 x 9 pixels.*\n.*size='6x4'"):
        read(folder)
    data = read(folder, size="6x4")
    assert data.image_shape == (4, 6, 3)
    place = data.sample_names.index("cat/odd.jpg")
    assert abs(data.X[place].astype(int) - 77).max() <= 1  # JPEG is lossy
    assert read(folder, size=(2, 3)).image_shape == (3, 2, 3)


@pytest.mark.parametrize("size", ["6", "6x", "0x4", "6x4x3", 5, (1.5,), "axb", "-1x2"])
def test_impossible_sizes_are_refused(folder, size):
    with pytest.raises(InvalidParameterError, match="`size` must be"):
        read(folder, size=size)


def test_arguments_for_images_are_refused_for_other_files(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b,class\n1,2,x\n3,4,y\n")
    for given in ({"size": "2x2"}, {"color": "gray"}):
        with pytest.raises(InvalidParameterError, match="is for folders of images"):
            read(path, **given)
    with pytest.raises(InvalidParameterError, match="`color` must be"):
        read(path, color="blue")


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"no image at all",
        lambda content: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 6 4\n",
        lambda content: b"",
    ],
)
def test_a_damaged_image_is_named(folder, damage):
    path = folder / "dog" / "4.png"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(FormatError, match=r"dog/4.png: (not a complete image|the file is empty)"):
        read(folder)


def test_a_decompression_bomb_is_refused(folder, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    save(folder / "cat" / "bomb.png", np.zeros((40, 30), np.uint8))
    with pytest.raises(FormatError, match=r"bomb.png: the image is too large"):
        read(folder, size="6x4")
    save(folder / "cat" / "bomb.png", np.zeros((400, 300), np.uint8))
    with pytest.raises(FormatError, match=r"bomb.png: the image is too large"):
        read(folder, size="6x4")


def test_limits_hold_before_anything_is_decoded(folder):
    with pytest.raises(FormatError, match="array of 20 x 72 values"):
        read(folder, limits=Limits(array_bytes=1000))
    with pytest.raises(FormatError, match="rows, the limit is 5"):
        read(folder, limits=Limits(rows=5))
    with pytest.raises(FormatError, match="the limit is"):
        read(folder, limits=Limits(file_bytes=50))


def test_pixels_of_16_bits_are_refused(tmp_path):
    save(tmp_path / "a.png", np.full((4, 6), 999, np.uint16))
    with pytest.raises(FormatError, match="do not fit into 8 bits"):
        read(tmp_path)


def test_images_next_to_folders_of_classes_are_refused(folder):
    save(folder / "lost.png", np.zeros((4, 6, 3), np.uint8))
    with pytest.raises(InvalidInputError, match=r"1 images are outside .* 'lost.png'"):
        read(folder)


def test_a_folder_without_images_and_a_single_image_are_refused(tmp_path):
    with pytest.raises(FormatError, match="no image"):
        read(tmp_path)
    with pytest.raises(FormatError, match="no images"):
        read(tmp_path, format="images")
    save(tmp_path / "a.png", np.zeros((4, 6), np.uint8))
    with pytest.raises(FormatError, match="a single image"):
        read(tmp_path / "a.png")
    with pytest.raises(InvalidInputError, match="label= does not apply"):
        read(tmp_path, label="y")


def test_without_pillow_the_extra_is_named(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    with pytest.raises(ImportError, match=r"pip install ratoon\[images\]"):
        read(folder)


def test_images_go_from_a_folder_to_labels_per_file(folder, tmp_path, capsys):
    model, labels = tmp_path / "m.ratoon", tmp_path / "labels.csv"
    given = ["--epochs", "20", "--hidden", "20", "--batch-size", "5", "--augment", "shift=1,flip"]
    assert main(["train", str(folder), *given, "-o", str(model)]) == 0
    found = load(model)
    assert found.settings_.augment.shape == (4, 6, 3)
    assert isinstance(found, SparseMLPClassifier)
    assert main(["predict", str(model), str(folder / "dog"), "-o", str(labels)]) == 0
    lines = labels.read_text().splitlines()
    assert lines[0] == "sample,prediction"
    assert lines[1:] == [f"{k}.png,dog" for k in range(10)]
    assert main(["data", "show", str(folder)]) == 0
    assert "cat: 10" in capsys.readouterr().out
    assert main(["train", str(folder), "--read", "size=3x2", "--read", "color=gray"]) == 0

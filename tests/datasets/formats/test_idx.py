"""IDX files: what they hold, the labels next to them, and headers that lie."""

import gzip
import struct
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.datasets import Limits, examine, read
from ratoon.errors import FormatError, InvalidInputError

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}
IMAGES = np.random.default_rng(0).integers(0, 256, (30, 5, 4)).astype(np.uint8)
LABELS = (np.arange(30) % 3).astype(np.uint8)


def idx(array):
    array = np.asarray(array)
    header = bytes([0, 0, CODES[array.dtype.str[1:]], array.ndim])
    return (
        header
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.astype(">" + array.dtype.str[1:]).tobytes()
    )


def header(code, *shape):
    return bytes([0, 0, code, len(shape)]) + struct.pack(f">{len(shape)}I", *shape)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("end", ["-ubyte", "", "-ubyte.gz"])
def test_images_and_their_labels_are_read(write, pack, end):
    path = write(f"train-images-idx3{end}", pack(idx(IMAGES)))
    write(f"train-labels-idx1{end}", idx(LABELS))
    data = read(path)
    assert data.X.dtype == np.uint8
    assert data.image_shape == (5, 4)
    assert_array_equal(data.X, IMAGES.reshape(30, 20))
    assert data.labels.tolist() == [str(label) for label in LABELS]
    assert data.notes == (f"labels from file 'train-labels-idx1{end}'",)
    assert data.take([2, 1]).image_shape == (5, 4)
    isolated = read(path, isolated=True)
    assert_array_equal(isolated.X, data.X)
    assert (isolated.X.dtype, isolated.image_shape) == (np.uint8, (5, 4))


def test_labels_that_are_packed_otherwise_are_found(write):
    path = write("t10k-images-idx3-ubyte", idx(IMAGES))
    write("t10k-labels-idx1-ubyte.gz", gzip.compress(idx(LABELS)))
    assert read(path).n_classes == 3


def test_labels_are_named_by_label(write):
    path = write("digits", idx(IMAGES))
    assert read(path).y is None
    write("answers", idx(LABELS))
    for label in ("answers", str(path.with_name("answers"))):
        assert read(path, label=label).n_classes == 3
    with pytest.raises(InvalidInputError, match="label='nothing' must be the path"):
        read(path, label="nothing")
    with pytest.raises(FormatError, match="labels need one dimension, this IDX file has 3"):
        read(path, label="digits")


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "f4", "f8"])
def test_other_number_types_become_float32(write, kind):
    values = np.arange(-12, 12).reshape(6, 4).astype(kind)
    data = read(write("values", idx(values)))
    assert data.X.dtype == np.float32
    assert data.image_shape is None
    assert_array_equal(data.X, values)


def test_images_with_channels_keep_their_shape(write):
    data = read(write("colour", idx(IMAGES.reshape(10, 4, 5, 3))))
    assert data.image_shape == (4, 5, 3)
    assert read(write("first", idx(IMAGES.reshape(10, 3, 4, 5)))).image_shape is None


def test_images_can_be_examined(write):
    write("images-idx3", idx(IMAGES))
    examination = examine(write("images-idx3", idx(IMAGES)))
    assert (examination.n_samples, examination.dtype, examination.n_missing) == (30, "uint8", 0)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx(IMAGES)[:-1], "declares 30 x 5 x 4 values, 600 bytes, but the file has 599"),
        (idx(IMAGES) + b"x", "600 bytes, but the file has more than that"),
        (header(8, 30, 5, 4), "but the file has 0"),
        (header(8, 30, 5, 4)[:9], "ends in its header"),
        (header(8, *[1] * 5) + b"x" * 50, "5 dimensions"),
        (header(8, 0, 5, 4), "no values"),
        (header(8, 5, 0, 4), "no values"),
        (header(8, 2**32 - 1, 28, 28), "4294967295 rows, the limit is"),
        (header(8, 10**7, 2**16, 2**16), "columns, the limit is"),
        (header(14, 10**7, 1000, 1000), r"8\d* bytes, the limit is|limit"),
        (idx(LABELS), "holds 30 labels, not images"),
    ],
)
def test_files_that_do_not_hold_what_they_declare_are_refused(write, content, message, pack):
    path = write("images-idx3", pack(content))
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=message):
            read(path, format="idx")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10**7


def test_a_declared_size_within_the_limits_allocates_nothing_that_is_not_there(write):
    for pack in (bytes, gzip.compress):
        path = write("images-idx3", pack(header(8, 2000, 2**11, 2**11) + b"x" * 100))
        tracemalloc.start()
        try:
            with pytest.raises(FormatError, match="but the file has 100"):
                read(path)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 10**7


def test_labels_of_another_number_are_refused(write):
    path = write("train-images-idx3", idx(IMAGES))
    write("train-labels-idx1", idx(LABELS[:-1]))
    with pytest.raises(FormatError, match="29 labels for 30 samples"):
        read(path)


def test_a_gzip_bomb_is_refused(write):
    path = write("images-idx3.gz", gzip.compress(header(8, 64, 1024, 1024) + bytes(2**26)))
    with pytest.raises(FormatError, match="stored bytes unpack to"):
        read(path, limits=Limits(free_bytes=2**20))
    write("b-labels-idx1.gz", gzip.compress(header(8, 2**25) + bytes(2**25)))
    path = write("b-images-idx3", idx(IMAGES))
    with pytest.raises(FormatError, match="stored bytes unpack to"):
        read(path, limits=Limits(free_bytes=2**20, rows=2**26))

"""Folders of images: one folder per class, or images without classes.

Pillow decodes the images, of a list of common formats only: others of its readers call external
programs.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ratoon.datasets.files import Limits, open_regular, survey
from ratoon.datasets.optional import require
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.errors import FormatError, InvalidInputError, RatoonError

SUFFIXES = (
    *(".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm"),
)
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
_GRAY = {"1", "L", "LA"}
_COLOUR = {"P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LAB"}
_PARTS = {"train", "training", "test", "testing", "val", "valid", "validation"}
_TRAINING = ("train", "training")
_AT_ONCE = 256


@dataclass(frozen=True)
class ImageFiles:
    """The images of a folder: paths relative to it, and the class folder of each."""

    folder: Path
    names: tuple[str, ...]
    classes: tuple[str, ...] | None
    notes: tuple[str, ...]


def find_images(folder: Path, limits: Limits) -> ImageFiles | None:
    """Return the images of a folder, or None if it has none.

    Hidden files and folders are ignored.  Of folders called train and test, the first is read.
    """
    direct, folders, n_others = _listed(folder)
    notes: list[str] = []
    parts = {name.lower(): name for name in folders}
    chosen = next((parts[name] for name in _TRAINING if name in parts), None)
    if chosen is not None and not direct and parts.keys() <= _PARTS:
        found = find_images(folder / chosen, limits)
        if found is None:
            return None
        others = ", ".join(name for name in folders if name != chosen) or "none"
        note = f"images of the folder {chosen!r}; name other folders by their path: {others}"
        return ImageFiles(found.folder, found.names, found.classes, (note, *found.notes))
    names, classes = list(direct), [""] * len(direct)
    for name in folders:
        for inner, n_more in _inside(folder / name):
            names += [f"{name}/{one}" for one in inner]
            classes += [name] * len(inner)
            n_others += n_more
            limits.check_shape(str(folder), len(names), 1)
    if not names:
        return None
    if direct and len(direct) < len(names):
        raise InvalidInputError(
            f"{folder}: {len(direct)} images are outside the folders of the classes, the first is"
            f" {direct[0]!r}.\n  Move them into a folder per class, or keep only images without"
            " folders."
        )
    if n_others:
        notes.append(f"left out {n_others} files that are not images")
    if not direct:
        notes.append(f"labels from the {len(set(classes))} folders")
    return ImageFiles(folder, tuple(names), None if direct else tuple(classes), tuple(notes))


def survey_images(found: ImageFiles, limits: Limits) -> str:
    """Return one digest of all images; each is checked like a single file."""
    digest = hashlib.sha256()
    for name in found.names:
        digest.update(f"{name} {survey(found.folder / name, limits)}\n".encode())
    return digest.hexdigest()


def read_images(path: Path, options: ReadOptions) -> Parsed:
    """Read the images of a folder into uint8, in the order (height, width, channels)."""
    require("PIL.Image", "to read images", extra="images")
    found = find_images(path, options.limits) if path.is_dir() else None
    if found is None:
        raise FormatError(
            f"{path}: no images in this folder; it needs one folder per class, or images."
        )
    if options.label is not None and options.sample_sheet is None:
        raise InvalidInputError(
            f"{path}: the label of an image is its folder, so label= does not apply.\n"
            "  Pass a table of file names and labels as sample_sheet=."
        )
    sizes, modes = _surveyed(found, options.limits)
    width, height = size = options.size or _common_size(found, sizes)
    mode = _mode(found, modes, options.color)
    channels = 1 if mode == "L" else 3
    options.limits.check_shape(str(path), len(sizes), width * height * channels, 1)
    values = np.empty((len(sizes), width * height * channels), dtype=np.uint8)

    def decode(first: int) -> None:
        for row in range(first, min(first + _AT_ONCE, len(sizes))):
            with _opened(found.folder / found.names[row], options.limits) as image:
                if image.size != sizes[row]:
                    raise FormatError(f"{found.names[row]}: the image changed while it was read.")
                pixels = image.convert(mode)
                if pixels.size != size:
                    pixels = pixels.resize(size, 2)  # bilinear, over all pixels it covers
                values[row] = np.asarray(pixels).reshape(-1)

    _in_threads(decode, range(0, len(sizes), _AT_ONCE))
    kind = "gray" if mode == "L" else "RGB"
    how = "" if options.size is None else ", resized"
    return Parsed(
        values,
        labels=found.classes,
        sample_names=found.names,
        label_source="folder names",
        notes=[*found.notes, f"{kind} images of {width} x {height} pixels{how}, as uint8"],
        image_shape=(height, width) if mode == "L" else (height, width, 3),
    )


def _listed(folder: Path) -> tuple[list[str], list[str], int]:
    """Return the images and the folders in a folder, sorted, and the number of other files."""
    images, folders, n_others = [], [], 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir():
                    folders.append(entry.name)
                elif entry.name.lower().endswith(SUFFIXES):
                    images.append(entry.name)
                else:
                    n_others += 1
    except OSError as error:
        raise InvalidInputError(f"{folder}: cannot be opened ({error.strerror}).") from None
    return sorted(images), sorted(folders), n_others


def _inside(folder: Path, before: str = "") -> Iterator[tuple[list[str], int]]:
    """Yield the images of a folder and of the folders in it, which links are not followed to."""
    images, folders, n_others = _listed(folder)
    yield [before + name for name in images], n_others
    for name in folders:
        if not (folder / name).is_symlink():
            yield from _inside(folder / name, f"{before}{name}/")


@contextmanager
def _opened(path: Path, limits: Limits) -> Iterator[Any]:
    """Open an image; any error of the decoder becomes one that names the file."""
    from PIL import Image

    with open_regular(path, limits) as file:
        try:
            with Image.open(file, formats=_FORMATS) as image:
                yield image
        except (RatoonError, MemoryError):
            raise
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            raise FormatError(f"{path}: the image is too large to be opened: {error}") from None
        except Exception as error:  # decoders raise errors of any kind for damaged files
            raise FormatError(
                f"{path}: not a complete image ({error}); remove it, or copy it again."
            ) from None


def _surveyed(found: ImageFiles, limits: Limits) -> tuple[list[tuple[int, int]], list[str]]:
    """Return size and mode of all images from their headers, without decoding them."""
    from PIL import Image

    sizes, modes = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        for name in found.names:
            with _opened(found.folder / name, limits) as image:
                if image.mode not in _GRAY | _COLOUR:
                    raise FormatError(
                        f"{found.folder / name}: pixels of mode {image.mode} do not fit into 8 bits"
                        " per channel; convert the image."
                    )
                sizes.append((int(image.size[0]), int(image.size[1])))
                modes.append(str(image.mode))
    return sizes, modes


def _common_size(found: ImageFiles, sizes: list[tuple[int, int]]) -> tuple[int, int]:
    counts = Counter(sizes)
    if len(counts) == 1:
        return sizes[0]
    usual = counts.most_common(1)[0][0]
    other = next(k for k, size in enumerate(sizes) if size != usual)
    raise InvalidInputError(
        f"{found.folder}: the images have {len(counts)} sizes: {found.names[other]} has"
        f" {sizes[other][0]} x {sizes[other][1]} pixels, {counts[usual]} images have"
        f" {usual[0]} x {usual[1]}.\n"
        f"  Pass size='{usual[0]}x{usual[1]}' to resize all of them."
    )


def _mode(found: ImageFiles, modes: list[str], color: str) -> str:
    if color != "auto":
        return "L" if color == "gray" else "RGB"
    del found
    return "L" if set(modes) <= _GRAY else "RGB"


def _in_threads(work: Any, items: range) -> None:
    n_threads = min(len(items), os.cpu_count() or 1, 8)
    if n_threads <= 1:
        for item in items:
            work(item)
        return
    import joblib

    # Decoding releases the lock of the interpreter.
    joblib.Parallel(n_jobs=n_threads, prefer="threads")(joblib.delayed(work)(k) for k in items)

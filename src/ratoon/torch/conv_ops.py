"""Operators for convolutions: windows of a few images at a time, and the sparse kernel on them.

All windows of a batch at once would be ``height * width`` of the kernel times as large as the
images, too large for the caches and for memory.  A few images' windows fit; the backward pass lays
them out again instead of keeping them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import fold, unfold

from ratoon import kernels
from ratoon.kernels import Rule
from ratoon.torch.gradients import register_gradients
from ratoon.torch.handles import handle_of
from ratoon.torch.rows import as_array, padded_size

Geometry = list[int]
"""Height and width of: kernel, stride, padding, dilation."""

NUMBERS_AT_ONCE = 2**19


def image_size(height: int, width: int, geometry: Geometry) -> tuple[int, int]:
    """Return height and width of the output for an image of that size.

    Examples
    --------
    >>> image_size(8, 8, [3, 3, 1, 1, 0, 0, 1, 1])
    (6, 6)
    """
    sizes = [
        (size + 2 * geometry[4 + k] - geometry[6 + k] * (geometry[k] - 1) - 1) // geometry[2 + k]
        + 1
        for k, size in enumerate((height, width))
    ]
    return sizes[0], sizes[1]


def _arguments(geometry: Geometry) -> dict[str, tuple[int, int]]:
    names = ("kernel_size", "stride", "padding", "dilation")
    return {name: (geometry[2 * k], geometry[2 * k + 1]) for k, name in enumerate(names)}


def _groups(x: torch.Tensor, n_windows: int, geometry: Geometry) -> Iterator[slice]:
    """Yield so many images at a time that their windows fit the cache."""
    per_image = max(1, x.shape[1] * geometry[0] * geometry[1] * n_windows)
    size = max(1, NUMBERS_AT_ONCE // per_image)
    for first in range(0, x.shape[0], size):
        yield slice(first, min(first + size, x.shape[0]))


def _rows(images: torch.Tensor) -> NDArray[Any]:
    """Turn (images, neurons, places) into neurons x (images, places), padded."""
    n_images, n_neurons, n_places = images.shape
    columns = n_images * n_places
    lanes = padded_size(columns)
    source = images.detach().numpy()
    if lanes == columns and n_images == 1:
        return np.ascontiguousarray(source[0])
    rows = np.empty((n_neurons, lanes), dtype=source.dtype)
    rows[:, :columns].reshape(n_neurons, n_images, n_places)[:] = source.transpose(1, 0, 2)
    rows[:, columns:] = 0
    return rows


def _images(rows: NDArray[Any], n_images: int) -> torch.Tensor:
    """Turn neurons x (images, places, padding) into (images, neurons, places), as a view."""
    return torch.from_numpy(rows).reshape(rows.shape[0], n_images, -1).transpose(0, 1)


@torch.library.custom_op("ratoon::conv2d", mutates_args=(), device_types="cpu")
def conv2d(
    x: torch.Tensor,
    values: torch.Tensor,
    bias: torch.Tensor | None,
    grid: torch.Tensor,
    starts: torch.Tensor,
    packed: torch.Tensor,
    token: torch.Tensor,
    n_out: int,
    geometry: list[int],
) -> torch.Tensor:
    """Return the convolution of (images, channels, height, width)."""
    height, width = image_size(x.shape[2], x.shape[3], geometry)
    topology = handle_of(token).topology((grid, starts, packed))
    weights = as_array(values)
    b = np.zeros(n_out, dtype=weights.dtype) if bias is None else as_array(bias)
    out = x.new_empty((x.shape[0], n_out, height * width))
    for part in _groups(x, height * width, geometry):
        rows = _rows(unfold(x[part], **_arguments(geometry)))
        found = kernels.forward(topology, weights, b, rows, n_threads=torch.get_num_threads())
        n_images = part.stop - part.start
        out[part] = _images(found[:, : n_images * height * width], n_images)
    return out.reshape(x.shape[0], n_out, height, width)


@conv2d.register_fake
def _(x: torch.Tensor, values: torch.Tensor, *others: Any) -> torch.Tensor:
    n_out, geometry = others[-2:]
    return x.new_empty((x.shape[0], n_out, *image_size(x.shape[2], x.shape[3], geometry)))


@torch.library.custom_op("ratoon::conv2d_backward", mutates_args=(), device_types="cpu")
def conv2d_backward(
    d_out: torch.Tensor,
    x: torch.Tensor,
    values: torch.Tensor,
    grid: torch.Tensor,
    starts: torch.Tensor,
    packed: torch.Tensor,
    token: torch.Tensor,
    geometry: list[int],
    with_d_x: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of the values and, where wanted, of the images."""
    handle = handle_of(token)
    topology = handle.topology((grid, starts, packed))
    weights, how = as_array(values), _arguments(geometry)
    n_windows = d_out.shape[2] * d_out.shape[3]
    total = np.zeros_like(weights)
    gradient = np.empty_like(weights)
    d_x = torch.empty_like(x, memory_format=torch.contiguous_format) if with_d_x else x.new_empty(0)
    for part in _groups(x, n_windows, geometry):
        rows, errors = _rows(unfold(x[part], **how)), _rows(d_out[part].flatten(2))
        d_rows = kernels.backward(
            topology,
            Rule.STORE,
            weights,
            rows,
            errors,
            first=gradient,
            with_dx=with_d_x,
            n_threads=torch.get_num_threads(),
        )
        total += gradient
        if handle.listening:
            handle.heard.append((rows, errors))
        if d_rows is not None:
            n_images = part.stop - part.start
            windows = _images(d_rows[:, : n_images * n_windows], n_images)
            d_x[part] = fold(windows, (x.shape[2], x.shape[3]), **how)
    return torch.from_numpy(total), d_x


@conv2d_backward.register_fake
def _(
    d_out: torch.Tensor, x: torch.Tensor, values: torch.Tensor, *others: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    with_d_x = others[-1]
    d_x = torch.empty_like(x, memory_format=torch.contiguous_format)
    return torch.empty_like(values), d_x if with_d_x else x.new_empty(0)


register_gradients(conv2d, conv2d_backward, bias_sums_over=(0, 2, 3))

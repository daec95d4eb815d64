"""SparseConv2d: a convolution with few connections per output channel, and its operators.

The windows of a whole batch would take ``kernel height * width`` times the memory of the images.
They are therefore laid out for a few images at a time, and again in the backward pass instead of
being stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import fold, unfold

from ratoon import kernels
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.kernels import Rule
from ratoon.torch.connections import SparseConnections
from ratoon.torch.handles import handle_of
from ratoon.torch.ops import as_array, padded_size, register_gradients

Geometry = list[int]
"""Height and width of: kernel, stride, padding, dilation."""

NUMBERS_AT_ONCE = 2**19


def image_size(height: int, width: int, geometry: Geometry) -> tuple[int, int]:
    """Return height and width of the output for an image.

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
    """Yield slices of images whose windows fit the cache."""
    per_image = max(1, x.shape[1] * geometry[0] * geometry[1] * n_windows)
    size = max(1, NUMBERS_AT_ONCE // per_image)
    for first in range(0, x.shape[0], size):
        yield slice(first, min(first + size, x.shape[0]))


def _rows(images: torch.Tensor) -> NDArray[Any]:
    """Reorder (images, neurons, pixels) to neurons x (images, pixels), padded."""
    n_images, n_neurons, n_pixels = images.shape
    columns = n_images * n_pixels
    lanes = padded_size(columns)
    source = images.detach().numpy()
    if lanes == columns and n_images == 1:
        return np.ascontiguousarray(source[0])
    rows = np.empty((n_neurons, lanes), dtype=source.dtype)
    rows[:, :columns].reshape(n_neurons, n_images, n_pixels)[:] = source.transpose(1, 0, 2)
    rows[:, columns:] = 0
    return rows


def _images(rows: NDArray[Any], n_images: int) -> torch.Tensor:
    """View neurons x (images, pixels) as (images, neurons, pixels)."""
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
    """Return the gradients of the values and, if ``with_d_x``, of the images."""
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
        if handle.recording:
            handle.recorded.append((rows, errors))
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


Pair = tuple[int, int]


class SparseConv2d(SparseConnections):
    """A convolution over images in which an output channel is connected to parts of its window.

    A window of ``in_channels * height * width`` numbers is the input of a sparse linear layer,
    which is applied to every window of every image.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of each input and output image.
    kernel_size, stride, padding, dilation : int or tuple of two int
        As for `torch.nn.Conv2d`.  Padding is by zeros; there are no groups.
    density, epsilon, bias, seed, start, init, device, dtype
        As for `SparseLinear`.

    Notes
    -----
    Before the sparse product, windows are copied to consecutive memory, which takes the same time
    at any density; dense convolutions do not need this step.  So this layer always saves
    parameters, but time only with many channels on small images: by the table in
    `docs/in-pytorch.md`, at densities up to 0.1 with 128 channels or 0.2 with 256, and never with
    64 channels on images of 32 x 32.

    Examples
    --------
    >>> conv = SparseConv2d(16, 32, 3, density=0.05)
    >>> conv
    SparseConv2d(16, 32, kernel_size=(3, 3), connections=230, density=0.0499, bias=True)
    >>> conv(torch.zeros(2, 16, 8, 8)).shape
    torch.Size([2, 32, 6, 6])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Pair,
        stride: int | Pair = 1,
        padding: int | Pair = 0,
        dilation: int | Pair = 1,
        *,
        density: float | None = None,
        epsilon: float | None = None,
        bias: bool = True,
        seed: int = 0,
        start: str = "exact",
        init: str = "he",
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        height, width = _pair(kernel_size)
        self._draw(
            (in_channels * height * width, out_channels),
            density=density,
            epsilon=epsilon,
            bias=bias,
            seed=seed,
            start=start,
            init=init,
            device=device,
            dtype=dtype,
        )
        self._set_geometry(in_channels, out_channels, kernel_size, stride, padding, dilation)

    def _set_geometry(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Pair,
        stride: int | Pair,
        padding: int | Pair,
        dilation: int | Pair,
    ) -> None:
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = _pair(kernel_size), _pair(stride)
        self.padding, self.dilation = _pair(padding), _pair(dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the convolution of images, (batch, channels, height, width) or one image."""
        if x.ndim == 3:
            return self.forward(x[None])[0]
        if x.ndim != 4 or x.shape[1] != self.in_channels:
            raise InvalidInputError(
                f"the layer takes images of {self.in_channels} channels, got an input of shape"
                f" {tuple(x.shape)}."
            )
        return conv2d(
            self.cast_input(x),
            self.values,
            self.bias,
            self.grid,
            self.starts,
            self.packed,
            self._token,
            self.out_channels,
            [*self.kernel_size, *self.stride, *self.padding, *self.dilation],
        )

    @classmethod
    def from_dense(
        cls,
        dense: torch.nn.Conv2d,
        density: float | None = None,
        *,
        epsilon: float | None = None,
    ) -> SparseConv2d:
        """Return a layer with the largest weights of a dense convolution and its bias."""
        if dense.groups != 1 or dense.padding_mode != "zeros" or isinstance(dense.padding, str):
            raise InvalidParameterError(
                "SparseConv2d: groups, padding modes other than zeros and padding given by name are"
                f" not supported; got {dense}."
            )
        layer = cls.__new__(cls)
        layer._keep_largest(dense, density, epsilon)
        layer._set_geometry(
            dense.in_channels,
            dense.out_channels,
            dense.kernel_size,
            dense.stride,
            dense.padding,
            dense.dilation,
        )
        return layer

    def to_dense(self) -> torch.nn.Conv2d:
        """Return a dense convolution with the same weights, and 0 elsewhere."""
        dense: torch.nn.Conv2d = self._filled(
            torch.nn.Conv2d,
            self.in_channels,
            self.out_channels,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
        )
        return dense

    def extra_repr(self) -> str:
        """Return the text between the parentheses of the repr."""
        changed = [
            f"{name}={getattr(self, name)}"
            for name, usual in (("stride", (1, 1)), ("padding", (0, 0)), ("dilation", (1, 1)))
            if getattr(self, name) != usual
        ]
        return ", ".join(
            [
                f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}",
                *changed,
                f"connections={self.n_connections}, density={self.density:.3g}",
                f"bias={self.bias is not None}",
            ]
        )


def _pair(size: int | Pair) -> Pair:
    both = (size, size) if isinstance(size, int | np.integer) else tuple(size)
    if len(both) != 2:
        raise InvalidParameterError(f"a size must be one or two integers, got {size!r}.")
    return int(both[0]), int(both[1])

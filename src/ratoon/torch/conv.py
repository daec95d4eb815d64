"""SparseConv2d: a convolution with few of its kernel's positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.torch.connections import SparseConnections
from ratoon.torch.conv_ops import conv2d

Pair = tuple[int, int]


class SparseConv2d(SparseConnections):
    """A convolution over images in which an output channel sees few positions of its window.

    The window of ``in_channels * height * width`` positions is the input of a sparse linear
    layer, applied to every window of every image.

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
    Before the sparse product, windows are laid out in memory, which costs the same at any density;
    dense convolutions need no such step and run near the processor's peak.  So this layer always
    saves parameters, but time only with many channels on small images: by the table in
    `docs/in-pytorch.md`, from a tenth of 128 channels or a fifth of 256 down, and not at all with
    64 channels on images of 32 x 32.  Windows are laid out for a few images at a time (at least
    one), and again in the backward pass instead of being kept.

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
            self.of_my_type(x),
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
        """Keep the largest weights of a dense convolution, by magnitude, and its bias."""
        if dense.groups != 1 or dense.padding_mode != "zeros" or isinstance(dense.padding, str):
            raise InvalidParameterError(
                "SparseConv2d: convolutions with groups, other padding than by zeros, or padding"
                f" given by name have no sparse twin; got {dense}."
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
        """Return a dense convolution with the same weights, and 0 at all other positions."""
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
        """Return what stands between the parentheses when the module is printed."""
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
        raise InvalidParameterError(f"one number or two are needed, got {size!r}.")
    return int(both[0]), int(both[1])

"""SparseConnections: the base class of all sparse layers, and conversion from dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.initialise import connections_wanted
from ratoon.layers import make_layer
from ratoon.topology import Topology
from ratoon.torch.eager import apply_eagerly, is_eager
from ratoon.torch.handles import TopologyBuffers, TopologyHandle, buffers_of, checked_topology
from ratoon.torch.ops import lies_in_rows, linear, to_rows


def largest_entries(
    weight: NDArray[Any], *, density: float | None = None, epsilon: float | None = None
) -> tuple[Topology, NDArray[Any]]:
    """Return the topology of the largest entries of a matrix, inputs x outputs, and the entries.

    Examples
    --------
    >>> topology, values = largest_entries(np.array([[1.0, -5.0], [3.0, 0.0]]), density=0.5)
    >>> topology.rows.tolist(), topology.columns.tolist(), values.tolist()
    ([1, 0], [0, 1], [3.0, -5.0])
    """
    shape = (weight.shape[0], weight.shape[1])
    count = connections_wanted(shape, density=density, epsilon=epsilon)
    magnitude = np.abs(weight).ravel()
    smaller = magnitude.size - count
    positions = np.argpartition(magnitude, smaller)[smaller:] if smaller else np.arange(count)
    topology = Topology.from_positions(shape, positions)
    return topology, np.ascontiguousarray(weight[topology.pairs()])


def as_values(array: Any) -> NDArray[Any]:
    """Return an array that kernels accept; writable float32 and float64 arrays are not copied.

    Examples
    --------
    >>> as_values([1, 2]).dtype
    dtype('float32')
    """
    given = np.asarray(array)
    kind = given.dtype if given.dtype in (np.float32, np.float64) else np.dtype(np.float32)
    values = np.ascontiguousarray(given, dtype=kind)
    return values if values.flags.writeable else values.copy()


def numpy_dtype(dtype: torch.dtype | None) -> np.dtype[Any]:
    """Return the NumPy equivalent of a PyTorch type, float32 or float64.

    Examples
    --------
    >>> numpy_dtype(torch.float64)
    dtype('float64')
    """
    kind = torch.get_default_dtype() if dtype is None else dtype
    if kind not in (torch.float32, torch.float64):
        raise InvalidParameterError(f"sparse layers compute in float32 or float64, not {kind}.")
    return np.dtype(np.float64 if kind == torch.float64 else np.float32)


def check_device(device: Any, owner: str) -> None:
    """Raise unless the device is the CPU.

    Examples
    --------
    >>> check_device("cpu", "SparseLinear")
    """
    if device is not None and torch.device(device).type != "cpu":
        raise InvalidParameterError(
            f"{owner}: `device` must be the CPU, got {device!r}.\n"
            "  Its kernels run on the CPU only; keep the layer there and move its input and output."
        )


BUFFERS = ("grid", "starts", "packed")


class SparseConnections(torch.nn.Module):
    """Base class of sparse layers: weighted connections and a bias per output.

    Attributes
    ----------
    values : torch.nn.Parameter
        The weights, one per connection, in the order of the topology's slots.
    bias : torch.nn.Parameter or None
        One number per output.
    grid, starts, packed : torch.Tensor
        Buffers that describe the topology.  They may be edited or replaced; they are checked
        before native code uses them again.

    Notes
    -----
    Memory per connection: 4 bytes each for the weight and its gradient (8 in float64), 4 for the
    buffer of indices and 4 for the checked copy that native code reads.
    """

    values: torch.nn.Parameter
    bias: torch.nn.Parameter | None
    grid: torch.Tensor
    starts: torch.Tensor
    packed: torch.Tensor

    def __init__(
        self,
        topology: Topology,
        values: NDArray[Any],
        bias: NDArray[Any] | None,
        *,
        init: str = "he",
    ) -> None:
        super().__init__()
        weights = as_values(values)
        _check_size("values", weights, topology.n_connections)
        self.init = init
        self.values = torch.nn.Parameter(torch.from_numpy(weights))
        if bias is None:
            self.register_parameter("bias", None)
        else:
            offset = np.ascontiguousarray(bias, dtype=weights.dtype)
            _check_size("bias", offset, topology.shape[1])
            self.bias = torch.nn.Parameter(torch.from_numpy(offset))
        for name, tensor in zip(BUFFERS, buffers_of(topology), strict=True):
            self.register_buffer(name, tensor)
        self._new_handle()
        self.handle.adopt(topology, self._buffers_now())

    def _draw(
        self,
        shape: tuple[int, int],
        *,
        bias: bool,
        init: str,
        device: Any,
        dtype: torch.dtype | None,
        **how: Any,
    ) -> None:
        """Initialise with the topology and weights that `make_layer` draws for a shape."""
        check_device(device, type(self).__name__)
        layer = make_layer(
            shape, init=init, dtype=numpy_dtype(dtype), n_threads=torch.get_num_threads(), **how
        )
        SparseConnections.__init__(
            self, layer.topology, layer.weights, layer.bias if bias else None, init=init
        )

    def _keep_largest(
        self,
        dense: torch.nn.Linear | torch.nn.Conv2d,
        density: float | None,
        epsilon: float | None,
    ) -> None:
        """Initialise with the largest weights of a dense layer and its bias."""
        weight = dense.weight.detach().cpu().numpy().reshape(dense.weight.shape[0], -1).T
        topology, values = largest_entries(weight, density=density, epsilon=epsilon)
        bias = None if dense.bias is None else dense.bias.detach().cpu().numpy().copy()
        SparseConnections.__init__(self, topology, values, bias)

    def _filled(self, kind: Any, *sizes: Any) -> Any:
        """Return a dense layer of a type and size with these weights, and 0 elsewhere."""
        # Default initialisation would draw from the global generator, only to be overwritten.
        dense = torch.nn.utils.skip_init(
            kind, *sizes, bias=self.bias is not None, dtype=self.values.dtype
        )
        inputs, outputs = (torch.from_numpy(array) for array in self.topology.pairs())
        with torch.no_grad():
            dense.weight.zero_()
            dense.weight.view(dense.weight.shape[0], -1)[outputs, inputs] = self.values
            if self.bias is not None:
                dense.bias.copy_(self.bias)
        return dense

    # ------------------------------------------------------------------------------- topology

    @property
    def topology(self) -> Topology:
        """The checked topology."""
        return self.handle.topology(self._buffers_now())

    @topology.setter
    def topology(self, topology: Topology) -> None:
        # In place where possible, so that a graph that still needs the old indices detects it.
        for name, tensor in zip(BUFFERS, buffers_of(topology), strict=True):
            old = getattr(self, name)
            if old.shape == tensor.shape:
                old.copy_(tensor)
            else:
                setattr(self, name, tensor)
        self.handle.adopt(topology, self._buffers_now())

    @property
    def n_connections(self) -> int:
        """The number of connections."""
        return int(self.values.numel())

    @property
    def density(self) -> float:
        """Connections divided by positions."""
        return self.n_connections / int(self.grid[0] * self.grid[1])

    def to_scipy(self) -> Any:
        """Return the weights as a SciPy CSR matrix, inputs x outputs.

        Entries that are 0 stay stored: they are connections.
        """
        return self.topology.to_csr(self.values.detach().numpy().copy())

    def extra_repr(self) -> str:
        """Return the text between the parentheses of the repr."""
        n_in, n_out = self.grid[:2].tolist()
        return (
            f"{n_in}, {n_out}, connections={self.n_connections}, density={self.density:.3g},"
            f" bias={self.bias is not None}"
        )

    # ------------------------------------------------------------------------------ computation

    def apply_to_samples(self, x: torch.Tensor, n_out: int) -> torch.Tensor:
        """Return ``W x + b`` for samples x inputs, as a transposed view of rows of outputs."""
        x = self.cast_input(x)
        values, bias = self.values, self.bias
        if is_eager(x, values) if bias is None else is_eager(x, values, bias):
            return apply_eagerly(x, values, bias, self._buffers_now(), self.handle)
        rows = x.t() if lies_in_rows(x) else to_rows(x)
        out = linear(rows, values, bias, self.grid, self.starts, self.packed, self._token, n_out)
        return (out if out.shape[1] == x.shape[0] else out[:, : x.shape[0]]).t()

    def cast_input(self, x: torch.Tensor) -> torch.Tensor:
        """Return the input in the type of the weights; only autocast may convert it."""
        if self.values.dtype not in (torch.float32, torch.float64):
            raise InvalidInputError(
                f"the layer's weights are {self.values.dtype}, but sparse layers compute in float32"
                " or float64.\n"
                "  Convert the layer back with `.float()`, and use `torch.autocast` to run the rest"
                " of the model in half precision."
            )
        if x.dtype != self.values.dtype and torch.is_autocast_enabled("cpu"):
            x = x.to(self.values.dtype)
        if x.dtype != self.values.dtype:
            raise InvalidInputError(
                f"the layer's weights are {self.values.dtype}, its input is {x.dtype}."
                " Convert one of the two with `.to(dtype)`."
            )
        return x

    # -------------------------------------------------------------------- loading and copying

    def _buffers_now(self) -> TopologyBuffers:
        return self.grid, self.starts, self.packed

    def _new_handle(self) -> None:
        self.handle = TopologyHandle()
        # Not a buffer: it belongs to this object in this process, not to the model.
        self._token = self.handle.token

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_token"]
        state["handle"] = self.handle.recording  # a copy gets a new handle
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        recording = bool(self.handle)
        self._new_handle()
        self.handle.recording = recording

    def _load_from_state_dict(
        self,
        state_dict: dict[str, torch.Tensor],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load the topology first, and resize the values to it."""
        names = [prefix + name for name in (*BUFFERS, "values")]
        if all(name in state_dict for name in names):
            try:
                self._resize_for(*(state_dict[name] for name in names))
            except InvalidInputError as error:
                error_msgs.append(f"{prefix.rstrip('.') or 'the sparse layer'}: {error}")
                return
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _resize_for(
        self,
        grid: torch.Tensor,
        starts: torch.Tensor,
        packed: torch.Tensor,
        values: torch.Tensor,
    ) -> None:
        topology = checked_topology((grid.cpu(), starts.cpu(), packed.cpu()))
        shape = (int(self.grid[0]), int(self.grid[1]))
        if topology.shape != shape:
            raise InvalidInputError(
                f"the state has a topology of shape {topology.shape}; the layer's shape is {shape}."
            )
        if values.shape != (topology.n_connections,):
            raise InvalidInputError(
                f"the topology has {topology.n_connections} connections, but `values` is a tensor"
                f" of shape {tuple(values.shape)}."
            )
        self.topology = topology
        if values.shape != self.values.shape:
            resize(self.values, torch.zeros(values.shape, dtype=self.values.dtype))


def _check_size(name: str, array: NDArray[Any], size: int) -> None:
    if array.shape != (size,):
        raise InvalidInputError(
            f"`{name}` must be an array of {size} numbers, got one of shape {array.shape}."
        )


def resize(parameter: torch.nn.Parameter, data: torch.Tensor) -> None:
    """Replace the data of a parameter by data of another size, keeping the same object."""
    parameter.grad = None
    # A live graph may hold a gradient accumulator of the old size, and new graphs would share it.
    # PyTorch drops the accumulator when the type of the data changes, not when its size does.
    other = torch.float64 if data.dtype == torch.float32 else torch.float32
    parameter.data = torch.empty(0, dtype=other)
    parameter.data = data

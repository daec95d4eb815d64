"""Edges per second in networks of the shape of the Sparse DNN Graph Challenge.

This is not an official run: the networks are generated here, and the images are those of the
MNIST file given.  The shape is that of Kepner et al. (2019, arXiv:1909.05631): 120 layers of 1,024
or 4,096 neurons with 32 connections each, all weights 1/16, biases -0.3 and -0.35, activations
clipped to [0, 32]; images are scaled to the number of neurons and thresholded.  A category is a
sample whose last activations are not all zero.

Connections follow the mixed-radix rule of RadiX-Nets: neuron j of a layer has the inputs
j + k * s modulo n for k = 0 .. 31, where s takes turns from layer to layer (1 and 32; 1, 32 and 128
for 4,096).  Edges per second are inputs x connections / seconds of wall time, whatever is skipped.
SciPy, GraphBLAS and torch multiply all samples by one matrix after another, and drop samples that
are all zero once per layer with `--drop`, as most official entries do.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common.machine import MachineState
from common.tables import markdown, numbers, parser, write_json

EXAMPLES = """\
  graph_challenge.py --mnist ../shared/data/mnist.npz --json graph_challenge.json
  graph_challenge.py --neurons 1024 --inputs 1000 --layers 24 --others ""
"""
WEIGHT, CAP, FAN_IN = 1 / 16, 32.0, 32
BIASES = {1024: -0.3, 4096: -0.35}
STRIDES = {1024: (1, 32), 4096: (1, 32, 128)}
DATA = Path(__file__).parents[2] / "shared" / "data" / "mnist.npz"


def images(path: Path, neurons: int, count: int) -> np.ndarray:
    """Return thresholded images of 0 and 1, scaled to as many pixels as there are neurons."""
    if path.exists():
        pixels = np.load(path)["X"][:count].reshape(-1, 28, 28)
    else:
        print(f"{path} is not there: random strokes instead of MNIST")
        rng = np.random.default_rng(0)
        pixels = np.zeros((count, 28, 28), dtype=np.uint8)
        for image in pixels:
            column = rng.integers(8, 20)
            image[5:23, column : column + rng.integers(2, 6)] = 255
    side = round(neurons**0.5)
    index = np.arange(side) * 28 // side
    scaled = pixels[:, index][:, :, index] > 127
    repeats = -(-count // len(scaled))
    return np.tile(scaled.reshape(len(scaled), -1), (repeats, 1))[:count].astype(np.float32)


def sources(neurons: int, layer: int) -> np.ndarray:
    """Return the inputs of every neuron of a layer, neurons x 32."""
    stride = STRIDES[neurons][layer % len(STRIDES[neurons])]
    return (np.arange(neurons)[:, None] + stride * np.arange(FAN_IN)) % neurons


def matrices(neurons: int, layers: int) -> list[sp.csr_matrix]:
    """Return the layers as outputs x inputs."""
    starts = np.arange(neurons + 1) * FAN_IN
    values = np.full(neurons * FAN_IN, WEIGHT, dtype=np.float32)
    made = []
    for layer in range(layers):
        matrix = sp.csr_matrix(
            (values, sources(neurons, layer).ravel(), starts), shape=(neurons, neurons)
        )
        matrix.sort_indices()
        made.append(matrix)
    return made


def ratoon_run(neurons: int, layers: int, threads: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from images to the last activations."""
    from ratoon.kernels import NativeNetwork, as_samples
    from ratoon.samples.in_memory import wrap
    from ratoon.topology import Topology

    network = NativeNetwork(np.float32, "squared_error", threads)
    bias = np.full(neurons, BIASES[neurons], dtype=np.float32)
    outputs = np.repeat(np.arange(neurons), FAN_IN)
    for layer in range(layers):
        topology = Topology.from_pairs((neurons, neurons), sources(neurons, layer).ravel(), outputs)
        weights = np.full(topology.n_connections, WEIGHT, dtype=np.float32)
        network.add_layer(topology, weights, bias, activation="relu32")
    return lambda x: network.predict(as_samples(wrap(x), np.dtype(np.float32)))


def scipy_run(neurons: int, layers: int, threads: int, *, drop: bool) -> Callable[..., np.ndarray]:
    """Return the same with SciPy, on one thread; activations are dense."""
    del threads
    chain = matrices(neurons, layers)
    bias = np.float32(BIASES[neurons])

    def run(x: np.ndarray) -> np.ndarray:
        out = np.zeros_like(x)
        left, y = np.arange(len(x)), np.ascontiguousarray(x.T)
        for matrix in chain:
            y = np.clip(matrix @ y + bias, 0, CAP)
            if drop:
                alive = y.any(axis=0)
                left, y = left[alive], np.ascontiguousarray(y[:, alive])
        out[left] = y.T
        return out

    return run


def torch_run(neurons: int, layers: int, threads: int, *, drop: bool) -> Callable[..., np.ndarray]:
    """Return the same with CSR matrices of PyTorch."""
    import torch

    torch.set_num_threads(threads)
    chain = [
        torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int32)),
            torch.from_numpy(matrix.indices.astype(np.int32)),
            torch.from_numpy(matrix.data),
            size=matrix.shape,
        )
        for matrix in matrices(neurons, layers)
    ]
    bias = BIASES[neurons]

    def run(x: np.ndarray) -> np.ndarray:
        out = np.zeros_like(x)
        left, y = np.arange(len(x)), torch.from_numpy(np.ascontiguousarray(x.T))
        for matrix in chain:
            y = (matrix @ y).add_(bias).clamp_(0, CAP)
            if drop:
                alive = y.any(dim=0)
                left, y = left[alive.numpy()], y[:, alive].contiguous()
        out[left] = y.numpy().T
        return out

    return run


def graphblas_run(
    neurons: int, layers: int, threads: int, *, drop: bool
) -> Callable[..., np.ndarray]:
    """Return the same with SuiteSparse:GraphBLAS, whose activations are sparse: zeros drop out."""
    del drop
    import graphblas as gb
    from graphblas import Matrix, semiring

    gb.ss.config["nthreads"] = threads
    chain = [gb.io.from_scipy_sparse(matrix.T.tocsr()) for matrix in matrices(neurons, layers)]
    bias = BIASES[neurons]

    def run(x: np.ndarray) -> np.ndarray:
        y = gb.io.from_scipy_sparse(sp.csr_matrix(x))
        for matrix in chain:
            product = Matrix(gb.dtypes.FP32, y.nrows, matrix.ncols)
            product << y.mxm(matrix, semiring.plus_times)
            product << product.apply(gb.binary.plus, right=bias)
            y = product.select("valuegt", 0.0).new()
            y << y.apply(gb.binary.min, right=CAP)
        return gb.io.to_scipy_sparse(y).toarray()

    return run


OTHERS = {"scipy": scipy_run, "graphblas": graphblas_run, "torch": torch_run}


def seconds(run: Callable[[np.ndarray], np.ndarray], x: np.ndarray, repeats: int) -> float:
    """Return the least wall time of several runs."""
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        run(x)
        best = min(best, time.perf_counter() - started)
    return best


def measure(neurons: int, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row per implementation."""
    layers = arguments.layers
    x = images(arguments.mnist, neurons, arguments.inputs)
    edges = neurons * FAN_IN * layers
    checked = x[: arguments.check]
    expected = scipy_run(neurons, layers, 1, drop=False)(checked)
    runs: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "ratoon": ratoon_run(neurons, layers, arguments.threads)
    }
    for name in arguments.others:
        for drop in (False, True) if name != "graphblas" else (False,):
            label = f"{name}, drops samples" if drop else name
            try:
                runs[label] = OTHERS[name](neurons, layers, arguments.threads, drop=drop)
            except ImportError as error:
                print(f"{name} is left out: {error}")
    rows = []
    for name, run in runs.items():
        found = run(checked)
        categories = bool(np.array_equal(found.any(axis=1), expected.any(axis=1)))
        slow = name != "ratoon"
        part = x[: arguments.other_inputs] if slow else x
        taken = seconds(run, part, 1 if slow else arguments.repeats)
        rows.append(
            {
                "neurons": neurons,
                "layers": layers,
                "implementation": name,
                "inputs": len(part),
                "seconds": taken,
                "10^9 edges/s": len(part) * edges / taken / 1e9,
                "categories as SciPy's": "yes" if categories else "NO",
                "largest difference": float(np.abs(found - expected).max()),
            }
        )
        print(markdown(rows[-1:]).splitlines()[-1], flush=True)
    return rows


def main() -> None:
    """Measure and print one line per size and implementation."""
    options = parser(__doc__, EXAMPLES)
    options.add_argument("--mnist", type=Path, default=DATA, help="an .npz file with X")
    options.add_argument("--neurons", type=numbers, default=[1024, 4096])
    options.add_argument("--layers", type=int, default=120)
    options.add_argument("--inputs", type=int, default=10000)
    options.add_argument("--other-inputs", type=int, default=1000, help="for the others")
    options.add_argument("--check", type=int, default=200, help="samples compared with SciPy")
    options.add_argument(
        "--others",
        type=lambda text: [one for one in text.split(",") if one],
        default=list(OTHERS),
    )
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--repeats", type=int, default=3)
    arguments = options.parse_args()
    with MachineState() as machine:
        rows = [row for neurons in arguments.neurons for row in measure(neurons, arguments)]
    print(markdown(rows))
    write_json(arguments.json, {"rows": rows, "machine": machine.facts()})


if __name__ == "__main__":
    main()

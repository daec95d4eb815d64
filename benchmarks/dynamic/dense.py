"""Train one cell densely with PyTorch: same widths, start, minibatch size, rule and schedule."""

from __future__ import annotations

import math
import time
from itertools import pairwise
from typing import Any

import numpy as np

from dynamic.cells import Cell
from dynamic.pieces import Pieces
from dynamic.sets import Task
from dynamic.sparse import SCHEDULES, augment_of
from ratoon.rng import derive_generator


def network_of(widths: tuple[int, ...], dropout: float) -> Any:
    """Return a multilayer perceptron with He's start, as ratoon's networks have it."""
    from torch import nn

    layers: list[Any] = []
    for index, (n_in, n_out) in enumerate(pairwise(widths)):
        linear = nn.Linear(n_in, n_out)
        nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
        nn.init.zeros_(linear.bias)
        layers.append(linear)
        if index < len(widths) - 2:
            layers.append(nn.ReLU())
            if dropout:
                layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers)


def shifted(x: Any, augment: Any, generator: np.random.Generator) -> Any:
    """Return images of one minibatch, each shifted and flipped at random.

    >>> from ratoon import Augment
    >>> images = np.ones((2, 9), dtype=np.uint8)
    >>> shifted(images, Augment((3, 3), shift=1), np.random.default_rng(0)).shape
    (2, 9)
    """
    augment = augment.for_features(x.shape[1])
    planes, height, width, _ = augment.layout
    n, shift = x.shape[0], augment.shift
    images = x.reshape(n, planes, height, width)
    if augment.flip:
        flipped = generator.random(n) < 0.5
        images = np.where(flipped[:, None, None, None], images[..., ::-1], images)
    wide = np.pad(images, ((0, 0), (0, 0), (shift, shift), (shift, shift)))
    top, left = (generator.integers(2 * shift + 1, size=n) for _ in range(2))
    rows = (top[:, None] + np.arange(height))[:, None, :, None]
    columns = (left[:, None] + np.arange(width))[:, None, None, :]
    return wide[
        np.arange(n)[:, None, None, None], np.arange(planes)[:, None, None], rows, columns
    ].reshape(n, -1)


def train(cell: Cell, task: Task, pieces: Pieces = Pieces()) -> dict[str, Any]:  # noqa: B008
    """Train on one thread, and record after every epoch and at the end: CPU seconds, accuracy."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(cell.seed)
    recipe = cell.recipe
    assert recipe.activation == "relu", "dense networks have ReLU only"
    network = network_of(task.widths, recipe.dropout)
    parameters = list(network.parameters())
    if recipe.optimizer == "sgd":
        # One fused pass over the parameters: a quarter faster here than PyTorch's default.
        optimizer: Any = torch.optim.SGD(
            parameters, lr=0.1, momentum=0.9, weight_decay=recipe.weight_decay, fused=True
        )
    else:
        optimizer = torch.optim.AdamW(
            parameters, lr=0.1, weight_decay=recipe.weight_decay, fused=True
        )
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=recipe.smoothing)
    scaling = task.scaling()
    assert scaling.shift is not None
    assert scaling.scale is not None
    shift, scale = (values.astype(np.float32) for values in (scaling.shift, scaling.scale))

    def read(x: Any) -> Any:
        z = (x.astype(np.float32) - shift) * scale
        return torch.from_numpy(z.clip(-scaling.clip, scaling.clip) if scaling.clip else z)

    test, y_test, y = task.x[task.test], task.y[task.test], torch.from_numpy(task.y)
    per_epoch = math.ceil(task.train.size / recipe.batch)
    total = round(recipe.epochs * per_epoch)
    augment = augment_of(recipe.augment, task)
    random = derive_generator(cell.seed, "augment")
    seconds: list[float] = []
    accuracy: list[float] = []
    step = 0
    if reached := pieces.read(cell):
        seconds, accuracy, step = (reached[name] for name in ("seconds", "accuracy", "step"))
        network.load_state_dict(reached["network"])
        optimizer.load_state_dict(reached["optimizer"])
        torch.set_rng_state(reached["torch"])
        random.bit_generator.state = reached["random"]
    while step < total:
        order = derive_generator(cell.seed, "shuffle", step).permutation(task.train)
        started = time.process_time()
        network.train()
        for first in range(0, task.train.size, recipe.batch):
            if step == total:
                break
            rows = order[first : first + recipe.batch]
            for group in optimizer.param_groups:
                group["lr"] = recipe.learning_rate * SCHEDULES[recipe.schedule](step / total)
            x = task.x[rows] if augment is None else shifted(task.x[rows], augment, random)
            optimizer.zero_grad()
            loss = loss_of(network(read(x)), y[rows])
            loss.backward()
            optimizer.step()
            step += 1
        seconds.append(time.process_time() - started)
        network.eval()
        with torch.no_grad():
            blocks = [
                network(read(test[first : first + 500])).argmax(dim=1).numpy()
                for first in range(0, y_test.size, 500)
            ]
        accuracy.append(float(np.mean(np.concatenate(blocks) == y_test)))
        print(
            f"    epoch {len(seconds)}: {accuracy[-1]:.4f} in {seconds[-1]:.1f} CPU s", flush=True
        )
        if step < total and pieces.is_over:
            state = {
                "seconds": seconds,
                "accuracy": accuracy,
                "step": step,
                "network": network.state_dict(),
                "optimizer": optimizer.state_dict(),
                "torch": torch.get_rng_state(),
                "random": random.bit_generator.state,
            }
            pieces.stop(cell, state)
    n_connections = sum(a * b for a, b in pairwise(task.widths))
    n_numbers = n_connections + sum(task.widths[1:])
    return {
        "accuracy": accuracy,
        "seconds": seconds,
        "connections": [n_connections] * len(seconds),
        "final_connections": n_connections,
        "megabytes": 4 * (3 if recipe.optimizer == "sgd" else 4) * n_numbers / 1e6,
        "loss": [float(loss.detach())],
    }

"""Digits in PyTorch: an MLP and a small CNN, dense, with a fixed topology, with SET, with RigL."""

import time
from statistics import mean

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from ratoon.evolution import SET, RigL, Static
from ratoon.torch import Evolver, sparsify_

torch.set_num_threads(1)
EPOCHS, BATCH, DENSITY, SEEDS = 15, 64, 0.02, 3


def make_mlp():
    hidden = [nn.Linear(64, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU()]
    return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(1000, 10))


def make_cnn():
    convs = [nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU()]
    dense = [nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 10)]
    return nn.Sequential(*convs, *dense)


def train(make_model, strategy, seed):
    """Return the number of weights, the accuracy on test data and processor seconds per epoch."""
    torch.manual_seed(seed)
    images = torch.tensor(load_digits().images[:, None] / 16, dtype=torch.float32)
    labels = torch.tensor(load_digits().target)
    x, x_test, y, y_test = train_test_split(images, labels, test_size=0.3, random_state=seed)
    model = make_model()
    if strategy:
        skip = ["0", str(len(model) - 1)]  # few weights, and they matter
        sparsify_(model, density=DENSITY, skip=skip, convolutions=True, weights="new", seed=seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    steps = -(-len(x) // BATCH)
    length = {"total_steps": EPOCHS * steps, "steps_per_epoch": steps}
    evolver = Evolver(model, optimizer, strategy, seed=seed, **length) if strategy else None
    started = time.process_time()
    for rows in (part for _ in range(EPOCHS) for part in torch.randperm(len(x)).split(BATCH)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
        if evolver:
            evolver.step()
    seconds = (time.process_time() - started) / EPOCHS
    accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
    return sum(p.numel() for p in model.parameters()), accuracy, seconds


if __name__ == "__main__":
    for name, make_model in (("MLP", make_mlp), ("CNN", make_cnn)):
        for strategy in (None, Static(), SET(until=0.8, anneal="cosine"), RigL(every=30)):
            runs = [train(make_model, strategy, seed) for seed in range(SEEDS)]
            method = type(strategy).__name__ if strategy else "dense"
            print(f"{name}  {method:7} {runs[0][0]:9,d} weights  accuracy", end=" ")
            print(
                f"{mean(run[1] for run in runs):.3f}  {min(run[2] for run in runs):.3f} s per epoch"
            )

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
images, labels = load_digits(return_X_y=True)
DIGITS = torch.tensor(images / 16).float().reshape(-1, 1, 8, 8), torch.tensor(labels)
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
    x, x_test, y, y_test = train_test_split(*DIGITS, test_size=0.3, random_state=seed)
    model = make_model()
    if strategy:
        skip = ["0", str(len(model) - 1)]  # few weights, and they matter
        sparsify_(model, density=DENSITY, skip=skip, convolutions=True, weights="new", seed=seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    length = {"steps_per_epoch": (steps := len(x) // BATCH + 1), "total_steps": EPOCHS * steps}
    evolver = Evolver(model, optimizer, strategy, **length) if strategy else None
    started = time.process_time()
    for rows in (part for _ in range(EPOCHS) for part in torch.randperm(len(x)).split(BATCH)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
        _ = evolver and evolver.step()
    seconds = time.process_time() - started
    right = (model(x_test).argmax(1) == y_test).float().mean().item()
    return sum(p.numel() for p in model.parameters()), right, seconds / EPOCHS


if __name__ == "__main__":
    for name, make_model in (("MLP", make_mlp), ("CNN", make_cnn)):
        for strategy in (None, Static(), SET(until=0.8, anneal="cosine"), RigL(every=30)):
            runs = [train(make_model, strategy, seed) for seed in range(SEEDS)]
            weights, right, seconds = (mean(column) for column in zip(*runs, strict=True))
            method = f"{name} {type(strategy).__name__ if strategy else 'dense':7}"
            print(f"{method} {weights:11,.0f} weights {right:.3f} right {seconds:.3f} s per epoch")

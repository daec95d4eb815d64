"""Two ranks: torchrun --nproc-per-node=2 examples/torch_two_ranks.py

Every rank trains on its own samples.  DDP averages the gradients of the weights, and `Evolver`,
which gets the model wrapped by DDP, rewires all ranks identically: they print the same topology and
weights.  With one rank or two, a minibatch has the same samples, so the topology is the same (in
float64, where the order of sums hardly matters).
"""

import hashlib
import os
import sys

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel

from ratoon.evolution import SET, RigL
from ratoon.torch import Evolver, SparseLinear

STRATEGIES = {"SET": SET(0.3, grown="zero"), "RigL": RigL(0.3, every=20)}
BATCH, EPOCHS = 64, 5


def train(name, strategy):
    rank, size = dist.get_rank(), dist.get_world_size()
    digits = load_digits()
    x = torch.tensor(digits.data / 16)[rank::size]
    y = torch.tensor(digits.target)[rank::size]
    model = torch.nn.Sequential(
        SparseLinear(64, 300, density=0.1, seed=1),
        torch.nn.ReLU(),
        SparseLinear(300, 10, density=0.5, seed=2),
    )
    # Topologies are the same everywhere without sending them at every step.
    shared = DistributedDataParallel(model, broadcast_buffers=False)
    optimizer = torch.optim.SGD(shared.parameters(), lr=0.1, momentum=0.9)
    share, steps = BATCH // size, len(digits.data) // BATCH
    length = {"steps_per_epoch": steps, "total_steps": EPOCHS * steps}
    evolver = Evolver(shared, optimizer, strategy, **length)
    for step in range(EPOCHS * steps):
        rows = slice(step % steps * share, (step % steps + 1) * share)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(shared(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        evolver.step()
    topology = model[0].topology.content_hash()[:16]
    weights = hashlib.sha256()
    for layer in (model[0], model[2]):
        weights.update(layer.to_dense().weight.detach().numpy().tobytes())
    summary = f"topology {topology}, weights {weights.hexdigest()[:16]}"
    print(f"{name}, rank {rank} of {size}: {summary}\n", end="")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    for name, strategy in STRATEGIES.items():
        train(name, strategy)
    dist.destroy_process_group()
    # DDP keeps the group, and so gloo's threads, alive.  A thread that frees a tensor while Python
    # shuts down aborts the process (seen with torch 2.13 on Python 3.11): exit without it.
    sys.stdout.flush()
    os._exit(0)

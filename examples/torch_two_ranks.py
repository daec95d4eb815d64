"""Two ranks: torchrun --nproc-per-node=2 examples/torch_two_ranks.py

Every rank sees its own samples; DDP averages the gradients of the values, and `Evolver` rewires
all ranks alike because the seed and the weights are the same everywhere.
"""

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel

from ratoon.evolution import SET
from ratoon.torch import Evolver, SparseLinear


def main() -> None:
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = load_digits()
    x = torch.tensor(digits.data / 16, dtype=torch.float32)[rank::size]
    y = torch.tensor(digits.target)[rank::size]
    model = torch.nn.Sequential(
        SparseLinear(64, 300, density=0.1, seed=1),
        torch.nn.ReLU(),
        SparseLinear(300, 10, density=0.5, seed=2),
    )
    shared = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(shared.parameters(), lr=0.1, momentum=0.9)
    steps = len(x) // 32
    length = {"steps_per_epoch": steps, "total_steps": 5 * steps}
    evolver = Evolver(model, optimizer, SET(0.3, grown="zero"), **length)
    for _ in range(5):
        for k in range(steps):
            optimizer.zero_grad()
            batch = slice(32 * k, 32 * k + 32)
            loss = torch.nn.functional.cross_entropy(shared(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
            evolver.step()
    for layer in (model[0], model[2]):
        mine = layer.to_dense().weight.detach()
        of_rank_0 = mine.clone()
        dist.broadcast(of_rank_0, src=0)
        assert torch.equal(mine, of_rank_0), "ranks must hold the same network"
    print(f"rank {rank} of {size}: last loss {loss.item():.3f}, same network on all ranks")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Networks trained by several processes, and in one: how far their weights are apart, and what DDP does besides."""

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

STEPS, BATCH, BATCHES = 50, 16, 4


class Transformer(nn.Module):
    """Two layers of attention over tokens, and a classifier."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 3)

    def forward(self, tokens):
        return self.head(self.layers(self.tokens(tokens)).mean(dim=1))


def mlp():
    return nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 3))


def cnn():
    layers = nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.ReLU(), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(8 * 3 * 3, 3))


random = torch.Generator().manual_seed(1)
INPUTS = {
    "mlp": (mlp, torch.randn(BATCHES, BATCH, 10, generator=random)),
    "cnn": (cnn, torch.randn(BATCHES, BATCH, 1, 12, 12, generator=random)),
    "transformer": (Transformer, torch.randint(0, 20, (BATCHES, BATCH, 6), generator=random)),
}
LABELS = torch.randint(0, 3, (BATCHES, BATCH), generator=random)


def weights(model):
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


def trained(name, mine, wrapped=False, **options):
    """Return the weights after 50 steps on the part `mine` of each batch."""
    make, inputs = INPUTS[name]
    torch.manual_seed(dist.get_rank() if wrapped else 0)  # DDP gives all the weights of rank 0
    model = DistributedDataParallel(make(), **options) if wrapped else make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for step in range(STEPS):
        batch = step % BATCHES
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs[batch][mine]), LABELS[batch][mine]).backward()
        optimizer.step()
    return weights(model)


def equality(name, **options):
    rank, world = dist.get_rank(), dist.get_world_size()
    alone = trained(name, slice(None))
    together = trained(name, slice(rank, None, world), wrapped=True, **options)
    everywhere = [torch.empty_like(together) for _ in range(world)]
    dist.all_gather(everywhere, together)
    return {
        "apart": (alone - together).abs().max().item(),
        "moved": (alone - weights_at_start(name)).abs().max().item(),
        "same bits": all(torch.equal(together, other) for other in everywhere),
    }


def in_shared_memory():
    model = DistributedDataParallel(linear())
    return all(len(bucket.flats) == dist.get_world_size() for bucket in model.reducer.buckets)


def weights_at_start(name):
    torch.manual_seed(0)
    return weights(INPUTS[name][0]())


def grads_of(model):
    return [None if one.grad is None else one.grad.tolist() for one in model.parameters()]


def linear():
    torch.manual_seed(3)
    return nn.Linear(3, 2)


def no_sync_adds_up_and_the_next_backward_averages():
    model, rank = DistributedDataParallel(linear()), dist.get_rank()
    with model.no_sync():
        model(torch.full((1, 3), 1.0 + rank)).sum().backward()
    local = grads_of(model)
    model(torch.full((1, 3), 10.0 * (rank + 1))).sum().backward()
    return local, grads_of(model)


class Branches(nn.Module):
    """Uses one of three layers."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))

    def forward(self, x, which):
        return self.layers[which](x)


def unused_parameters_of_one_rank_get_the_mean_and_of_all_stay_none():
    model = DistributedDataParallel(Branches(), find_unused_parameters=True)
    found = []
    for _ in range(2):
        model(torch.ones(1, 2), min(dist.get_rank(), 1)).sum().backward()
        found.append(grads_of(model))
    return found


def unused_parameters_are_an_error_in_the_next_forward():
    model = DistributedDataParallel(Branches())
    model(torch.ones(1, 2), 0).sum().backward()
    try:
        model(torch.ones(1, 2), 0)
    except RuntimeError as problem:
        numbered = f"Parameter indices which did not receive grad for rank {dist.get_rank()}: 2 3 4 5\n"
        return str(problem).split("\n")[:3], numbered in str(problem)


def buffers_of_rank_0_before_each_forward():
    model = DistributedDataParallel(nn.BatchNorm1d(2))
    for step in range(3):
        model(torch.arange(6.0).reshape(3, 2) * (1 + dist.get_rank()) + step)
    return model.module.running_mean.tolist(), model.module.num_batches_tracked.item()


def names_of_the_state():
    model = DistributedDataParallel(linear())
    return list(model.state_dict()), [name for name, _ in model.named_parameters()], repr(model)


def message(make):
    try:
        make()
    except (RuntimeError, ValueError) as problem:
        return isinstance(problem, RuntimeError), str(problem)


def errors():
    return [
        message(lambda: DistributedDataParallel(nn.ReLU())),
        message(lambda: DistributedDataParallel(nn.Linear(1, 1), device_ids=[0])),
    ]


def parameters_that_differ():
    rank = dist.get_rank()
    return [
        message(lambda: DistributedDataParallel(nn.Linear(2, 2 + (rank == 1)))),
        message(lambda: DistributedDataParallel(nn.Linear(2, 2, bias=rank == 0))),
    ]


def samplers():
    found = []
    for options in ({}, {"shuffle": False}, {"seed": 9, "drop_last": True}):
        sampler = DistributedSampler(range(23), **options)
        for epoch in range(2):
            sampler.set_epoch(epoch)
            found.append([len(sampler), list(sampler)])
    return found


def buckets_that_end_before_the_backward():
    """Return whether gradients of the last layer are reduced before the first layer's gradient is computed."""
    model = DistributedDataParallel(nn.Sequential(nn.Linear(10, 64), nn.Linear(64, 3)), bucket_cap_mb=0.0005)
    ended = []

    def look(grad):
        deadline = time.monotonic() + 20
        while not model.reducer.buckets[0].work.is_completed() and time.monotonic() < deadline:
            time.sleep(0.001)
        ended.append(model.reducer.buckets[0].work.is_completed())

    model.module[0].weight.register_hook(look)
    model(torch.ones(2, 10)).sum().backward()
    return ended


BESIDE = (
    no_sync_adds_up_and_the_next_backward_averages,
    unused_parameters_of_one_rank_get_the_mean_and_of_all_stay_none,
    unused_parameters_are_an_error_in_the_next_forward,
    buffers_of_rank_0_before_each_forward,
    names_of_the_state,
    errors,
    samplers,
)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    found = {function.__name__: function() for function in BESIDE}
    if "beside" not in sys.argv:
        found["equal"] = {name: equality(name) for name in INPUTS}
        small = {"bucket_cap_mb": 0.001, "find_unused_parameters": True}
        found["equal"]["mlp in many buckets"] = equality("mlp", **small)
        found["shared"] = [in_shared_memory()]
        vars(os).pop("memfd_create", None)  # then as on several machines, or on a system without such memory
        found["shared"].append(in_shared_memory())
        found["equal"]["mlp over MPI alone"] = equality("mlp")
        found["overlap"] = buckets_that_end_before_the_backward()
        found["differ"] = parameters_that_differ()
    (Path(sys.argv[1]) / f"{dist.get_rank()}.json").write_text(json.dumps(found))
    dist.destroy_process_group()

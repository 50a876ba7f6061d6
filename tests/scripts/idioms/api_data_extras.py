"""The corners of `torch.utils.data`."""

import torch
from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)
from torch.utils.data.dataloader import default_collate as collate
from torch.utils.data.distributed import DistributedSampler as there

print(collate([1, 2]), there is DistributedSampler, get_worker_info())
data = TensorDataset(torch.arange(10.0), torch.arange(10))
sampler = DistributedSampler(data, num_replicas=3, rank=1, shuffle=True, seed=4)
sampler.set_epoch(2)
print(list(sampler), len(sampler))
print(list(DistributedSampler(data, num_replicas=4, rank=3, shuffle=False, drop_last=True)))
parts = random_split(data, [0.7, 0.3], generator=torch.Generator().manual_seed(1))
print([len(part) for part in parts], parts[1].indices)
print(len(ConcatDataset([data, Subset(data, [1, 2])])), StackDataset(a=data)[0])
loader = DataLoader(data, batch_sampler=BatchSampler(SequentialSampler(data), 4, True), pin_memory=False)
print([batch[1].tolist() for batch in loader], len(loader))


class Count(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


print(list(DataLoader(ChainDataset([Count(2), Count(3)]), batch_size=None)), list(Count(1) + Count(2)))
torch.manual_seed(0)
print(list(WeightedRandomSampler([0.1, 0.9], 5)), list(RandomSampler(range(4), replacement=True, num_samples=3)))
print(default_convert([1, torch.ones(1)]), default_collate([{"a": 1, "b": [1, 2]}, {"a": 2, "b": [3, 4]}]))

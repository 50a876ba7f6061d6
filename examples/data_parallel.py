"""A small network trained by several processes: `backlight torchrun --nproc-per-node 2 examples/data_parallel.py`.

Nothing in it is backlight's: `torchrun --nproc-per-node 2 examples/data_parallel.py` runs it on PyTorch.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
torch.manual_seed(0)
points = torch.rand(512, 2, generator=torch.Generator().manual_seed(0)) * 4 - 2
data = TensorDataset(points, (points.norm(dim=1) < 1.4).long())  # is a point inside of a circle?
sampler = DistributedSampler(data, seed=1)
loader = DataLoader(data, batch_size=32, sampler=sampler)
model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(20):
    sampler.set_epoch(epoch)
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

hits = torch.tensor(0.0)
with torch.no_grad():
    for inputs, labels in loader:
        hits += (model(inputs).argmax(dim=1) == labels).sum()
dist.all_reduce(hits)
if dist.get_rank() == 0:
    print(f"{dist.get_world_size()} processes, accuracy {hits.item() / len(data):.2f}")
dist.destroy_process_group()

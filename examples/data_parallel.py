"""A small network trained by several processes: `backlight torchrun --nproc-per-node 2 examples/data_parallel.py`.

The names are PyTorch's: with its imports in place of these, torchrun runs the same on PyTorch.
"""

import backlight as torch
import backlight.distributed as dist
from backlight import nn
from backlight.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
points = torch.rand(512, 2, generator=torch.Generator().manual_seed(0)) * 4 - 2
data = TensorDataset(points, (points.norm(dim=1) < 1.4).long())  # is a point inside of a circle?
sampler = DistributedSampler(data, seed=1)
loader = DataLoader(data, batch_size=32, sampler=sampler)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2)))
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

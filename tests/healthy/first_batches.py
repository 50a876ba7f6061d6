"""One batch of a loader at a time, and no mistake: shuffled, drawn anew, looked at only, or taken once."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)


class Drawn(Dataset):
    """Samples that are drawn when they are asked for."""

    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.randn(3)


data = TensorDataset(torch.randn(16, 3))
shuffled, drawn = DataLoader(data, batch_size=8, shuffle=True), DataLoader(Drawn(), batch_size=8)
whole, validation = DataLoader(data, batch_size=16), DataLoader(TensorDataset(torch.randn(16, 3)), batch_size=4)
(once,) = next(iter(DataLoader(data, batch_size=4)))
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
numbers = []
for _ in range(12):
    for x in (next(iter(shuffled))[0], next(iter(drawn)), next(iter(whole))[0], once):
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        numbers.append(loss.item())
    with torch.no_grad():
        (x,) = next(iter(validation))
        numbers.append(model(x).mean().item())

"""Batches from a DataLoader, metrics gathered as tensors that were detached, as in examples/fashion_mnist_mlp.py."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.rand(40, 6)
y = (x.sum(1) > 3).long()
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 2))
loss_of, optimizer = nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=0.02)
losses, right = [], 0
for _ in range(3):
    for inputs, labels in loader:
        optimizer.zero_grad()
        scores = model(inputs)
        loss = loss_of(scores, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        right += (scores.argmax(1) == labels).sum().item()
numbers = [*torch.stack(losses).tolist(), right]

"""Stochastic weight averaging with SWALR and a fresh BatchNorm pass."""

import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
x = torch.randn(500, 6)
y = torch.sin(x[:, :1]) + x[:, 1:2] ** 2 * 0.3 + 0.1 * torch.randn(500, 1)
loader = DataLoader(TensorDataset(x[:400], y[:400]), batch_size=40, shuffle=True)
model = nn.Sequential(nn.Linear(6, 48, bias=False), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 1))
averaged = AveragedModel(model)
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=15)
swa_lr = SWALR(opt, swa_lr=0.02, anneal_epochs=3)
for epoch in range(25):
    model.train()
    total = 0.0
    for bx, by in loader:
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(bx), by)
        loss.backward()
        opt.step()
        total += loss.item()
    if epoch >= 15:
        averaged.update_parameters(model)
        swa_lr.step()
    else:
        cosine.step()
    if epoch % 6 == 0:
        print(epoch, total / len(loader))
update_bn(loader, averaged)
model.eval()
averaged.eval()
with torch.no_grad():
    print(
        "plain",
        nn.functional.mse_loss(model(x[400:]), y[400:]).item(),
        "averaged",
        nn.functional.mse_loss(averaged(x[400:]), y[400:]).item(),
    )

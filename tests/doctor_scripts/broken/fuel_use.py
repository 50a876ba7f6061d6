import torch
import torch.nn as nn

torch.manual_seed(0)

# weight (t), power (100 hp) -> litres per 100 km
weight = 0.8 + 1.4 * torch.rand(200)
power = 0.6 + 1.5 * torch.rand(200)
X = torch.stack([weight, power], 1)
y = 2 + 3 * weight + 1.5 * power + 0.2 * torch.randn(200)  # here

net = nn.Sequential(nn.Linear(2, 20), nn.ReLU(), nn.Linear(20, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.02)


def mse(pred, target):
    return ((pred - target) ** 2).mean()  # here


for i in range(300):
    loss = mse(net(X), y)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 100 == 0:
        print(i, loss.item())

with torch.no_grad():
    pred = net(X).flatten()
print("final", loss.item(), "spread of predictions", pred.std().item(), "of targets", y.std().item())

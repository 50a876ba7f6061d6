import math
import torch
from torch import nn

torch.manual_seed(10)
t = torch.linspace(0.3, 1, 100)
arms = [torch.stack([t * torch.cos(6 * t + s), t * torch.sin(6 * t + s)], 1) for s in (0, math.pi)]
data = torch.cat(arms) + 0.02 * torch.randn(200, 2)
target = torch.cat([torch.zeros(100), torch.ones(100)])

net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

for epoch in range(200):
    output = net(data).squeeze(-1)
    loss = criterion(output, target)
    loss.backward()
    optimizer.zero_grad()  # here
    optimizer.step()  # here
    if epoch % 50 == 0:
        print("epoch", epoch, "loss", loss.item())

acc = ((output > 0) == (target > 0.5)).float().mean()
print("accuracy", acc.item())

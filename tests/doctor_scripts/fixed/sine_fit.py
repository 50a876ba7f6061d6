import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
x = rng.uniform(-3, 3, size=(128, 1))
y = np.sin(x) + 0.05 * rng.normal(size=x.shape)

inputs = torch.from_numpy(x).float()
targets = torch.from_numpy(y).float()

net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(60):
    optimizer.zero_grad()
    outputs = net(inputs)
    loss = criterion(outputs, targets)
    loss.backward()
    optimizer.step()
print("final loss", loss.item())

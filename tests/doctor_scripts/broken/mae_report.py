import numpy as np
import torch
from torch import nn

torch.manual_seed(3)
x = torch.rand(64, 5)
y = x @ torch.tensor([1.0, -2.0, 0.5, 3.0, 0.0]) + 0.1 * torch.randn(64)

model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(model.parameters(), lr=0.02)
history = []
for epoch in range(40):
    pred = model(x).squeeze(1)
    loss = nn.functional.mse_loss(pred, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    mae = np.abs(pred.numpy() - y.numpy()).mean()  # here
    history.append(mae)
print("first", history[0], "last", history[-1])

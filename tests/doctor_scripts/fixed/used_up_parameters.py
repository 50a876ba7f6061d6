import torch
from torch import nn

torch.manual_seed(40)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
params = list(model.parameters())
print("parameters:", sum(p.numel() for p in params))
optimizer = torch.optim.SGD(params, lr=0.05, momentum=0.9)
x = torch.randn(200, 4)
y = x[:, :1].abs() - x[:, 1:2]
for i in range(100):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 25 == 0 or i == 99:
        print(i, loss.item())

import torch
from torch import nn

torch.manual_seed(36)
x = torch.randn(500, 10)
y = x @ torch.randn(10, 1) + 0.5 * torch.randn(500, 1)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(300):
    pick = torch.randint(0, 500, (16,))
    loss = nn.functional.mse_loss(model(x[pick]), y[pick])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 75 == 0 or step == 299:
        with torch.no_grad():
            print(step, nn.functional.mse_loss(model(x), y).item())

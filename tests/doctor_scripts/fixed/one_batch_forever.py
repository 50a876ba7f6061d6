import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
x = torch.rand(512, 6) * 2 - 1
y = torch.sin(3 * x[:, :1]) + x[:, 1:2] * x[:, 2:3]
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)

step = 0
for xb, yb in (batch for _ in range(4) for batch in loader):
    opt.zero_grad()
    loss = nn.functional.mse_loss(model(xb), yb)
    loss.backward()
    opt.step()
    if step % 80 == 0:
        print("step", step, "loss", loss.item())
    step += 1
with torch.no_grad():
    print("whole data", nn.functional.mse_loss(model(x), y).item())

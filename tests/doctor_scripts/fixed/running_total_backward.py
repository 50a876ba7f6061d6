import torch
import torch.nn as nn

torch.manual_seed(23)
X = torch.randn(240, 9)
Y = torch.stack([X[:, 0] + X[:, 1], X[:, 2] * 2], dim=1)
model = nn.Sequential(nn.Linear(9, 40), nn.ReLU(), nn.Linear(40, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.L1Loss()

for epoch in range(12):
    total_loss = 0
    for i in range(0, 240, 24):
        loss = criterion(model(X[i : i + 24]), Y[i : i + 24])
        optimizer.zero_grad()
        loss.backward()
        total_loss = total_loss + loss.item()
        optimizer.step()
    print("epoch", epoch, "loss", float(total_loss) / 10)

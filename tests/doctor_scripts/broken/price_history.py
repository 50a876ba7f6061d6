import torch
import torch.nn as nn

torch.manual_seed(0)
x = torch.randn(160, 6)
y = x[:, :1] - 2 * x[:, 1:2]
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.MSELoss()

total_loss = 0
for epoch in range(8):
    for batch in torch.randperm(160).split(16):
        optimizer.zero_grad()
        loss = criterion(model(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
        total_loss += loss  # here
print("average loss", total_loss.item() / 80)

import torch
from torch import nn

torch.manual_seed(34)
x = torch.rand(500, 3) * 2 - 1
y = torch.exp(-x.pow(2).sum(1, keepdim=True) * 2)
net = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
history = []
for epoch in range(150):
    pred = net(x + 0.01 * torch.randn_like(x))
    loss = (pred - y).square().mean() + 1e-4 * pred.square().mean()
    opt.zero_grad()
    # error on the clean inputs, for the curve
    clean = (net(x) - y).abs().mean()
    history.append(clean + loss)  # here
    loss.backward()
    opt.step()
    if epoch % 50 == 0 or epoch == 149:
        print(epoch, loss.item())
print("mean of the curve", float(sum(history)) / len(history))

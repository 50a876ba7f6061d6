import torch
import torch.nn as nn

torch.manual_seed(7)
x = torch.linspace(-1, 1, 128).unsqueeze(1)
y = x**3 - 0.5 * x + 0.02 * torch.randn_like(x)

net = nn.Sequential(nn.Linear(1, 30), nn.Tanh(), nn.Linear(30, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)

lrs, losses = [], []
for epoch in range(100):
    scheduler.step()  # here
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    lrs.append(optimizer.param_groups[0]["lr"])
    optimizer.step()  # here
    losses.append(loss.item())

print("first lr", lrs[0], "last lr", lrs[-1])
print("first loss", losses[0], "last loss", losses[-1])

import torch
import torch.nn as nn

torch.manual_seed(6)
x = torch.randn(400, 2)
y = ((x[:, 0] * x[:, 1]) > 0).float()


def init_weights(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight)
        nn.init.zeros_(m.bias)


net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
net.apply(init_weights)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
bce = nn.BCEWithLogitsLoss()
for epoch in range(200):
    loss = bce(net(x).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if epoch % 40 == 0 or epoch == 199:
        acc = ((net(x).squeeze(1) > 0) == (y > 0.5)).float().mean()
        print(f"{epoch} {loss.item():.4f} {acc.item():.3f}")

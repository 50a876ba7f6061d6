import torch
from torch import nn

torch.manual_seed(26)
encoder = nn.Sequential(nn.Linear(8, 24), nn.ReLU()).requires_grad_(False)
head = nn.Linear(24, 3)
opt = torch.optim.Adam(head.parameters(), lr=0.02)
x = torch.randn(150, 8)
y = torch.randint(0, 3, (150,))
y[x[:, 0] > 0] = 1
seen = []

for step in range(60):
    with torch.no_grad():
        feats = encoder(x)
    feats.requires_grad_().register_hook(lambda g: seen.append(g.abs().mean().item()))
    loss = nn.functional.cross_entropy(head(feats), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0 or step == 59:
        print(step, loss.item(), "saliency", seen[-1])

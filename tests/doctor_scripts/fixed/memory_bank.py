import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 8))
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
bank = F.normalize(torch.randn(32, 8), dim=1)
for step in range(5):
    x = torch.randn(32, 10)
    a = F.normalize(encoder(x), dim=1)
    b = F.normalize(encoder(x + 0.1 * torch.randn_like(x)), dim=1)
    logits = torch.cat([(a * b).sum(1, keepdim=True), a @ bank.t()], dim=1) / 0.2
    loss = F.cross_entropy(logits, torch.zeros(32, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    bank = b.detach().clone()
    print(step, round(loss.item(), 3))

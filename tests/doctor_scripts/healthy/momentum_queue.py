"""MoCo: momentum encoder without gradient, ring buffer of negatives written in place."""

import torch
import torch.nn.functional as F
from torch import nn


class MoCo(nn.Module):
    def __init__(self, dim_in=20, dim=8, size=256, momentum=0.95):
        super().__init__()

        def make():
            return nn.Sequential(nn.Linear(dim_in, 64), nn.ReLU(), nn.Linear(64, dim))

        self.query, self.key = make(), make()
        self.key.load_state_dict(self.query.state_dict())
        self.key.requires_grad_(False)
        self.momentum = momentum
        self.register_buffer("queue", F.normalize(torch.randn(size, dim), dim=1))
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def after_step(self, keys):
        for k, q in zip(self.key.parameters(), self.query.parameters()):
            k.mul_(self.momentum).add_(q, alpha=1 - self.momentum)
        p = int(self.ptr)
        self.queue[p : p + len(keys)] = keys
        self.ptr[0] = (p + len(keys)) % len(self.queue)

    def forward(self, a, b):
        q = F.normalize(self.query(a), dim=1)
        with torch.no_grad():
            k = F.normalize(self.key(b), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ self.queue.clone().T], 1) / 0.2
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long)), k


torch.manual_seed(16)
x = 2 * torch.randn(128, 20)
model = MoCo()
opt = torch.optim.SGD(model.query.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
for epoch in range(20):
    total = 0.0
    for idx in torch.randperm(128).split(64):
        loss, keys = model(x[idx] + 0.3 * torch.randn(64, 20), x[idx] + 0.3 * torch.randn(64, 20))
        opt.zero_grad()
        loss.backward()
        opt.step()
        model.after_step(keys)
        total += loss.item()
    if epoch % 5 == 0 or epoch == 19:
        print(epoch, total / 2)

"""Linear probing: trunk with batch norm stays fixed, only the head learns."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 8, 7, stride=2, padding=3)
        self.bn1 = nn.BatchNorm1d(8)
        self.conv2 = nn.Conv1d(8, 16, 5, stride=2, padding=2)
        self.bn2 = nn.BatchNorm1d(16)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(x))).mean(-1)


class Probe(nn.Module):
    def __init__(self, trunk, n_classes):
        super().__init__()
        self.trunk = trunk
        self.head = nn.Linear(16, n_classes)
        for p in self.trunk.parameters():
            p.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.trunk.eval()  # keep the running statistics of the trunk
        return self

    def forward(self, x):
        with torch.no_grad():
            feats = self.trunk(x)
        return self.head(feats)


def waves(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=g)
    t = torch.linspace(0, 6.28, 64)
    f = torch.where(y == 0, 2.0, 7.0)
    x = torch.sin(f[:, None] * t) + 0.3 * torch.randn(n, 64, generator=g)
    return x[:, None], y


def main():
    torch.manual_seed(0)
    trunk = Trunk()
    # a short "pretraining" on another label to have sensible statistics
    pre = nn.Sequential(trunk, nn.Linear(16, 2))
    opt = torch.optim.Adam(pre.parameters(), lr=1e-2)
    x, y = waves(128, 0)
    for _ in range(15):
        opt.zero_grad()
        F.cross_entropy(pre(x), 1 - y).backward()
        opt.step()

    model = Probe(trunk, 2)
    before = trunk.bn1.running_mean.clone()
    opt = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.5)
    for step in range(30):
        model.train()
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print("step", step, "loss", round(loss.item(), 4))
    model.eval()
    vx, vy = waves(64, 1)
    with torch.no_grad():
        print("val acc", (model(vx).argmax(1) == vy).float().mean().item())
    assert torch.equal(before, trunk.bn1.running_mean)


if __name__ == "__main__":
    main()

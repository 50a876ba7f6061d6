"""Train a tiny CNN to find a cross, then look where it looks (Grad-CAM)."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SIZE = 12


def crosses(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = 0.3 * torch.randn(n, 1, SIZE, SIZE, generator=g)
    y = torch.randint(0, 2, (n,), generator=g)
    where = torch.randint(2, SIZE - 2, (n, 2), generator=g)
    for i in range(n):
        r, c = where[i].tolist()
        if y[i]:
            x[i, 0, r - 1 : r + 2, c] += 1.5
            x[i, 0, r, c - 1 : c + 2] += 1.5
        else:
            x[i, 0, r, c - 2 : c + 3] += 1.5
    return x, y, where


class CrossNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 12, 3, padding=1)
        self.fc = nn.Linear(12, 2)

    def forward(self, x):
        h = F.relu(self.conv1(x))
        h = F.relu(self.conv2(h))
        return self.fc(h.mean(dim=(2, 3)))


class GradCam:
    def __init__(self, model, layer):
        self.model = model
        self.activation = None
        self.handle = layer.register_forward_hook(self.save)

    def save(self, module, inputs, output):
        output.retain_grad()
        self.activation = output

    def __call__(self, x, target):
        self.model.zero_grad()
        self.model(x)[:, target].sum().backward()
        act, grad = self.activation, self.activation.grad
        weights = grad.mean(dim=(2, 3), keepdim=True)
        return F.relu((weights * act).sum(1)).detach()

    def close(self):
        self.handle.remove()


def train(model, x, y, epochs):
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        for xb, yb in loader:
            loss = F.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print("epoch", epoch, "loss", round(loss.item(), 4))


def main():
    torch.manual_seed(0)
    x, y, where = crosses(192, 0)
    model = CrossNet()
    train(model, x, y, epochs=15)
    model.eval()
    cam = GradCam(model, model.conv2)
    picked = (y == 1).nonzero().flatten()[:16]
    heat = cam(x[picked], target=1)
    cam.close()
    peak = heat.flatten(1).argmax(1)
    found = torch.stack([peak // SIZE, peak % SIZE], 1)
    print("mean distance of peak to cross", (found - where[picked]).float().norm(dim=1).mean().item())


if __name__ == "__main__":
    main()

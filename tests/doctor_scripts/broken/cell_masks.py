"""Segment round cells and their nuclei in small synthetic images."""

import os
import tempfile
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass
class Conf:
    n_classes: int = 3
    size: int = 16
    epochs: int = 8
    batch_size: int = 12
    lr: float = 1e-2


class Cells(Dataset):
    def __init__(self, n, size, seed):
        g = torch.Generator().manual_seed(seed)
        grid = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij"))
        self.items = []
        for _ in range(n):
            c = torch.randint(4, size - 4, (2, 1, 1), generator=g)
            d = (grid - c).float().pow(2).sum(0).sqrt()
            mask = (d < 4.5).long() + (d < 2).long()
            img = 0.6 * mask.float() + 0.15 * torch.randn(size, size, generator=g)
            self.items.append((img[None], mask))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class MiniUNet(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.down = nn.Conv2d(1, 8, 3, padding=1)
        self.mid = nn.Conv2d(8, 16, 3, padding=1)
        self.up = nn.Conv2d(24, 8, 3, padding=1)
        self.out = nn.Conv2d(8, n_classes, 1)

    def forward(self, x):
        d = F.relu(self.down(x))
        m = F.relu(self.mid(F.max_pool2d(d, 2)))
        m = F.interpolate(m, scale_factor=2.0, mode="nearest")
        return self.out(F.relu(self.up(torch.cat([d, m], 1))))


def pixel_loss(logits, mask):
    n_classes = logits.size(1)
    flat = logits.reshape(-1, n_classes)  # here
    return F.cross_entropy(flat, mask.reshape(-1))


@torch.no_grad()
def mean_iou(model, loader, n_classes):
    inter, union = torch.zeros(n_classes), torch.zeros(n_classes)
    model.eval()
    for img, mask in loader:
        pred = model(img).argmax(1)
        for c in range(n_classes):
            inter[c] += ((pred == c) & (mask == c)).sum()
            union[c] += ((pred == c) | (mask == c)).sum()
    return (inter / union.clamp(min=1)).mean().item()


def main(conf=Conf()):
    torch.manual_seed(0)
    train = DataLoader(Cells(72, conf.size, 0), conf.batch_size, shuffle=True)
    val = DataLoader(Cells(24, conf.size, 1), conf.batch_size)
    model = MiniUNet(conf.n_classes)
    opt = torch.optim.Adam(model.parameters(), lr=conf.lr)
    best = 0.0
    with tempfile.TemporaryDirectory() as tmp:
        for epoch in range(conf.epochs):
            model.train()
            for img, mask in train:
                loss = pixel_loss(model(img), mask)
                opt.zero_grad()
                loss.backward()
                opt.step()
            iou = mean_iou(model, val, conf.n_classes)
            if iou >= best:
                best = iou
                torch.save(model.state_dict(), os.path.join(tmp, "best.pt"))
            print(f"epoch {epoch} loss {loss.item():.3f} mIoU {iou:.3f}")
        model.load_state_dict(torch.load(os.path.join(tmp, "best.pt")))
    print("best mIoU", round(mean_iou(model, val, conf.n_classes), 3))


if __name__ == "__main__":
    main()

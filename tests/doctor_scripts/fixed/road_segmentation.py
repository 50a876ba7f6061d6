"""Tiny encoder-decoder that segments roads, fields and water."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class UNetish(nn.Module):
    def __init__(self, n_classes, base=12):
        super().__init__()
        self.n_classes = n_classes
        self.enc1 = nn.Conv2d(3, base, 3, padding=1)
        self.enc2 = nn.Conv2d(base, base * 2, 3, padding=1)
        self.dec = nn.Conv2d(base * 3, base, 3, padding=1)
        self.out = nn.Conv2d(base, n_classes, 1)

    def forward(self, x):
        a = F.relu(self.enc1(x))
        b = F.relu(self.enc2(F.max_pool2d(a, 2)))
        up = F.interpolate(b, scale_factor=2, mode="nearest")
        d = F.relu(self.dec(torch.cat([a, up], dim=1)))
        return self.out(d)


def scenes(n, size=16, seed=0):
    g = torch.Generator().manual_seed(seed)
    mask = torch.zeros(n, size, size, dtype=torch.long)
    for i in range(n):
        r, c = torch.randint(0, size - 6, (2,), generator=g).tolist()
        mask[i, r : r + 6, c : c + 6] = 1
        road = torch.randint(0, size - 2, (1,), generator=g).item()
        mask[i, :, road : road + 2] = 2
    colours = torch.tensor([[0.2, 0.7, 0.2], [0.1, 0.2, 0.8], [0.5, 0.5, 0.5]])
    img = colours[mask].permute(0, 3, 1, 2) + 0.25 * torch.randn(n, 3, size, size, generator=g)
    return img, mask


def segmentation_loss(logits, mask):
    n_classes = logits.size(1)
    flat = logits.permute(0, 2, 3, 1).reshape(-1, n_classes)
    return F.cross_entropy(flat, mask.reshape(-1))


def mean_iou(pred, mask, n_classes):
    ious = []
    for c in range(n_classes):
        inter = ((pred == c) & (mask == c)).sum().item()
        union = ((pred == c) | (mask == c)).sum().item()
        ious.append(inter / max(union, 1))
    return sum(ious) / n_classes


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    n_classes = 3
    img, mask = scenes(160, seed=0)
    test_img, test_mask = scenes(40, seed=1)
    model = UNetish(n_classes)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(8):
        model.train()
        for idx in torch.randperm(len(img)).split(16):
            loss = segmentation_loss(model(img[idx]), mask[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        pred = model(test_img).argmax(1)
    print(f"test mIoU {mean_iou(pred, test_mask, n_classes):.3f}")


if __name__ == "__main__":
    main()

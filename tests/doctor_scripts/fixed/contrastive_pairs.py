"""CLIP-like alignment of 'image' and 'caption' vectors."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def paired_views(n, seed):
    maps = torch.Generator().manual_seed(50)
    a = torch.randn(12, 40, generator=maps)
    b = torch.randn(12, 30, generator=maps)
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(n, 12, generator=g)
    image = torch.tanh(z @ a / 3) + 0.1 * torch.randn(n, 40, generator=g)
    caption = torch.tanh(z @ b / 3) + 0.1 * torch.randn(n, 30, generator=g)
    return image, caption


class Tower(nn.Module):
    def __init__(self, d_in, d_out=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, 64), nn.ReLU(), nn.Linear(64, d_out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class PairModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = Tower(40)
        self.caption = Tower(30)
        self.log_scale = nn.Parameter(torch.tensor(2.3))

    def forward(self, image, caption):
        return self.image(image) @ self.caption(caption).t() * self.log_scale.exp()


def info_nce(logits):
    labels = torch.arange(logits.size(0))
    return 0.5 * (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels))


def recall_at_1(model, image, caption):
    with torch.no_grad():
        best = model(image, caption).argmax(1)
    return (best == torch.arange(len(image))).float().mean().item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    image, caption = paired_views(1024, seed=0)
    test_image, test_caption = paired_views(100, seed=1)
    model = PairModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(6):
        total = 0.0
        for idx in torch.randperm(len(image)).split(64):
            loss = info_nce(model(image[idx], caption[idx]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1}: contrastive loss {total / 16:.3f}")
    print(f"recall@1 among 100: {recall_at_1(model, test_image, test_caption):.3f}")


if __name__ == "__main__":
    main()

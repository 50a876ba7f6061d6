"""Discriminative learning rates for a small text CNN."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class HParams:
    vocab: int = 40
    length: int = 12
    dim: int = 16
    head_lr: float = 1e-2
    base_lr: float = 2e-3
    weight_decay: float = 0.01
    epochs: int = 8


class TextCNN(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.emb = nn.Embedding(hp.vocab, hp.dim)
        self.convs = nn.ModuleList(nn.Conv1d(hp.dim, 12, k, padding=k // 2) for k in (3, 5))
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(24, 2))

    def forward(self, ids):
        x = self.emb(ids).transpose(1, 2)
        x = torch.cat([F.relu(c(x)).amax(-1) for c in self.convs], dim=1)
        return self.head(x)


def make_optimizer(model, hp):
    head = list(model.head.parameters())
    rest = [p for n, p in model.named_parameters() if not n.startswith("head")]
    return torch.optim.AdamW(
        [{"params": rest, "lr": hp.base_lr}, {"params": head, "lr": hp.head_lr}],
        weight_decay=hp.weight_decay,
    )


def make_data(hp, n=256):
    g = torch.Generator().manual_seed(3)
    ids = torch.randint(2, hp.vocab, (n, hp.length), generator=g)
    y = torch.randint(0, 2, (n,), generator=g)
    pos = torch.randint(0, hp.length - 1, (n,), generator=g)
    rows = torch.arange(n)
    ids[rows, pos] = y  # the pair (0, 1) or (1, 0) somewhere in the text
    ids[rows, pos + 1] = 1 - y
    return ids, y


def main():
    hp = HParams()
    torch.manual_seed(0)
    ids, y = make_data(hp)
    train = DataLoader(TensorDataset(ids[:192], y[:192]), batch_size=32, shuffle=True)
    model = TextCNN(hp)
    optimizer = make_optimizer(model, hp)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for epoch in range(hp.epochs):
        model.train()
        total = 0.0
        for xb, yb in train:
            loss = F.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            acc = (model(ids[192:]).argmax(1) == y[192:]).float().mean().item()
        print(f"epoch {epoch} loss {total / len(train):.4f} val acc {acc:.3f} lrs {scheduler.get_last_lr()}")


if __name__ == "__main__":
    main()

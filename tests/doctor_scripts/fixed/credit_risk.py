from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split


@dataclass
class Config:
    n_features: int = 12
    hidden: int = 24
    batch_size: int = 16
    lr: float = 5e-3
    epochs: int = 3
    seed: int = 42


class RiskModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(cfg.n_features, cfg.hidden),
            nn.BatchNorm1d(cfg.hidden),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(cfg.hidden, cfg.hidden // 2),
            nn.BatchNorm1d(cfg.hidden // 2),
            nn.ReLU(),
        )
        self.head = nn.Linear(cfg.hidden // 2, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(-1)


def load_customers(cfg):
    x = torch.randn(81, cfg.n_features)
    w = torch.randn(cfg.n_features)
    y = (x @ w + 0.2 * torch.randn(81) > 0).float()
    return random_split(TensorDataset(x, y), [65, 16])


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = total = 0
    for x, y in loader:
        hits += ((model(x) > 0).float() == y).sum().item()
        total += len(y)
    return hits / total


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    train_set, valid_set = load_customers(cfg)
    train_loader = DataLoader(train_set, batch_size=cfg.batch_size, shuffle=True, drop_last=True)
    valid_loader = DataLoader(valid_set, batch_size=cfg.batch_size)
    model = RiskModel(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-2)
    loss_fn = nn.BCEWithLogitsLoss()

    for epoch in range(cfg.epochs):
        model.train()
        for x, y in train_loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: last loss {loss.item():.3f}, valid accuracy {accuracy(model, valid_loader):.2f}")


if __name__ == "__main__":
    main()

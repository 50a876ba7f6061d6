import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def conv_block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
    )


class LeafNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.features = nn.Sequential(conv_block(3, 8), conv_block(8, 16))
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(16 * 4 * 4, classes)

    def forward(self, x):
        return self.fc(self.drop(self.features(x).flatten(1)))


def leaves(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    x = 2.0 + 3 * torch.rand(n, 3, 16, 16, generator=g)
    for i in range(n):
        r, c = torch.randint(0, 10, (2,), generator=g).tolist()
        x[i, y[i], r : r + 5, c : c + 5] += 1.5
    return x, y


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss, hits, n = 0.0, 0, 0
    for x, y in loader:
        out = model(x)
        loss += F.cross_entropy(out, y, reduction="sum").item()
        hits += (out.argmax(1) == y).sum().item()
        n += len(y)
    return loss / n, hits / n


def fit(model, train_loader, val_loader, epochs=6, lr=3e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.3)
    history = []
    for epoch in range(epochs):
        model.train()
        t0, seen, loss_sum = time.time(), 0, 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            loss_sum += loss.item() * len(y)
            seen += len(y)
        scheduler.step()
        val_loss, val_acc = evaluate(model, val_loader)
        history.append(val_acc)
        print(f"{epoch} train {loss_sum / seen:.3f} val {val_loss:.3f} acc {val_acc:.3f}")
    return history


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(TensorDataset(*leaves(192, 0)), batch_size=32, shuffle=True)
    val_loader = DataLoader(TensorDataset(*leaves(96, 1)), batch_size=48)
    model = LeafNet()
    fit(model, train_loader, val_loader)
    print("batches seen by first norm:", model.features[0][1].num_batches_tracked.item())


if __name__ == "__main__":
    main()

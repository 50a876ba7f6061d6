import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SqueezeExcite(nn.Module):
    def __init__(self, channels, reduction=4, temperature=1.5):
        super().__init__()
        self.fc1 = nn.Linear(channels, channels // reduction)
        self.fc2 = nn.Linear(channels // reduction, channels)
        self.temperature = temperature

    def forward(self, x):
        b, c = x.shape[:2]
        squeezed = x.mean(dim=(2, 3))
        gate = torch.sigmoid(self.fc2(torch.relu(self.fc1(squeezed))))
        gate = gate * self.temperature
        return x * gate.view(b, c, 1, 1)


class Block(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(cout)
        self.se = SqueezeExcite(cout)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x):
        out = self.se(self.bn(self.conv(x)))
        return torch.relu(out + self.skip(x))


class Net(nn.Module):
    def __init__(self, n_classes=4):
        super().__init__()
        self.body = nn.Sequential(Block(1, 8), nn.MaxPool2d(2), Block(8, 16))
        self.head = nn.Linear(16, n_classes)

    def forward(self, x):
        return self.head(self.body(x).mean(dim=(2, 3)))


def make_data(n=160):
    """Images with a bright quadrant; the label says which one."""
    g = torch.Generator().manual_seed(0)
    x = 0.3 * torch.randn(n, 1, 12, 12, generator=g)
    y = torch.randint(0, 4, (n,), generator=g)
    for i, q in enumerate(y.tolist()):
        r, c = divmod(q, 2)
        x[i, 0, r * 6 : r * 6 + 3 + r * 3, c * 6 : c * 6 + 6 - 2 * c] += 1.0
    return x, y


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(0)
    x, y = make_data()
    train = DataLoader(TensorDataset(x[:128], y[:128]), batch_size=32, shuffle=True)
    val = DataLoader(TensorDataset(x[128:], y[128:]), batch_size=32)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(8):
        model.train()
        for xb, yb in train:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        scheduler.step()
        print(epoch, round(loss.item(), 4), "val acc", accuracy(model, val))


if __name__ == "__main__":
    main()

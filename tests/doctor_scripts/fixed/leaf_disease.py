import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def conv_block(c_in, c_out):
    return nn.Sequential(nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU())


class LeafNet(nn.Module):
    def __init__(self, n_classes=3):
        super().__init__()
        self.features = nn.Sequential(conv_block(3, 8), nn.MaxPool2d(2), conv_block(8, 8), nn.AdaptiveAvgPool2d(1))
        self.dropout = nn.Dropout(0.3)
        self.classifier = nn.Linear(8, n_classes)

    def forward(self, x):
        return self.classifier(self.dropout(self.features(x).flatten(1)))


def dataset(n):
    y = torch.randint(0, 3, (n,))
    x = torch.randn(n, 3, 8, 8)
    x[torch.arange(n), y] += 1.0
    return TensorDataset(x, y)


def validate(model, loader):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
            total += y.numel()
    return correct / total


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(dataset(96), batch_size=16, shuffle=True)
    valid_loader = DataLoader(dataset(48), batch_size=48)
    model = LeafNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for epoch in range(4):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f} valid {validate(model, valid_loader):.2f}")


if __name__ == "__main__":
    main()

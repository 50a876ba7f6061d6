import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class DeepNet(nn.Module):
    def __init__(self, n_in, width, depth, n_out):
        super().__init__()
        layers = [nn.Linear(n_in, width), nn.ReLU()]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.ReLU()]
        self.hidden = nn.Sequential(*layers)
        for layer in layers[::2]:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
        self.out = nn.Linear(width, n_out)

    def forward(self, x):
        return self.out(self.hidden(x))


def rings(n=192):
    radius = torch.rand(n) * 2
    angle = torch.rand(n) * 6.2832
    x = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return TensorDataset(x, (radius > 1).long())


def train(model, loader, epochs=5):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        correct = 0
        for x, y in loader:
            optimizer.zero_grad()
            logits = model(x)
            loss = criterion(logits, y)
            loss.backward()
            optimizer.step()
            correct += (logits.argmax(1) == y).sum().item()
        print(f"epoch {epoch}: accuracy {correct / len(loader.dataset):.2f}")


def main():
    torch.manual_seed(4)
    loader = DataLoader(rings(), batch_size=32, shuffle=True)
    model = DeepNet(2, 24, 16, 2)
    train(model, loader)


if __name__ == "__main__":
    main()

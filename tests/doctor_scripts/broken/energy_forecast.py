import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class ResidualBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc1 = nn.Linear(dim, dim)
        self.fc2 = nn.Linear(dim, dim)

    def forward(self, x):
        return x + self.fc2(torch.relu(self.fc1(x)))


class Forecaster(nn.Module):
    def __init__(self, window, dim=16, depth=3):
        super().__init__()
        self.input = nn.Linear(window, dim)
        self.blocks = [ResidualBlock(dim) for _ in range(depth)]  # here
        self.output = nn.Linear(dim, 1)

    def forward(self, x):
        h = self.input(x)
        for block in self.blocks:
            h = block(h)
        return self.output(h)


def make_windows(window=12, n=160):
    t = torch.arange(n + window, dtype=torch.float32)
    series = torch.sin(t * 0.3) * torch.cos(t * 0.05) + 0.05 * torch.randn(n + window)
    xs = torch.stack([series[i : i + window] for i in range(n)])
    ys = torch.stack([series[i + window] for i in range(n)]).unsqueeze(1)
    return TensorDataset(xs, ys)


def train(model, loader, epochs, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    criterion = nn.MSELoss()
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} mse {total / len(loader):.4f}")


def main():
    torch.manual_seed(0)
    loader = DataLoader(make_windows(), batch_size=32, shuffle=True)
    model = Forecaster(window=12)
    print("parameters:", sum(p.numel() for p in model.parameters()))
    train(model, loader, epochs=6, lr=0.02)


if __name__ == "__main__":
    main()

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class PlateReader(nn.Module):
    def __init__(self, n_chars=6):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3, padding=1)
        self.fc = nn.Linear(6 * 8 * 8, n_chars)

    def forward(self, x):
        x = torch.relu(self.conv(x))
        return self.fc(x.flatten(1))


def plates(n=96):
    y = torch.randint(0, 6, (n,))
    shapes = torch.randn(6, 1, 8, 8)
    return TensorDataset(shapes[y] + 0.2 * torch.randn(n, 1, 8, 8), y)


def compute_loss(logits, target):
    return nn.functional.cross_entropy(logits, target)


def train(model, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for images, target in loader:
            optimizer.zero_grad()
            loss = compute_loss(model(images), target)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")


def main():
    torch.manual_seed(0)
    loader = DataLoader(plates(), batch_size=24, shuffle=True)
    train(PlateReader(), loader, epochs=5)


if __name__ == "__main__":
    main()

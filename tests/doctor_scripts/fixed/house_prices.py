import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def rmse_loss(prediction, target):
    return torch.sqrt(((prediction - target) ** 2).mean() + 1e-8)


def make_houses(n=128):
    area = torch.rand(n) * 1.5 + 0.5
    rooms = torch.randint(1, 6, (n,)).float()
    age = torch.rand(n)
    price = 2.0 * area + 0.3 * rooms - 0.8 * age + 0.05 * torch.randn(n)
    return TensorDataset(torch.stack([area, rooms / 5, age], dim=1), price)


class PriceModel(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_features, 32),
            nn.ReLU(),
            nn.Linear(32, 32),
            nn.ReLU(),
            nn.Linear(32, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(1)


def fit(model, dataset, epochs=15):
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        epoch_loss = 0.0
        for features, price in loader:
            optimizer.zero_grad()
            loss = rmse_loss(model(features), price)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1}: rmse {epoch_loss / len(loader):.3f}")


def main():
    torch.manual_seed(0)
    fit(PriceModel(3), make_houses())


if __name__ == "__main__":
    main()

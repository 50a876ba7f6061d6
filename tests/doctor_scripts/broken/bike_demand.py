import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def hourly_counts(n=192):
    hour = torch.randint(0, 24, (n,)).float()
    temp = torch.rand(n)
    weekend = torch.randint(0, 2, (n,)).float()
    count = torch.sin(hour / 24 * 6.28) + temp - 0.5 * weekend + 0.05 * torch.randn(n)
    features = torch.stack([torch.sin(hour / 24 * 6.28), torch.cos(hour / 24 * 6.28), temp, weekend], dim=1)
    return TensorDataset(features, count.unsqueeze(1))


class DemandModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(4, 20)
        self.output = nn.Linear(20, 1)

    def forward(self, x):
        return self.output(torch.tanh(self.hidden(x)))


def train(model, loader, optimizer, criterion, num_epochs):
    for epoch in range(num_epochs):
        for features, count in loader:
            prediction = model(features)
            loss = criterion(prediction, count)

        optimizer.zero_grad()
        loss.backward()  # here
        optimizer.step()  # here

        print(f"epoch {epoch} loss {loss.item():.4f}")


def main():
    torch.manual_seed(0)
    loader = DataLoader(hourly_counts(), batch_size=16, shuffle=True)
    model = DemandModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, loader, optimizer, nn.MSELoss(), num_epochs=6)


if __name__ == "__main__":
    main()

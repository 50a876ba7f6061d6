import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class TumorNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(9, 18)
        self.fc2 = nn.Linear(18, 9)
        self.fc3 = nn.Linear(9, 1)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return F.softmax(self.fc3(x), dim=1)  # here


def load_data():
    x = torch.randn(120, 9)
    y = (x[:, :3].sum(dim=1) > 0).float().unsqueeze(1)
    return DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True)


def train(net, loader, epochs):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    loss_fn = nn.BCELoss()
    for epoch in range(epochs):
        losses = []
        for x, y in loader:
            optimizer.zero_grad()
            out = net(x)
            loss = loss_fn(out, y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print("epoch", epoch, "loss", sum(losses) / len(losses))


def main():
    torch.manual_seed(0)
    train(TumorNet(), load_data(), epochs=5)


if __name__ == "__main__":
    main()

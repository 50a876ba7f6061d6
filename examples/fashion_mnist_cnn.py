"""Tell clothes apart with a convolutional network: python examples/fashion_mnist_cnn.py [--epochs N]

Reads FashionMNIST from data/, or from where Debian's package dataset-fashion-mnist installs it.
"""

import argparse

import backlight as torch
from backlight import nn
from backlight.data import DataLoader
from backlight.data.transforms import ToTensor
from backlight.data.vision import FashionMNIST


class Network(nn.Module):
    """Two convolutions, each followed by a halving, then two linear layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.dropout = nn.Dropout(0.25)
        self.hidden = nn.Linear(64 * 7 * 7, 128)
        self.scores = nn.Linear(128, 10)

    def forward(self, images):
        x = self.pool(torch.relu(self.conv1(images)))  # (batch, 32, 14, 14)
        x = self.pool(torch.relu(self.conv2(x)))  # (batch, 64, 7, 7)
        x = torch.relu(self.hidden(x.flatten(1)))
        return self.scores(self.dropout(x))


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=4)
    options.add_argument("--data", default="data", help="the folder with the dataset")
    given = options.parse_args()

    torch.manual_seed(0)
    training = DataLoader(FashionMNIST(given.data, train=True, transform=ToTensor()), batch_size=64, shuffle=True)
    test = DataLoader(FashionMNIST(given.data, train=False, transform=ToTensor()), batch_size=500)
    model = Network()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(given.epochs):
        model.train()
        for images, labels in training:
            loss = loss_fn(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, test accuracy {100 * evaluate(model, test):.2f} %")


def evaluate(model, loader) -> float:
    """Return the share of images whose class the model finds."""
    model.eval()
    hits = count = 0
    with torch.no_grad():
        for images, labels in loader:
            hits += (model(images).argmax(1) == labels).sum().item()
            count += len(labels)
    return hits / count


if __name__ == "__main__":
    main()

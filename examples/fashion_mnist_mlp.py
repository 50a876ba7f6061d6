"""Tell clothes apart with a multilayer perceptron: python examples/fashion_mnist_mlp.py [--epochs N] [--record FOLDER]

Reads FashionMNIST from data/, or from where Debian's package dataset-fashion-mnist installs it.
"""

import argparse
import contextlib

import backlight as torch
from backlight import nn
from backlight.data import DataLoader
from backlight.data.transforms import ToTensor
from backlight.data.vision import FashionMNIST
from backlight.training import Recorder


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=8)
    options.add_argument("--data", default="data", help="the folder with the dataset")
    options.add_argument("--record", metavar="FOLDER", help="write curves, gradients and checkpoints there")
    given = options.parse_args()

    torch.manual_seed(0)
    training = DataLoader(FashionMNIST(given.data, train=True, transform=ToTensor()), batch_size=64, shuffle=True)
    test = DataLoader(FashionMNIST(given.data, train=False, transform=ToTensor()), batch_size=1000)
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 256),
        nn.ReLU(),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(128, 10),
    )
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    recorder = Recorder(given.record, model, optimizer, every=20, existing="replace") if given.record else None

    with recorder or contextlib.nullcontext():
        for epoch in range(given.epochs):
            model.train()
            for images, labels in training:
                loss = loss_fn(model(images), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if recorder:
                    recorder.step(loss, samples=len(labels))
            accuracy = evaluate(model, test)
            if recorder:
                recorder.evaluation(accuracy=accuracy)
            print(f"epoch {epoch + 1}: loss {loss.item():.4f}, test accuracy {100 * accuracy:.2f} %")


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

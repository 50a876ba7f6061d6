"""One training step, forward, backward and SGD, of four small networks; both libraries begin with the same weights.

    python benchmarks/training_steps.py [--quick] [--json FILE]

The floor is the arithmetic of the matrix products, three times the forward's less what the first layer's input would
need, at the rate measured at the networks' shapes.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from floors import gemm_floor
from measure import OURS, RIVAL, Bar, Case
from quiet import library
from suite import main

TITLE = "a training step: forward, backward, SGD, float32"
CLASSES = 10


@dataclass(frozen=True)
class Network:
    """A network and its batch.

    Args:
        make: builds it from a module (backlight or torch).
        shape: of the batch.
        products: (times, m, k, n) of the forward's matrix products, the first layer's first.
    """

    make: Callable
    shape: tuple[int, ...]
    products: tuple[tuple[int, int, int, int], ...]


def _mlp(module):
    nn = module.nn
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, CLASSES))


def _cnn(module):
    nn = module.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, CLASSES),
    )  # fmt: skip


def _transformer(module):
    nn = module.nn

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, activation="gelu", batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(128, CLASSES)

        def forward(self, x):
            return self.head(self.encoder(x).mean(1))

    return Encoder()


def _lstm(module):
    nn = module.nn

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(64, 128, batch_first=True)
            self.head = nn.Linear(128, CLASSES)

        def forward(self, x):
            states, _ = self.lstm(x)
            return self.head(states[:, -1])

    return Reader()


NETWORKS = {
    "MLP": Network(_mlp, (64, 784), ((1, 64, 784, 512), (1, 64, 512, 512), (1, 64, 512, CLASSES))),
    "CNN": Network(_cnn, (32, 1, 28, 28), ((1, 32 * 784, 9, 16), (1, 32 * 196, 144, 32), (1, 32, 32 * 49, CLASSES))),
    "transformer": Network(
        _transformer, (16, 64, 128), ((8, 1024, 128, 128), (2 * 64 * 2, 64, 32, 64), (4, 1024, 128, 512))
    ),
    "LSTM": Network(_lstm, (16, 32, 64), ((1, 16 * 32, 64, 512), (32, 16, 128, 512))),
}


def training(name: str, network: Network, watched: Callable | None = None):
    """Return a function that does one step and returns the loss.

    Args:
        watched: makes of the model and the optimizer what is called with the loss after the optimizer's step.
    """
    module = library(name)
    rng = np.random.default_rng(0)
    model = network.make(module)
    with module.no_grad():
        for parameter in model.parameters():
            bound = 1 / np.sqrt(parameter.shape[-1])
            parameter.copy_(module.tensor(rng.uniform(-bound, bound, tuple(parameter.shape)).astype(np.float32)))
    inputs = module.tensor(rng.normal(size=network.shape).astype(np.float32))
    targets = module.tensor(rng.integers(0, CLASSES, network.shape[0]))
    loss_of = module.nn.CrossEntropyLoss()
    optimizer = module.optim.SGD(model.parameters(), lr=1e-3)
    note = watched(model, optimizer) if watched else lambda loss: None

    def step():
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        note(loss)
        optimizer.zero_grad()
        return loss

    return step


def flops(network: Network) -> float:
    """Return the arithmetic of a step: a product, and one for each of its two gradients; the batch needs none."""
    (times, m, k, n), *_ = network.products
    return 3 * sum(2 * t * a * b * c for t, a, b, c in network.products) - 2 * times * m * k * n


def cases(quick: bool = False) -> list[Case]:
    """Return a row for each network."""
    found = []
    for name, network in NETWORKS.items():
        shapes = [shape for _, *shape in network.products]
        found.append(
            Case(
                name,
                {rival: lambda rival=rival, network=network: training(rival, network) for rival in (OURS, RIVAL)},
                floor=gemm_floor(flops(network), shapes),
                bars=(Bar(1.0, of="memory"),),
                seconds=6.0,
                memory=(OURS, RIVAL),
            )
        )
    return found[:1] if quick else found


if __name__ == "__main__":
    sys.exit(main("training", TITLE, cases))

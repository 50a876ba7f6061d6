"""The networks that a configuration can name."""

from itertools import pairwise

from backlight import nn
from backlight.training.settings import ModelConfig

SIDE = 28  # of an image, in pixels
CLASSES = 10


def network(config: ModelConfig) -> nn.Module:
    """Return the network, with first weights drawn from the default generator.

    Shapes: (batch, 1, 28, 28) -> (batch, 10)
    """
    return MAKERS[config.kind](config)


def _mlp(config: ModelConfig) -> nn.Module:
    """Return hidden layers with ReLU between them."""
    sizes = [SIDE * SIDE, *config.sizes]
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, *_dropout(config), nn.Linear(sizes[-1], CLASSES))


def _cnn(config: ModelConfig) -> nn.Module:
    """Return blocks of a 3×3 convolution, ReLU and a halving by the largest of 2×2, then one linear layer."""
    channels, side = [1, *config.sizes], SIDE
    layers: list[nn.Module] = []
    for before, after in pairwise(channels):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        side //= 2
    return nn.Sequential(*layers, nn.Flatten(), *_dropout(config), nn.Linear(channels[-1] * side * side, CLASSES))


def _dropout(config: ModelConfig) -> list[nn.Module]:
    return [nn.Dropout(config.dropout)] if config.dropout else []


MAKERS = {"mlp": _mlp, "cnn": _cnn}

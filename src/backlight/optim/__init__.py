"""Optimizers, under PyTorch's names."""

from backlight.optim.adam import Adam, AdamW
from backlight.optim.optimizer import Optimizer
from backlight.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]

"""Learning rate schedules, under PyTorch's name; they are in `schedules`, one file for each family."""

from backlight.optim.schedules.chains import ChainedScheduler, SequentialLR
from backlight.optim.schedules.curves import CosineAnnealingLR, CosineAnnealingWarmRestarts, PolynomialLR
from backlight.optim.schedules.cycles import CyclicLR, OneCycleLR
from backlight.optim.schedules.plateau import ReduceLROnPlateau
from backlight.optim.schedules.scheduler import LRScheduler
from backlight.optim.schedules.steps import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    StepLR,
)

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

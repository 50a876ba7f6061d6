"""Optimizers, under PyTorch's names."""

from backlight.optim import lr_scheduler
from backlight.optim.adadelta import Adadelta
from backlight.optim.adafactor import Adafactor
from backlight.optim.adagrad import Adagrad
from backlight.optim.adam import Adam, AdamW
from backlight.optim.adamax import Adamax
from backlight.optim.asgd import ASGD
from backlight.optim.lbfgs import LBFGS
from backlight.optim.muon import Muon
from backlight.optim.nadam import NAdam
from backlight.optim.optimizer import Optimizer
from backlight.optim.radam import RAdam
from backlight.optim.rmsprop import RMSprop
from backlight.optim.rprop import Rprop
from backlight.optim.sgd import SGD
from backlight.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
]

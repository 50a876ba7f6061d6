"""Packed and padded sequences under PyTorch's name, `nn.utils.rnn`."""

from backlight.nn.packing import *

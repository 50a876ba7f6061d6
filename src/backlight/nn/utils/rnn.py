"""Packed and padded sequences under PyTorch's name, `nn.utils.rnn`."""

from backlight.dispatch.arguments.checked import with_checks
from backlight.nn import packing
from backlight.nn.packing import *  # noqa: F403 - all of it

__all__ = packing.__all__

globals().update(with_checks(globals(), __all__, __name__))

"""Neural networks, under PyTorch's names."""

from backlight.nn import functional, init, modules, parameter, utils
from backlight.nn.modules import *
from backlight.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

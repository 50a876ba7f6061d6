"""Neural networks, under PyTorch's names."""

from backlight.nn import functional, init, modules, parameter  # noqa: F401 - names of the package
from backlight.nn.modules import *  # noqa: F403 - each family lists its public names in __all__
from backlight.nn.parameter import Parameter  # noqa: F401

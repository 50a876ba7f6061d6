"""PyTorch's `torch.masked`: reductions and normalisations that ignore elements where a mask is False."""

from backlight.dispatch.arguments.checked import with_checks
from backlight.masked import functions
from backlight.masked.functions import *

__all__ = functions.__all__
globals().update(with_checks(globals(), __all__, __name__))

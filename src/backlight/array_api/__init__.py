"""The namespace of the Python array API standard, on backlight's tensors: what `x.__array_namespace__()` returns.

Functions have the standard's names and parameters. They are composed of ops, so gradients flow through
them. Complex dtypes and unsigned integers of more than 8 bits, which backlight does not have, are left out.
"""

from math import e, inf, nan, pi
from typing import TYPE_CHECKING as _TYPE_CHECKING

from backlight.array_api import linalg
from backlight.array_api.creation import *
from backlight.array_api.elementwise import *
from backlight.array_api.linalg import matmul, tensordot, vecdot
from backlight.array_api.manipulation import *
from backlight.dispatch.arguments.checked import with_checks as _with_checks
from backlight.dtypes import bool, float32, float64, int8, int16, int32, int64, uint8

newaxis = None

if _TYPE_CHECKING:

    def __getattr__(name: str): ...  # the elementwise functions


globals().update(_with_checks(globals(), [*globals()], __name__))

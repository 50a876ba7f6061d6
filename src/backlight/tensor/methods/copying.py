"""Tensor's methods that copy and cast, a line each."""

from backlight import dtypes
from backlight.layouts import preserve_format
from backlight.ops.elementwise import copying


def _cast_to(kind: dtypes.dtype):
    """Return the method that casts to one dtype."""

    def cast(self, memory_format=preserve_format):
        return copying.cast(self, kind.numpy)

    cast.__doc__ = f"Return the tensor as {kind}: itself, if it is that already."
    return cast


class CopyMethods:
    """Tensor's methods that copy, cast and fill."""

    __slots__ = ()

    clone = copying.clone
    contiguous = copying.contiguous
    to = copying.to
    type = copying.as_type
    type_as = copying.type_as

    float = _cast_to(dtypes.float32)
    double = _cast_to(dtypes.float64)
    half = _cast_to(dtypes.float16)
    bfloat16 = _cast_to(dtypes.bfloat16)
    int = _cast_to(dtypes.int32)
    long = _cast_to(dtypes.int64)
    short = _cast_to(dtypes.int16)
    char = _cast_to(dtypes.int8)
    byte = _cast_to(dtypes.uint8)
    bool = _cast_to(dtypes.bool)

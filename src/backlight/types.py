"""PyTorch's `torch.types` and `torch.nn.common_types`: names of kinds of arguments, for annotations."""

import os
from typing import IO, TypeVar

from backlight.devices import device as _device
from backlight.sizes import Size

__all__ = ["Device", "FileLike", "Number"]

Number = int | float | bool
_Number = (int, float, bool)
Device = _device | str | int | None
FileLike = str | os.PathLike[str] | IO[bytes]
_size = Size | list[int] | tuple[int, ...]

T = TypeVar("T")
_scalar_or_tuple_any_t = T | tuple[T, ...]
_size_any_t = int | tuple[int, ...]
_size_1_t = int | tuple[int]
_size_2_t = int | tuple[int, int]
_size_3_t = int | tuple[int, int, int]
_size_4_t = int | tuple[int, int, int, int]
_size_5_t = int | tuple[int, int, int, int, int]
_size_6_t = int | tuple[int, int, int, int, int, int]
_size_any_opt_t = int | None | tuple[int | None, ...]
_size_2_opt_t = int | None | tuple[int | None, int | None]
_size_3_opt_t = int | None | tuple[int | None, int | None, int | None]
_ratio_2_t = float | tuple[float, float]
_ratio_3_t = float | tuple[float, float, float]
_ratio_any_t = float | tuple[float, ...]

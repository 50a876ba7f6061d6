"""`torch.__version__`: a text that compares as a version, and facts of the build that programs print."""

import re

from backlight.kernels.threads import get_num_threads

VERSION_TEXT = "2.13.0+backlight"  # the PyTorch version that backlight is compared with, marked as different


def _release(version: object) -> tuple[int, ...]:
    """Return the numbers of a version, which may be given as a text or as numbers."""
    if isinstance(version, (tuple, list)):
        version = ".".join(map(str, version))
    found = re.match(r"v?(\d+(?:\.\d+)*)", str(version))
    if found is None:
        raise ValueError(f"Invalid version: '{version}'")
    numbers = [int(part) for part in found[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


class TorchVersion(str):
    """A text that compares with other versions, given as texts or as tuples of numbers, by its numbers.

    >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0") > (2, 20)
    (True, False)
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) and str(self) == str(other):
            return True
        return isinstance(other, (str, tuple, list)) and "+" not in str(other) and _release(self) == _release(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: object) -> bool:
        return _release(self) < _release(other)

    def __le__(self, other: object) -> bool:
        return _release(self) <= _release(other)

    def __gt__(self, other: object) -> bool:
        return _release(self) > _release(other)

    def __ge__(self, other: object) -> bool:
        return _release(self) >= _release(other)


VERSION = TorchVersion(VERSION_TEXT)


def show() -> str:
    """Return a text about the build."""
    return f"PyTorch's names by backlight, compared with PyTorch {VERSION_TEXT.partition('+')[0]}\n"


def parallel_info() -> str:
    """Return a text about threads."""
    return f"ATen/Parallel:\n\tat::get_num_threads() : {get_num_threads()}\n"

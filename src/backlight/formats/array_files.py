"""Arrays in a safetensors file: what its header says of them first, then the arrays; damage is one clear error."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors

from backlight.errors import InputError

KINDS = frozenset(["BOOL", "U8", "I8", "I16", "I32", "I64", "F16", "BF16", "F32", "F64"])


@dataclass(frozen=True)
class Stored:
    """What a header says of an array: its kind, as safetensors names it, and its shape."""

    kind: str
    shape: tuple[int, ...]


def read_header(file: Path | str, what: str = "") -> dict[str, Stored]:
    """Return what a file's header says of its arrays, by name; no array is read.

    Args:
        what: words that stand before the file in errors, such as "the weights in ".

    Raises:
        InputError: the file is missing, damaged, or holds an array of a kind that backlight has no dtype for.
    """
    with _opened(file, what) as found:
        return _header_of(found, f"{what}{file}")


def read_arrays(file: Path | str, what: str = "") -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the arrays of a file by name, and the texts that stand beside them.

    Args:
        what: words that stand before the file in errors.

    Raises:
        InputError: the file is missing, damaged, or holds an array of a kind that backlight has no dtype for.
    """
    with _opened(file, what) as found:
        names = _header_of(found, f"{what}{file}")
        return {name: found.get_tensor(name) for name in names}, found.metadata() or {}


@contextmanager
def _opened(file: Path | str, what: str) -> Iterator:
    try:
        with safetensors.safe_open(file, framework="np") as found:
            yield found
    except (OSError, safetensors.SafetensorError, UnicodeError) as problem:
        raise InputError(f"cannot read {what}{file} as safetensors: {problem}") from problem


def _header_of(found, file: str) -> dict[str, Stored]:
    header = {}
    for name in found.keys():  # noqa: SIM118 - it is no dict
        part = found.get_slice(name)
        kind = part.get_dtype()
        if kind not in KINDS:
            raise InputError(
                f"cannot read {file} as safetensors: {name[:80]} is stored as {kind}, for which backlight has no "
                f"dtype: save it as float32 or bfloat16"
            )
        header[name] = Stored(kind, tuple(part.get_shape()))
    return header

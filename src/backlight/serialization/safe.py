"""Weights in the safetensors format: a flat dict of tensors by name."""

import os

import safetensors.numpy

from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, InputError, ValueProblem
from backlight.formats.array_files import read_arrays
from backlight.tensor.tensor import Tensor

__all__ = ["load_file", "save_file"]


def save_file(tensors: dict[str, Tensor], filename: str | os.PathLike, metadata: dict[str, str] | None = None) -> None:
    """Write tensors by name; each is written in full, even if two share memory.

    Args:
        metadata: texts to write with them.

    Raises:
        TypeError: a name is no text, or a value no tensor.
    """
    for name, value in tensors.items():
        if not isinstance(name, str) or not isinstance(value, TensorState):
            raise ArgumentError(
                f"save_file must be given tensors by name, got {type(value).__name__} for {name!r}; save writes other "
                "values too"
            )
    arrays = {name: value.detach().contiguous().numpy() for name, value in tensors.items()}
    safetensors.numpy.save_file(arrays, filename, metadata)


def load_file(filename: str | os.PathLike) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file by name.

    Raises:
        ValueError: the file is damaged, of another format, or has an unsupported dtype: float8, complex.
    """
    try:
        arrays, _ = read_arrays(filename)
    except InputError as problem:
        raise ValueProblem(f"{problem}; load reads what torch.save wrote") from problem
    return {name: wrap(array) for name, array in arrays.items()}

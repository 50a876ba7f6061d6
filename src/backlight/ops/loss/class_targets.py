"""Targets that are class numbers: their checks, and rows of classes, one a position."""

import numpy as np

from backlight.dtypes import from_numpy_dtype
from backlight.errors import DimError, ShapeError, ValueProblem

LONG, BYTE = np.dtype(np.int64), np.dtype(np.uint8)


def class_numbers(target: np.ndarray):
    """Return the target of each position, as int64."""
    if target.ndim != 1:
        target = target.reshape(-1)
    return target if target.dtype == LONG else target.astype(LONG)


def class_rows(array: np.ndarray):
    """Return (positions, classes) of an array (classes,), (batch, classes) or (batch, classes, …)."""
    if array.ndim <= 2:
        return array if array.ndim == 2 else array[None]
    return np.moveaxis(array, 1, -1).reshape((array.size // (array.shape[1] or 1), array.shape[1]))


def class_weights(target: np.ndarray, weight: np.ndarray | None, ignore_index: int, classes: int, kind: np.dtype):
    """Return the target of each position, 0 where ignored, and its weight, 0 where ignored; None if all weigh 1."""
    target = target.reshape(-1)
    if 0 <= ignore_index < classes or not all_between(target, classes):
        counted = target != ignore_index
        target = np.where(counted, target, 0)
        return target, counted.astype(kind) if weight is None else weight.astype(kind)[target] * counted
    return target, None if weight is None else weight.astype(kind)[target]


def all_between(numbers: np.ndarray, limit: int) -> bool:
    """Tell whether all integers of an array are at least 0 and below the limit."""
    return not numbers.size or (numbers.min() >= 0 and numbers.max() < limit)


def check_classes(input: np.ndarray, target: np.ndarray, weight: np.ndarray | None, ignore_index: int) -> None:
    """Raise PyTorch's error unless each target is one of the input's classes: IndexError, or as `check_target`."""
    check_target(input, target, weight)
    classes = input.shape[min(input.ndim - 1, 1)]
    problem = None if all_between(target, classes) else wrong_class(target, classes, ignore_index)
    if problem is not None:
        raise problem


def check_target(input: np.ndarray, target: np.ndarray, weight: np.ndarray | None) -> None:
    """Raise PyTorch's error unless target and weight fit the input.

    Raises:
        ValueError: there are more or fewer targets than rows.
        RuntimeError: shapes or dtypes do not fit.
    """
    if input.ndim == 0:
        raise ValueProblem("Expected 1 or more dimensions (got 0); the last dim of the input counts the classes")
    _check_target_shape(input, target)
    if target.dtype != LONG and target.dtype != BYTE:
        name = from_numpy_dtype(target.dtype).old_name
        raise ShapeError(f"expected target dtype to be Long or Byte, but got {name}; convert it with .long()")
    classes = input.shape[min(input.ndim - 1, 1)]
    if weight is not None and weight.dtype != input.dtype:
        names = [from_numpy_dtype(one.dtype).old_name for one in (input, weight)]
        raise ShapeError(f"expected scalar type {names[0]} but found {names[1]}; convert the weight")
    if weight is not None and weight.shape != (classes,):
        raise ShapeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )


def _check_target_shape(input: np.ndarray, target: np.ndarray) -> None:
    if input.ndim > 1 and (target.ndim == 0 or input.shape[0] != target.shape[0]):
        found = target.shape[0] if target.ndim else 1
        raise ValueProblem(
            f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({found}); the shapes are "
            f"{list(input.shape)} and {list(target.shape)}"
        )
    if input.ndim <= 2 and (target.ndim > 1 or (input.ndim == 1 and target.size != 1)):
        raise ShapeError(
            f"0D or 1D target tensor expected, multi-target not supported; the shapes are {list(input.shape)} and "
            f"{list(target.shape)}"
        )
    wanted = [input.shape[0], *input.shape[2:]] if input.ndim > 2 else None
    if wanted and list(target.shape) != wanted:
        raise ShapeError(f"Expected target size {wanted}, got {list(target.shape)}; one class for each position")


def wrong_class(target: np.ndarray, classes: int, ignore_index: int) -> DimError | None:
    """Return PyTorch's error for a target that is no class, None if each is one."""
    wrong = target[((target < 0) | (target >= classes)) & (target != ignore_index)]
    if not wrong.size:
        return None
    return DimError(
        f"Target {wrong.flat[0]} is out of bounds. There are {classes} classes, counted from 0; to leave a "
        "position out, give it the target ignore_index"
    )

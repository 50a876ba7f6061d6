"""What in-place ops do first while a transform is open: NOTE [Captured tensors] in engine/mutation_checks.py."""

from collections.abc import Callable

import numpy as np

from backlight.engine.mutation_checks import refuse_captured, replaced_inside_transforms
from backlight.engine.tensor_state import TensorState, wrap
from backlight.ops import inplace


@replaced_inside_transforms(inplace.write_op)
def write_op(run: Callable, public: Callable, name: str, target: TensorState, args: tuple, kwargs: dict):
    """Refuse to write an op's result into what was captured."""
    refuse_captured(target, name, args, kwargs)
    return run(public, name, target, args, kwargs)


@replaced_inside_transforms(inplace.write_over)
def write_over(run: Callable, target: TensorState, public: Callable, values: tuple, name: str) -> None:
    """Refuse to let what was captured become something else."""
    refuse_captured(target, name, values)
    run(target, public, values, name)


@replaced_inside_transforms(inplace.store)
def store(run: Callable, target: TensorState, values: np.ndarray | float, name: str) -> None:
    """Refuse to store values in what was captured; `out=` may, as in PyTorch."""
    if name.endswith("_"):
        refuse_captured(target, name, (wrap(values) if isinstance(values, (np.ndarray, np.generic)) else values,))
    run(target, values, name)


@replaced_inside_transforms(inplace.refuse_writing)
def refuse_writing(run: Callable, target: TensorState, name: str | None = None) -> None:
    """Refuse any other write."""
    if name is not None and name.endswith("_"):
        refuse_captured(target, name)
    run(target, name)


@replaced_inside_transforms(inplace.alias_before_reshape)
def alias_before_reshape(run: Callable, target: TensorState, name: str, args: tuple):
    """Refuse to give what was captured another shape."""
    refuse_captured(target, name, args)
    return run(target, name, args)


@replaced_inside_transforms(inplace.written_directly)
def written_directly(
    run: Callable, target: TensorState, operand: TensorState | float, ufunc: Callable, name: str
) -> bool:
    """Leave all writes to the checked functions."""
    return False

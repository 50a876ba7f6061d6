"""What functions of `torch.distributed` are given, checked as PyTorch checks it."""

from collections.abc import Sequence

import numpy as np

from backlight.distributed.process_group import ProcessGroup, Work
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, writable
from backlight.errors import ArgumentError, ValueProblem
from backlight.tensor.tensor import Tensor


def array_of(tensor: Tensor, name: str = "tensor") -> np.ndarray:
    """Return a tensor's elements, as one row that shares its memory.

    As in PyTorch, a write to them does not count as a change of the tensor: gradients of what was computed before do
    not notice it.
    """
    if not isinstance(tensor, TensorState):
        raise ArgumentError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(tensor)} instead."
        )
    array = writable(tensor)
    if not array.flags.c_contiguous:
        raise ValueProblem("Tensors must be contiguous")
    return array.reshape(-1)


def arrays_of(tensors: Sequence[Tensor], count: int, name: str, like: np.ndarray | None = None) -> list[np.ndarray]:
    """Return the elements of a list with a tensor for each process, of dtype and size of `like` if that is given."""
    arrays = [array_of(one, name) for one in tensors]
    for one in arrays if like is not None else ():
        if one.dtype != like.dtype:
            dtypes = " and  ".join(str(from_numpy_dtype(each.dtype)) for each in (one, like))
            raise ValueProblem(f"Invalid usage of tensors with different dtypesFound {dtypes}")
    if len(arrays) != count:
        raise ValueProblem(f"{name} must have one tensor for each of the {count} processes, got {len(arrays)}")
    if like is not None and {one.size for one in arrays} - {like.size}:
        raise ValueProblem(f"the tensors of {name} must have the {like.size:,} elements of the other argument")
    return arrays


def check_only_at(root: str, name: str, given: object, here: bool) -> None:
    """Raise if the list that only one process has is missing there, or given elsewhere."""
    if here != bool(given):
        rule = f"must be specified on {root} rank." if here else f"must NOT be specified on non-{root} ranks."
        raise ValueProblem(f"Argument ``{name}`` {rule}")


def root_of(group: ProcessGroup, rank: int | None, group_rank: int | None, default: int | None = None) -> int:
    """Return the rank in a group that is meant by its number among all, or in the group."""
    rank = default if rank is None and group_rank is None else rank
    if rank is not None and group_rank is not None:
        raise ValueProblem("Can't specify both group_rank and global_rank")
    if rank is None and group_rank is None:
        raise ValueProblem("Must specify global_rank or group_rank")
    return group.rank_of(rank) if rank is not None else group_rank


def finished(work: Work, async_op: bool) -> Work | None:
    """Return the work, or wait for it."""
    if async_op:
        return work
    work.wait()
    return None

"""Any Python objects between processes, as pickle writes them: only between processes that trust each other."""

import pickle

import numpy as np

from backlight.distributed.arguments import check_only_at, root_of
from backlight.distributed.collectives import broadcast_array, gather_array
from backlight.distributed.groups import Group, group_of
from backlight.distributed.process_group import ProcessGroup
from backlight.errors import ValueProblem

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list"]


def all_gather_object(object_list: list, obj: object, group: Group = None) -> None:
    """Fill a list with an object of each process."""
    members = group_of(group)
    if len(object_list) != members.size():
        raise ValueProblem(
            f"object_list must have one place for each of {members.size()} processes: {len(object_list)}"
        )
    object_list[:] = _gathered(members, obj)


def gather_object(
    obj: object,
    object_gather_list: list | None = None,
    dst: int | None = None,
    group: Group = None,
    group_dst: int | None = None,
) -> None:
    """Fill a list on one process with an object of each."""
    members = group_of(group)
    target = root_of(members, dst, group_dst, 0)
    here = members.rank == target
    check_only_at("destination", "gather_list", object_gather_list, here)
    objects = _gathered(members, obj)
    if here:
        object_gather_list[:] = objects


def broadcast_object_list(
    object_list: list,
    src: int | None = None,
    group: Group = None,
    device: object = None,
    group_src: int | None = None,
) -> None:
    """Give all processes the objects of one of them, in place."""
    members = group_of(group)
    source = root_of(members, src, group_src, 0)
    count = len(object_list)
    object_list[:] = _broadcast(members, list(object_list), source)
    if len(object_list) != count:
        raise ValueProblem(f"object_list must be as long as on the source, {len(object_list)}, got {count}")


def scatter_object_list(
    scatter_object_output_list: list,
    scatter_object_input_list: list | None = None,
    src: int | None = None,
    group: Group = None,
    group_src: int | None = None,
) -> None:
    """Give each process one object of a list that one process has, in the first place of a list."""
    members = group_of(group)
    if not scatter_object_output_list:
        raise ValueProblem("Expected argument scatter_object_output_list to be a list of size at least 1.")
    source = root_of(members, src, group_src, 0)
    if members.rank == source and len(scatter_object_input_list or ()) != members.size():
        raise ValueProblem(f"scatter_object_input_list must have an object for each of {members.size()} processes")
    scatter_object_output_list[0] = _broadcast(members, scatter_object_input_list, source)[members.rank]


def _gathered(group: ProcessGroup, obj: object) -> list:
    """Return an object of each process; texts of different lengths are filled up to the longest."""
    text = np.frombuffer(pickle.dumps(obj), np.uint8)
    sizes = np.empty(group.size(), np.int64)
    gather_array(group, np.array([text.size], np.int64), sizes, lambda: None).wait()
    mine = np.zeros(sizes.max(), np.uint8)
    mine[: text.size] = text
    everything = np.empty((group.size(), mine.size), np.uint8)
    gather_array(group, mine, everything, lambda: None).wait()
    return [pickle.loads(row[:size].tobytes()) for row, size in zip(everything, sizes)]


def _broadcast(group: ProcessGroup, obj: object, source: int) -> object:
    """Return the object of one process."""
    text = np.frombuffer(pickle.dumps(obj), np.uint8) if group.rank == source else np.empty(0, np.uint8)
    size = np.array([text.size], np.int64)
    broadcast_array(group, size, source).wait()
    text = text.copy() if group.rank == source else np.empty(size[0], np.uint8)
    broadcast_array(group, text, source).wait()
    return pickle.loads(text.tobytes())

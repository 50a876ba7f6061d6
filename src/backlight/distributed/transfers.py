"""Tensors from one process to another."""

from backlight.distributed.arguments import array_of, root_of
from backlight.distributed.groups import Group, group_of
from backlight.distributed.mpi import Alone
from backlight.distributed.process_group import ProcessGroup, Work
from backlight.errors import ValueProblem
from backlight.tensor.tensor import Tensor

__all__ = ["irecv", "isend", "recv", "send"]


def isend(
    tensor: Tensor, dst: int | None = None, group: Group = None, tag: int = 0, group_dst: int | None = None
) -> Work:
    """Begin to send a tensor to another process, which calls `recv` or `irecv`."""
    members, flat = group_of(group), array_of(tensor)
    target = root_of(members, dst, group_dst)
    _other(members, target, "destination")
    steps = members.transport.send(flat, target, tag)
    return members.begin(Work(members, f"send to {members.ranks[target]}", steps, {target}, collective=False))


def irecv(
    tensor: Tensor, src: int | None = None, group: Group = None, tag: int = 0, group_src: int | None = None
) -> Work:
    """Begin to receive a tensor from another process, by default from any, in place."""
    return _receive(tensor, src, group, tag, group_src, [])


def _receive(tensor: Tensor, src: int | None, group: Group, tag: int, group_src: int | None, sender: list[int]) -> Work:
    members, flat = group_of(group), array_of(tensor)
    source = None if src is None and group_src is None else root_of(members, src, group_src)
    _other(members, source, "source")
    steps = members.transport.receive(flat, source, tag, sender)
    asked = set() if source is None else {source}
    return members.begin(Work(members, "recv", steps, asked, collective=False))


def _other(group: ProcessGroup, rank: int | None, name: str) -> None:
    if isinstance(group.transport, Alone) or rank == group.rank:
        raise ValueProblem(
            f"Invalid {name} rank: {name} rank should not be the same as the rank of the current process."
        )


def send(
    tensor: Tensor, dst: int | None = None, group: Group = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Send a tensor to another process, which calls `recv` or `irecv`."""
    isend(tensor, dst, group, tag, group_dst).wait()


def recv(
    tensor: Tensor, src: int | None = None, group: Group = None, tag: int = 0, group_src: int | None = None
) -> int:
    """Receive a tensor from another process, by default from any, in place; return whose it is."""
    sender: list[int] = []
    _receive(tensor, src, group, tag, group_src, sender).wait()
    return group_of(group).ranks[sender[0]]

"""What the processes of a group do together, under PyTorch's names.

NOTE [Order of a reduction]
Each rank reduces one part of the data, always in the order of ranks, and sends the result to all. So all ranks get the
same bits, and every run does, whatever MPI library carries the bytes; they are as many as in a ring.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from enum import Enum

import numpy as np

from backlight.distributed.arguments import array_of, arrays_of, check_only_at, finished, root_of
from backlight.distributed.groups import Group, group_of
from backlight.distributed.mpi import Transport
from backlight.distributed.process_group import ProcessGroup, Work
from backlight.errors import ArgumentError, ValueProblem
from backlight.tensor.tensor import Tensor

__all__ = [
    "ReduceOp",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
]


class ReduceOp(Enum):
    """The ways in which processes put their tensors together."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


COMBINE = {
    ReduceOp.SUM: np.add,
    ReduceOp.AVG: np.add,
    ReduceOp.PRODUCT: np.multiply,
    ReduceOp.MIN: np.minimum,
    ReduceOp.MAX: np.maximum,
    ReduceOp.BAND: np.bitwise_and,
    ReduceOp.BOR: np.bitwise_or,
    ReduceOp.BXOR: np.bitwise_xor,
}
BITWISE = {ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR}


def shares(count: int, parts: int) -> list[int]:
    """Return the sizes of the parts into which so many elements are divided."""
    return [count * (part + 1) // parts - count * part // parts for part in range(parts)]


def share_of(rank: int, sizes: Sequence[int]) -> slice:
    """Return where a rank's part lies."""
    begin = sum(sizes[:rank])
    return slice(begin, begin + sizes[rank])


def reduced(parts: Sequence[np.ndarray], op: ReduceOp, out: np.ndarray) -> None:
    """Put the ranks' parts together, in the order of ranks."""
    combine = COMBINE[op]
    total, *others = parts
    for part in others:
        total = combine(total, part, out=out)
    if not others:
        np.copyto(out, total)
    if op is ReduceOp.AVG:
        np.divide(out, len(parts), out=out, casting="unsafe")


def reduce_array(transport: Transport, flat: np.ndarray, op: ReduceOp) -> None:
    """Reduce an array in place over all ranks (see NOTE [Order of a reduction])."""
    if transport.size == 1:
        return
    sizes = shares(flat.size, transport.size)
    mine = sizes[transport.rank]
    parts = np.empty((transport.size, mine), flat.dtype)
    transport.exchange(flat, sizes, parts, [mine] * transport.size)
    reduced(parts, op, flat[share_of(transport.rank, sizes)])
    transport.gather(flat, sizes)


def all_reduce_array(group: ProcessGroup, flat: np.ndarray, op: ReduceOp, name: str = "all_reduce") -> Work:
    """Begin to reduce a one-dimensional array in place."""
    what = f"{name} {op.name} of {flat.size:,} {flat.dtype}"
    return group.collective(what, lambda: reduce_array(group.transport, flat, op))


def all_reduce_shared(
    group: ProcessGroup, flats: Sequence[np.ndarray], out: np.ndarray, op: ReduceOp, name: str
) -> Work:
    """Begin to reduce the ranks' arrays into one, all of which all ranks see (see NOTE [Shared gradients]).

    Args:
        flats: one-dimensional, each rank's.
        out: the result.
    """
    mine = share_of(group.rank, shares(out.size, group.size()))
    what = f"{name} {op.name} of {out.size:,} {out.dtype}"
    return group.collective(what, lambda: reduced([flat[mine] for flat in flats], op, out[mine]), ends_together=True)


def check_op(op: ReduceOp, array: np.ndarray) -> None:
    if not isinstance(op, ReduceOp):
        raise ArgumentError(f"op must be a ReduceOp, such as ReduceOp.SUM, got {op!r}")
    if op in BITWISE and array.dtype.kind not in "biu":
        raise ValueProblem(f"Cannot use ReduceOp.{op.name} with non-integral dtype {array.dtype}")
    if op in (ReduceOp.MIN, ReduceOp.MAX) and array.dtype.kind in "cW":
        raise ValueProblem(f"all_reduce does not support {op.name} on complex tensors")


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False) -> Work | None:
    """Reduce a tensor over all processes, in place: all get the same bits."""
    members, flat = group_of(group), array_of(tensor)
    check_op(op, flat)
    return finished(all_reduce_array(members, flat, op), async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduce a tensor over all processes, in place on one of them."""
    members, flat = group_of(group), array_of(tensor)
    check_op(op, flat)
    target = root_of(members, dst, group_dst)
    total = flat if members.rank == target else flat.copy()
    return finished(all_reduce_array(members, total, op, f"reduce to {target}"), async_op)


def broadcast(
    tensor: Tensor, src: int | None = None, group: Group = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Give all processes the tensor of one of them, in place."""
    members, flat = group_of(group), array_of(tensor)
    source = root_of(members, src, group_src)
    return finished(broadcast_array(members, flat, source), async_op)


def broadcast_array(group: ProcessGroup, flat: np.ndarray, source: int) -> Work:
    """Begin to fill an array with that of a rank of the group."""
    what = f"broadcast from {source} of {flat.size:,} {flat.dtype}"
    return group.collective(what, lambda: group.transport.broadcast(flat, source))


def gather_array(group: ProcessGroup, mine: np.ndarray, out: np.ndarray, done: Callable[[], None]) -> Work:
    """Begin to put the arrays of all ranks, of one size, one behind the other."""

    def move() -> None:
        out.reshape(-1, mine.size)[group.rank] = mine
        group.transport.gather(out, [mine.size] * group.size())
        done()

    return group.collective(f"all_gather of {mine.size:,} {mine.dtype}", move)


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Fill a list with the tensors of all processes."""
    members, mine = group_of(group), array_of(tensor)
    outs = arrays_of(tensor_list, members.size(), "tensor_list", mine)
    everything = np.empty(mine.size * len(outs), mine.dtype)

    def deliver() -> None:
        for out, part in zip(outs, np.split(everything, len(outs))):
            out[:] = part

    return finished(gather_array(members, mine, everything, deliver), async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Fill one tensor with those of all processes, one behind the other."""
    members, mine, out = (
        group_of(group),
        array_of(input_tensor, "input_tensor"),
        array_of(output_tensor, "output_tensor"),
    )
    if out.dtype != mine.dtype:
        raise ArgumentError("output tensor must have the same type as input tensor")
    if out.size != mine.size * members.size():
        raise ValueProblem("output tensor size must be equal to world_size times input tensor size")
    return finished(gather_array(members, mine, out, lambda: None), async_op)


all_gather_single = all_gather_into_tensor  # PyTorch's newer name


def _exchange(
    group: ProcessGroup, what: str, sent: np.ndarray, sizes: Sequence[int], places: Sequence[int], done: Callable
) -> Work:
    """Begin to send each rank its part; `done` gets the parts that came, one behind the other."""
    received = np.empty(sum(places), sent.dtype)

    def move() -> None:
        group.transport.exchange(sent, sizes, received, places)
        done(received)

    return group.collective(f"{what} of {sent.dtype}", move)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Reduce a tensor over all processes; each gets one part of the result."""
    members, out, sent = group_of(group), array_of(output, "output"), array_of(input, "input")
    check_op(op, sent)
    if out.dtype != sent.dtype:
        raise ArgumentError("input tensor must be the same type as the output tensor.")
    if sent.size != out.size * members.size():
        raise ValueProblem("input tensor must be the same size as output size times world size")
    return finished(_reduce_scattered(members, sent, out, op), async_op)


reduce_scatter_single = reduce_scatter_tensor  # PyTorch's newer name


def _reduce_scattered(members: ProcessGroup, sent: np.ndarray, out: np.ndarray, op: ReduceOp) -> Work:
    sizes = [out.size] * members.size()
    what = f"reduce_scatter {op.name} of {sent.size:,}"
    return _exchange(members, what, sent, sizes, sizes, lambda got: reduced(got.reshape(-1, out.size), op, out))


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce a list of tensors over all processes; each gets one of the results."""
    members, out = group_of(group), array_of(output, "output")
    sent = arrays_of(input_list, members.size(), "input_list", out)
    check_op(op, out)
    return finished(_reduce_scattered(members, np.concatenate(sent), out, op), async_op)


def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Fill a list on one process with the tensors of all."""
    members, mine = group_of(group), array_of(tensor)
    target = root_of(members, dst, group_dst, 0)
    here = members.rank == target
    check_only_at("destination", "gather_list", gather_list, here)
    outs = arrays_of(gather_list or (), members.size() if here else 0, "gather_list", mine)

    def deliver(received: np.ndarray) -> None:
        for out, part in zip(outs, np.split(received, len(outs) or 1)):
            out[:] = part

    places = [mine.size * here] * members.size()
    sizes = [mine.size * (rank == target) for rank in range(members.size())]
    work = _exchange(members, f"gather to {target} of {mine.size:,}", mine, sizes, places, deliver)
    return finished(work, async_op)


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give each process one tensor of a list that one process has."""
    members, out = group_of(group), array_of(tensor)
    source = root_of(members, src, group_src, 0)
    here = members.rank == source
    check_only_at("source", "scatter_list", scatter_list, here)
    sent = arrays_of(scatter_list or (), members.size() if here else 0, "scatter_list", out)
    sizes = [out.size * here] * members.size()
    places = [out.size * (rank == source) for rank in range(members.size())]
    everything = np.concatenate(sent) if here else out[:0]
    work = _exchange(
        members, f"scatter from {source} of {out.size:,}", everything, sizes, places, lambda got: np.copyto(out, got)
    )
    return finished(work, async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Send each process a part of a tensor's rows, and put the parts that come one behind the other."""
    members, out, sent = group_of(group), array_of(output, "output"), array_of(input, "input")

    def elements(tensor: Tensor, rows: Sequence[int] | None) -> list[int]:
        count = tensor.shape[0]
        if rows is None and count % members.size():
            raise ValueProblem("Tensor's dim 0 does not divide equally across group size")
        split = [count // members.size()] * members.size() if rows is None else list(rows)
        if sum(split) != count or len(split) != members.size():
            raise ValueProblem("Split sizes doesn't match total dim 0 size")
        width = tensor[:1].numel() if count else 1
        return [one * width for one in split]

    sizes, places = elements(input, input_split_sizes), elements(output, output_split_sizes)
    work = _exchange(members, "all_to_all", sent, sizes, places, lambda got: np.copyto(out, got))
    return finished(work, async_op)


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Send each process one tensor of a list, and fill a list with those that come."""
    members = group_of(group)
    outs = arrays_of(output_tensor_list, members.size(), "output_tensor_list")
    sent = arrays_of(input_tensor_list, members.size(), "input_tensor_list")
    places = [one.size for one in outs]

    def deliver(received: np.ndarray) -> None:
        for out, part in zip(outs, np.split(received, np.cumsum(places)[:-1])):
            out[:] = part

    work = _exchange(members, "all_to_all", np.concatenate(sent), [one.size for one in sent], places, deliver)
    return finished(work, async_op)


def barrier(
    group: Group = None, async_op: bool = False, device_ids: object = None, timeout: timedelta | None = None
) -> Work | None:
    """Wait until all processes have come here."""
    work = group_of(group).collective("barrier", lambda: None)
    if async_op:
        return work
    work.wait(timeout)
    return None


def monitored_barrier(group: Group = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Wait until all processes have come here; after the timeout name those that have not."""
    barrier(group, timeout=timeout)

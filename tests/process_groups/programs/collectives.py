"""Each function of torch.distributed on several processes: writes what each claim gives, by name, as JSON."""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist

CLAIMS = {}


def claim(function):
    CLAIMS[function.__name__] = function
    return function


def numbers(*shape, dtype=torch.float32):
    """Numbers that differ between ranks."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 7 + 3 * dist.get_rank() + 1) % 11).to(dtype).reshape(shape)


def reduction(op, dtype):
    def function():
        tensor = numbers(2, 3, dtype=dtype)
        dist.all_reduce(tensor, op=getattr(dist.ReduceOp, op))
        return tensor, str(tensor.dtype)

    CLAIMS[f"all_reduce_{op}_{dtype}"] = function


for op in ("SUM", "PRODUCT", "MIN", "MAX"):
    for dtype in (torch.float32, torch.float64, torch.int64, torch.uint8, torch.float16, torch.bfloat16):
        reduction(op, dtype)
for op in ("BAND", "BOR", "BXOR"):
    reduction(op, torch.int64)


@claim
def all_reduce_of_a_number():
    tensor = torch.tensor(2.0 + dist.get_rank())
    dist.all_reduce(tensor)
    return tensor


@claim
def async_all_reduce_is_a_work():
    tensors = [numbers(4) + place for place in range(5)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    waited = [work.wait() for work in works]
    return tensors, waited, [work.is_completed() for work in works]


@claim
def broadcast():
    tensor = numbers(5)
    dist.broadcast(tensor, src=1)
    return tensor


@claim
def reduce_changes_the_destination():
    tensor = numbers(3)
    dist.reduce(tensor, dst=1)
    return tensor if dist.get_rank() == 1 else None


@claim
def all_gather():
    out = [torch.zeros(2, 2) for _ in range(dist.get_world_size())]
    dist.all_gather(out, numbers(2, 2))
    return out


@claim
def all_gather_into_tensor():
    out = torch.zeros(2 * dist.get_world_size(), 3)
    dist.all_gather_into_tensor(out[:], numbers(2, 3))
    again = torch.zeros_like(out)
    dist.all_gather_single(again, numbers(2, 3))
    return out, again


@claim
def reduce_scatter():
    out = torch.zeros(3)
    dist.reduce_scatter(out, [numbers(3) * place for place in range(dist.get_world_size())])
    return out


@claim
def reduce_scatter_tensor():
    out = torch.zeros(3)
    dist.reduce_scatter_tensor(out, numbers(3 * dist.get_world_size()))
    again = torch.zeros(3)
    dist.reduce_scatter_single(again, numbers(3 * dist.get_world_size()))
    return out, again


@claim
def gather():
    here = dist.get_rank() == 0
    out = [torch.zeros(2) for _ in range(dist.get_world_size())] if here else None
    dist.gather(numbers(2), out, dst=0)
    return out


@claim
def scatter():
    out, here = torch.zeros(2), dist.get_rank() == 1
    dist.scatter(out, [numbers(2) + place for place in range(dist.get_world_size())] if here else None, src=1)
    return out


@claim
def all_to_all_single():
    out = torch.zeros(2 * dist.get_world_size(), 2)
    dist.all_to_all_single(out, numbers(2 * dist.get_world_size(), 2))
    return out


@claim
def all_to_all_single_with_splits():
    rank, world = dist.get_rank(), dist.get_world_size()
    sizes = [place + 1 for place in range(world)]
    out = torch.zeros((rank + 1) * world)
    dist.all_to_all_single(out, numbers(sum(sizes)), [rank + 1] * world, sizes)
    return out


@claim
def send_and_recv():
    rank, tensor = dist.get_rank(), torch.zeros(3)
    if rank == 0:
        dist.send(torch.tensor([1.0, 2.0, 3.0]), 1)
    if rank == 1:
        return dist.recv(tensor, 0), tensor
    return tensor


@claim
def recv_from_any():
    rank, tensor = dist.get_rank(), torch.zeros(1)
    if rank == 1:
        dist.send(torch.ones(1), 0, tag=3)
    return (dist.recv(tensor, tag=3), tensor) if rank == 0 else None


@claim
def ring_of_irecv_and_isend():
    rank, world, out = dist.get_rank(), dist.get_world_size(), torch.zeros(100_000)
    works = [dist.irecv(out, (rank - 1) % world), dist.isend(torch.full((100_000,), float(rank)), (rank + 1) % world)]
    for work in works:
        work.wait()
    return out.sum() / 100_000


@claim
def objects():
    rank, world = dist.get_rank(), dist.get_world_size()
    gathered, sent, got = [None] * world, [{"a": rank}, "x" * rank], [None]
    dist.all_gather_object(gathered, {"rank": rank, "long": [1] * rank})
    dist.broadcast_object_list(sent, src=1)
    dist.scatter_object_list(got, [f"for {place}" for place in range(world)] if rank == 0 else None, src=0)
    at_one = [None] * world if rank == 1 else None
    dist.gather_object(rank, at_one, dst=1)
    return gathered, sent, got, at_one


@claim
def new_group():
    members, tensor = dist.new_group([0, 1]), numbers(2)
    rank = dist.get_rank()
    if rank < 2:
        dist.all_reduce(tensor, group=members)
    inside = rank < 2 and (dist.get_process_group_ranks(members), dist.get_group_rank(members, 1))
    return tensor, dist.get_rank(members), dist.get_world_size(members), inside


@claim
def a_write_does_not_count_as_a_change():
    tensor = numbers(2).requires_grad_()
    loss = (tensor * tensor).sum()
    dist.all_reduce(tensor.detach())
    loss.backward()
    return tensor._version, tensor, tensor.grad


@claim
def barrier_and_names():
    dist.barrier()
    return dist.is_initialized(), dist.is_available(), dist.is_nccl_available(), dist.is_torchelastic_launched()


def error(name, function):
    def run():
        try:
            function()
        except Exception as problem:
            kinds = (TypeError, ValueError, RuntimeError)
            return next(kind.__name__ for kind in kinds if isinstance(problem, kind)), str(problem).split("\n")[0]

    CLAIMS[f"error_{name}"] = run


def ones():
    return torch.ones(2)


error("twice", lambda: dist.init_process_group("gloo"))
error("no_tensor", lambda: dist.all_reduce([1.0]))
error("gather_list", lambda: dist.all_gather([ones()], torch.ones(2, dtype=torch.int64)))
error("sizes", lambda: dist.all_gather_into_tensor(ones(), ones()))
error("scatter_list", lambda: dist.scatter(ones(), [ones()] if dist.get_rank() else None, src=0))
error("to_itself", lambda: dist.send(ones(), dist.get_rank()))
error("splits", lambda: dist.all_to_all_single(ones(), torch.ones(dist.get_world_size() + 1)))
error("rank", lambda: dist.broadcast(ones(), 99))
error("no_source", lambda: dist.broadcast(ones()))


def plain(value):
    """Return a value as JSON can hold it."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


if __name__ == "__main__":
    dist.init_process_group("gloo")
    found = {name: plain(function()) for name, function in CLAIMS.items()}
    random = torch.randn(1001, generator=torch.Generator().manual_seed(dist.get_rank()))
    dist.all_reduce(random)
    found["bits"] = random.numpy().tobytes().hex()
    (Path(sys.argv[1]) / f"{dist.get_rank()}.json").write_text(json.dumps(found))
    dist.destroy_process_group()

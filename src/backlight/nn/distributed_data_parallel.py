"""A module that several processes train: each on its own batches, with the mean of all gradients.

NOTE [Buckets]
Gradients travel in buckets, flat arrays of up to 25 MB (the first up to 1 MB), in the reverse order of the
parameters, which is about the order in which a backward pass finishes them. As soon as a bucket's last gradient is
there, the group's thread begins to reduce it, while the pass goes on. Buckets are begun in their order, the same on all
ranks; the hook of the last parameter waits for all of them and writes the means into `.grad`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod

import numpy as np

from backlight.dispatch.observation import count_write
from backlight.distributed.collectives import ReduceOp, all_reduce_array, all_reduce_shared, broadcast_array
from backlight.distributed.groups import group_of
from backlight.distributed.objects import all_gather_object
from backlight.distributed.process_group import ProcessGroup, Work
from backlight.distributed.shared_memory import shared_blocks
from backlight.engine.grad_mode import modes
from backlight.engine.node import Output
from backlight.engine.tensor_state import TensorState, edge_of, wrap, writable
from backlight.errors import GraphError, ValueProblem
from backlight.nn.modules.module import Module
from backlight.nn.parameter import Parameter
from backlight.tensor.tensor import Tensor
from backlight.transforms.pytrees import tree_leaves

__all__ = ["DistributedDataParallel"]

FIRST_BUCKET = 1 << 20  # bytes
ALIGNED = 64  # bytes at whose multiples a bucket begins in shared memory
BUCKET_MB = 25
UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
    "your module has parameters that were not used in producing loss. You can enable unused parameter detection by "
    "passing the keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and "
    "by \nmaking sure all `forward` function outputs participate in calculating loss. \nIf you already have done the "
    "above, then the distributed data parallel module wasn't able to locate the output tensors in the return value of "
    "your module's `forward` function. Please include the loss function and the structure of the return value of "
    "`forward` of your module when reporting this issue (e.g. list, dict, iterable).\nParameter indices which did not "
    "receive grad for rank {rank}: {indices}\n They are {names}"
)


class Bucket:
    """Gradients that are reduced together (see NOTE [Buckets]).

    Args:
        params: the indices of its parameters, and their numbers of elements.
        dtype: the dtype of all of them.
    """

    def __init__(self, params: dict[int, int], dtype: np.dtype):
        ends = np.cumsum(list(params.values()))
        self.places = {number: slice(end - size, end) for (number, size), end in zip(params.items(), ends)}
        self.flat = self.mean = np.zeros(ends[-1], dtype)
        self.flats: list[np.ndarray] = []  # all ranks', where they are in shared memory; `mean` is apart then
        self.waiting = len(params)
        self.work: Work | None = None


class Reducer:
    """Averages the gradients of parameters over a group, while the backward pass computes them.

    Args:
        names: the names of the parameters.
        cap: the size of a bucket in bytes.
        finds_unused: whether to detect parameters that the loss does not depend on, instead of waiting for them.
    """

    def __init__(self, params: list[Parameter], names: list[str], group: ProcessGroup, cap: float, finds_unused: bool):
        self.params, self.names, self.group, self.finds_unused = params, names, group, finds_unused
        self.buckets = _buckets([(param.numel(), param._data.dtype) for param in params], cap)
        self.bucket_of = {number: bucket for bucket in self.buckets for number in bucket.places}
        self.ready: set[int] = set()
        self.unused: set[int] = set()
        self.begun = 0  # buckets
        self.expecting = False
        if group.size() > 1:
            self.share()
        for number, param in enumerate(params):
            param.register_post_accumulate_grad_hook(lambda _, number=number: self.arrived(number))

    def share(self) -> None:
        """Put the buckets into shared memory if possible (see NOTE [Shared gradients])."""
        ends = np.cumsum([-(-bucket.flat.nbytes // ALIGNED) * ALIGNED for bucket in self.buckets])
        blocks = shared_blocks(self.group, self.group.size() + 1, int(ends[-1]))
        for bucket, end in zip(self.buckets, ends) if blocks else ():
            size, dtype = bucket.flat.nbytes, bucket.flat.dtype
            begin = end - -(-size // ALIGNED) * ALIGNED
            *bucket.flats, bucket.mean = (block[begin : begin + size].view(dtype) for block in blocks)
            bucket.flat = bucket.flats[self.group.rank]

    def prepare(self, outputs: object) -> None:
        """Expect a backward from the outputs of a forward.

        Raises:
            RuntimeError: the previous backward had no gradients for some parameters.
        """
        if self.expecting and self.ready:
            missing = [number for number in range(len(self.params)) if number not in self.ready]
            said = {"indices": " ".join(map(str, missing)), "names": ", ".join(self.names[one] for one in missing)}
            raise GraphError(UNFINISHED.format(rank=self.group.rank, **said))
        self.ready.clear()
        self.begun, self.expecting = 0, True
        self.unused = _not_reached(outputs, self.params) if self.finds_unused else set()
        for bucket in self.buckets:
            bucket.waiting = len(bucket.places)

    def arrived(self, number: int) -> None:
        """Take the gradient of a parameter; after the last one, wait for all reductions."""
        if not self.expecting or number in self.ready:
            return
        if not self.ready:
            for one in self.unused - {number}:
                self.take(one)
        self.take(number)
        if len(self.ready) == len(self.params):
            self.finish()

    def take(self, number: int) -> None:
        """Copy a gradient into its bucket, and start reducing complete buckets."""
        bucket, grad = self.bucket_of[number], self.params[number]._grad
        self.ready.add(number)
        bucket.waiting -= 1
        if self.group.size() == 1:
            return
        if grad is None:
            bucket.flat[bucket.places[number]] = 0
        else:
            bucket.flat[bucket.places[number]] = np.ravel(grad._data)
        while self.begun < len(self.buckets) and not self.buckets[self.begun].waiting:
            begun = self.buckets[self.begun]
            name = f"bucket {self.begun} of gradients"
            if begun.flats:
                begun.work = all_reduce_shared(self.group, begun.flats, begun.mean, ReduceOp.AVG, name)
            else:
                begun.work = all_reduce_array(self.group, begun.flat, ReduceOp.AVG, name)
            self.begun += 1

    def finish(self) -> None:
        """Wait for all buckets, and write the means into `.grad`."""
        self.expecting = False
        if self.group.size() == 1:
            return
        used = np.ones(len(self.params), np.uint8)
        if self.finds_unused:
            used[list(self.unused)] = 0
            all_reduce_array(self.group, used, ReduceOp.MAX, "parameters in use").wait()
        for bucket in self.buckets:
            bucket.work.wait()
            for number, place in bucket.places.items():
                if used[number]:
                    _write(self.params[number], bucket.mean[place])


def _buckets(sizes: list[tuple[int, np.dtype]], cap: float) -> list[Bucket]:
    """Divide parameters, the last first, into buckets of one dtype each."""
    made: list[Bucket] = []
    filling: dict[np.dtype, dict[int, int]] = {}
    for number, (size, dtype) in reversed(list(enumerate(sizes))):
        params = filling.setdefault(dtype, {})
        params[number] = size
        if sum(params.values()) * dtype.itemsize >= (cap if made else min(FIRST_BUCKET, cap)):
            made.append(Bucket(filling.pop(dtype), dtype))
    return made + [Bucket(params, dtype) for dtype, params in filling.items()]


def _write(param: Parameter, mean: np.ndarray) -> None:
    """Make the mean of all ranks a parameter's gradient."""
    if param._grad is None:
        param._grad = wrap(mean.reshape(param.shape).copy())
        return
    count_write(param._grad, "DistributedDataParallel", (None, 0))
    np.copyto(writable(param._grad), mean.reshape(param.shape))


def _not_reached(outputs: object, params: list[Parameter]) -> set[int]:
    """Return the numbers of the parameters that no output depends on."""
    tensors = [one for one in tree_leaves(outputs) if isinstance(one, TensorState)]
    stack = [edge_of(one) for one in tensors if one._edge is not None]
    seen: set[int] = set()
    while stack:
        edge = stack.pop()
        edge = edge.node if edge.__class__ is Output else edge
        if id(edge) in seen:
            continue
        seen.add(id(edge))
        if not edge.is_leaf_edge:
            stack += [one for one in edge.edges if one is not None]
    return {number for number, param in enumerate(params) if id(param) not in seen}


class DistributedDataParallel(Module):
    """A module whose gradients are averaged over all processes of a group, during the backward.

    All processes start with the parameters and buffers of rank 0. Each computes on its own part of a batch; after
    `backward()` all have bit for bit the same gradients, so their optimizers make the same steps.

    Args:
        device_ids: None: there is only the CPU.
        output_device: None.
        dim: ignored.
        broadcast_buffers: before each forward, give all processes the buffers of rank 0.
        init_sync: start with the parameters and buffers of rank 0, after checking that the shapes agree.
        process_group: by default all processes.
        bucket_cap_mb: the size of a bucket of gradients in megabytes, 25 by default.
        find_unused_parameters: set it if the loss does not depend on all parameters in every step.
        check_reduction: ignored.
        gradient_as_bucket_view: ignored; gradients keep their own memory.
        static_graph: the same as `find_unused_parameters`.

    Raises:
        ValueError: there is no process group, or devices are given.
        RuntimeError: no parameter requires grad, or shapes differ between processes.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[int] | None = None,
        output_device: int | None = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ):
        super().__init__()
        self.process_group = group_of(process_group)
        named = [(name, param) for name, param in module.named_parameters() if param.requires_grad]
        if not named:
            raise GraphError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        if device_ids or output_device is not None:
            raise ValueProblem(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/"
                f"multiple-device GPU modules or CPU modules, but got device_ids {list(device_ids or ())}, "
                f"output_device {output_device}, and module parameters {{device(type='cpu')}}."
            )
        self.module, self.device_ids, self.output_device, self.dim = module, None, None, dim
        self.device = named[0][1].device
        self.broadcast_buffers, self.static_graph = broadcast_buffers, static_graph
        self.find_unused_parameters, self.gradient_as_bucket_view = find_unused_parameters, gradient_as_bucket_view
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        params = [param for _, param in named]
        if init_sync and self.process_group.size() > 1:
            _check_shapes(self.process_group, params)
            _broadcast(self.process_group, [*module.parameters(), *module.buffers()])
        cap = (BUCKET_MB if bucket_cap_mb is None else bucket_cap_mb) * (1 << 20)
        finds = find_unused_parameters or static_graph
        self.reducer = Reducer(params, [name for name, _ in named], self.process_group, cap, finds)

    def forward(self, *inputs, **kwargs):
        """Run the module; if gradients are recorded, prepare for a backward."""
        if self.require_forward_param_sync and self.broadcast_buffers and self.process_group.size() > 1:
            _broadcast(self.process_group, list(self.module.buffers()))
        outputs = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = modes.grad_enabled and self.require_backward_grad_sync
        if self.require_forward_param_sync:
            self.reducer.prepare(outputs)
        return outputs

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, forwards and their backwards accumulate gradients in this process only."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before


def _check_shapes(group: ProcessGroup, params: list[Parameter]) -> None:
    """Raise on every rank if the parameters differ between ranks."""
    shapes: list[list[tuple]] = [[]] * group.size()
    all_gather_object(shapes, [(str(param.dtype), *param.shape) for param in params], group)
    for rank, theirs in enumerate(shapes):
        if len(theirs) != len(shapes[0]):
            raise GraphError(
                f"DDP expects same model across all ranks, but Rank {rank} has {len(theirs)} params, while rank 0 has "
                f"inconsistent {len(shapes[0])} params."
            )
        for number, (own, first) in enumerate(zip(theirs, shapes[0])):
            if own != first:
                raise GraphError(
                    f"[{rank}]: params[{number}] in this process with sizes {list(own[1:])} appears not to match sizes "
                    f"of the same param in process 0. There it has {list(first[1:])} of {first[0]}, here of {own[0]}"
                )


def _broadcast(group: ProcessGroup, tensors: list[Tensor]) -> None:
    """Give all ranks the tensors of rank 0, in one message."""
    if not tensors:
        return
    arrays = [writable(tensor) for tensor in tensors]
    message = np.concatenate([np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in arrays])
    broadcast_array(group, message, 0).wait()
    begin = 0
    for tensor, array in zip(tensors, arrays):
        part = message[begin : begin + prod(array.shape) * array.itemsize]
        begin += part.size
        if group.rank:
            count_write(tensor, "DistributedDataParallel", (None, 0))
            np.copyto(array, part.view(array.dtype).reshape(array.shape))

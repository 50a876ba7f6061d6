"""The interpreter of one vmap: it meets each op that one of its batched tensors goes into, and finds the op's rule."""

from backlight.dispatch.interpreters import UNHANDLED, Interpreter, local
from backlight.errors import GraphError
from backlight.kernels.state_blocks import block
from backlight.transforms.vmap.batched_tensor import BatchedTensor, batched
from backlight.transforms.vmap.function_rules import rule_of_whole
from backlight.transforms.vmap.op_call import Call
from backlight.transforms.vmap.rule_lookup import rule_of
from backlight.transforms.vmap.rules import inplace, memory, random  # noqa: F401 - they declare rules of whole functions


class Batching(Interpreter):
    """What one call of `vmap` does to the ops inside it.

    Args:
        size: how many elements the batch has.
        randomness: "error", "different" or "same": what random numbers are to the elements of the batch.
    """

    __slots__ = ("depth", "randomness", "size")

    opens_batches = True

    def __init__(self, size: int, randomness: str):
        self.size = size
        self.randomness = randomness
        self.depth = 1 + sum(one.opens_batches or one.has_batches for one in local.interpreters)

    def op(self, op, function, args: tuple, kwargs: dict):
        """Compute with whole batches, by the op's rule."""
        if not self.holds_one(args, kwargs):
            return UNHANDLED
        return rule_of(op)(Call(self, op, function, args, kwargs))

    def composite(self, function, args: tuple, kwargs: dict):
        """Do the same for a function that is no op; random ones are met where no tensor is batched, too."""
        rule, always = rule_of_whole(function)
        if rule is None or not (always or self.holds_one(args, kwargs)):
            return UNHANDLED
        return rule(self, function, args, kwargs)

    @block
    def again(self):
        """Let this vmap meet what a block, which runs below it, calls."""
        before = local.interpreters[:]
        try:
            local.interpreters.append(self)
            yield
        finally:
            local.interpreters[:] = before

    def holds_one(self, args: tuple, kwargs: dict) -> bool:
        """Tell whether one of the arguments, or of lists among them, is a batched tensor of this vmap."""
        for value in args:
            if value.__class__ is BatchedTensor:
                if value.batching is self:
                    return True
            elif (value.__class__ is list or value.__class__ is tuple) and self.holds_one(value, {}):
                return True
        return bool(kwargs) and self.holds_one(tuple(kwargs.values()), {})


def open_batchings() -> list[Batching]:
    """Return the vmaps that this thread is inside of, the outermost first."""
    return [one for one in local.interpreters if one.opens_batches]


def lowered(tensor, batchings=None):
    """Return a tensor with the batches of some vmaps (by default all that are open) as its first dims.

    Where the tensor is not batched by one of them it is repeated. By other vmaps it stays batched.
    """
    taken = open_batchings() if batchings is None else batchings
    physical, own = _bottom(tensor)
    left = [one for one in own if one not in taken]
    shape = tensor._data.shape
    if own != left + list(taken):
        physical = _rearranged(physical, own, left + list(taken), shape)
    for batching in left:
        physical = batched(physical, batching)
    return physical


def _bottom(tensor) -> tuple:
    """Return what lies below all batches, and the vmaps whose batches are its first dims."""
    own = []
    while tensor.__class__ is BatchedTensor:
        own.append(tensor.batching)
        tensor = tensor.physical
    return tensor, own[::-1]


def bottom_of(tensor, batchings: list):
    """Return the very tensor below all batches: the one that the graph knows.

    Raises:
        RuntimeError: it has not the batches of these vmaps as its first dims, so that gradients would be mixed up.
    """
    bottom, own = _bottom(tensor)
    if own != list(batchings):
        raise GraphError(
            "autograd.grad inside vmap needs inputs that are batched wherever the outputs are: an input that is the "
            "same for all has one gradient for the whole batch. Use torch.func.grad, which gives one for each element"
        )
    return bottom


def _rearranged(physical, own: list, wanted: list, shape: tuple):
    """Return a tensor whose batch dims, which stand in the order of `own`, stand in the order of `wanted`."""
    present = [one for one in wanted if one in own]
    if present != own:
        count = len(own)
        physical = physical.permute([own.index(one) for one in present] + list(range(count, count + len(shape))))
    sizes = [one.size if one in own else 1 for one in wanted]
    full = [one.size for one in wanted]
    physical = physical.reshape((*sizes, *shape))
    return physical if sizes == full else physical.expand((*full, *shape))


def raised(physical, batchings=None):
    """Return a tensor whose first dims are the batches of some vmaps as a batched tensor: what `lowered` undoes.

    It may be batched already, by other vmaps. The innermost vmap's batch comes first to be met.
    """
    bottom, own = _bottom(physical)
    order = own + list(open_batchings() if batchings is None else batchings)
    wanted = sorted(order, key=_depth)
    if wanted != order:
        rest = range(len(order), bottom._data.ndim)
        bottom = bottom.permute([*[order.index(one) for one in wanted], *rest])
    for batching in wanted:
        bottom = batched(bottom, batching)
    return bottom


def _depth(batching: Batching) -> int:
    return batching.depth


def batchings_of(tensors) -> list[Batching]:
    """Return the open vmaps that batch one of the tensors, the outermost first."""
    found = {one for tensor in tensors for one in _bottom(tensor)[1]}
    return [one for one in open_batchings() if one in found]

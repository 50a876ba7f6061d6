"""The interpreter of one vmap: it handles each op that gets one of its batched tensors, by the op's batching
rule: from the table, derived from its declaration, or the loop."""

from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter

from backlight.codegen.declaration import Op
from backlight.codegen.decompositions import parameter_names
from backlight.dispatch.interpreters import UNHANDLED, Interpreter, local
from backlight.errors import GraphError
from backlight.system.fork_safety import import_unforked
from backlight.tensor.tensor import Tensor
from backlight.transforms.vmap.batched_tensor import BatchedTensor, batched
from backlight.transforms.vmap.function_rules import rule_of_function
from backlight.transforms.vmap.loop_fallback import loop_over_op
from backlight.transforms.vmap.op_call import RULES, BatchedCall
from backlight.transforms.vmap.rules import memory, random  # noqa: F401 - they declare rules of functions
from backlight.transforms.vmap.rules.elementwise import PLAIN, elementwise


class VmapLevel(Interpreter):
    """One call of `vmap` on the stack of interpreters.

    Args:
        size: how many elements the batch has.
        randomness: "error", "different" or "same": how the elements of the batch draw random numbers.
    """

    __slots__ = ("depth", "randomness", "size")

    opens_batches = True

    def __init__(self, size: int, randomness: str):
        self.size = size
        self.randomness = randomness
        self.depth = 1 + sum(one.opens_batches or one.has_batches for one in local.interpreters)

    def op(self, op: Op, function: Callable, args: tuple, kwargs: dict):
        """Run the op's batching rule."""
        if not self.any_batched(args, kwargs):
            return UNHANDLED
        return rule_of(op)(BatchedCall(self, op, function, args, kwargs))

    def composite(self, function: Callable, args: tuple, kwargs: dict):
        """The same for a function that is not an op; random ones are handled even if no tensor is batched."""
        rule, always = rule_of_function(function)
        if rule is None or not (always or self.any_batched(args, kwargs)):
            return UNHANDLED
        return rule(self, function, args, kwargs)

    def any_batched(self, args: tuple, kwargs: dict) -> bool:
        """Tell whether one of the arguments, or of lists among them, is a batched tensor of this vmap."""
        for value in args:
            if value.__class__ is BatchedTensor:
                if value.level is self:
                    return True
            elif (value.__class__ is list or value.__class__ is tuple) and self.any_batched(value, {}):
                return True
        return bool(kwargs) and self.any_batched(tuple(kwargs.values()), {})


def open_levels() -> list[VmapLevel]:
    """Return the vmaps that this thread is inside of, the outermost first."""
    return [one for one in local.interpreters if one.opens_batches]


def to_physical(tensor: Tensor, levels: list | None = None):
    """Return a tensor with the batches of some vmaps (by default all open ones) as its first dims.

    It is repeated for vmaps that do not batch it, and stays batched by other vmaps.
    """
    taken = open_levels() if levels is None else levels
    physical, own = _unwrap(tensor)
    left = [one for one in own if one not in taken]
    shape = tensor._data.shape
    if own != left + list(taken):
        physical = _rearranged(physical, own, left + list(taken), shape)
    for level in left:
        physical = batched(physical, level)
    return physical


def _unwrap(tensor: Tensor) -> tuple:
    """Return the physical tensor below all batches, and the vmaps whose batches are its first dims."""
    own = []
    while tensor.__class__ is BatchedTensor:
        own.append(tensor.level)
        tensor = tensor.physical
    return tensor, own[::-1]


def unwrapped(tensor: Tensor, levels: list):
    """Return the tensor object below all batches: the one that is in the graph.

    Raises:
        RuntimeError: its first dims are not the batches of these vmaps, so that gradients would be mixed up.
    """
    bottom, own = _unwrap(tensor)
    if own != list(levels):
        raise GraphError(
            "autograd.grad inside vmap needs inputs that are batched wherever the outputs are: an input that is the "
            "same for all has one gradient for the whole batch. Use torch.func.grad, which gives one for each element"
        )
    return bottom


def _rearranged(physical: Tensor, own: list, wanted: list, shape: tuple):
    """Permute the batch dims of a tensor from the order of `own` to the order of `wanted`."""
    present = [one for one in wanted if one in own]
    if present != own:
        count = len(own)
        physical = physical.permute([own.index(one) for one in present] + list(range(count, count + len(shape))))
    sizes = [one.size if one in own else 1 for one in wanted]
    full = [one.size for one in wanted]
    physical = physical.reshape((*sizes, *shape))
    return physical if sizes == full else physical.expand((*full, *shape))


def to_batched(physical: Tensor, levels: list | None = None):
    """Return a tensor whose first dims are the batches of some vmaps as a batched tensor: the inverse of `to_physical`.

    It may already be batched by other vmaps. The result is nested in the order of the vmaps, the innermost outside.
    """
    bottom, own = _unwrap(physical)
    order = own + list(open_levels() if levels is None else levels)
    wanted = sorted(order, key=attrgetter("depth"))
    if wanted != order:
        rest = range(len(order), bottom._data.ndim)
        bottom = bottom.permute([*[order.index(one) for one in wanted], *rest])
    for level in wanted:
        bottom = batched(bottom, level)
    return bottom


def levels_of(tensors: Iterable[Tensor]) -> list[VmapLevel]:
    """Return the open vmaps that batch one of the tensors, the outermost first."""
    found = {one for tensor in tensors for one in _unwrap(tensor)[1]}
    return [one for one in open_levels() if one in found]


_NOT_ELEMENTWISE = {"dim", "dims", "reduction", "axis"}

# They fill the table; imported when an op first gets a batched tensor.
_RULE_MODULES = ("dims", "indexing", "layers", "losses", "linalg", "shapes")


def rule_of(op: Op):
    """Return the batching rule of an op."""
    _fill_table()
    rule = RULES.get(op.name)
    if rule is None:
        rule = RULES[op.name] = _derived(op)
    return rule


@cache
def _fill_table() -> None:
    for family in _RULE_MODULES:
        import_unforked(f"backlight.transforms.vmap.rules.{family}")


def _derived(op: Op):
    options = {param.name for param in op.params}
    if op.name in PLAIN or (op.promote and not options & _NOT_ELEMENTWISE):
        return elementwise
    if op.decomposed is not None and not set(op.residuals) & set(parameter_names(op.decomposed)):
        return by_decomposition
    return loop_over_op


def by_decomposition(call: BatchedCall):
    """Run the op's decomposition."""
    with call.inside():
        return call.op.decomposed(**call.given)

"""Forward mode along many directions at once: batched tangents of unbatched values.

NOTE [Directions]
One call of a function gives its tangents for all columns of a Jacobian. Its values are the same for all of them, so
only tangents are batched. The batch belongs to the level: its vmap is on the stack only while the level computes
tangents, so that values are computed once, and the function never sees a batched tensor. A transform inside (`jacrev`
in a Hessian) gets plain tensors, too, and the level computes the tangents of its results.
"""

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import as_strided as strided

from backlight.codegen.declaration import Op
from backlight.codegen.forward_mode import Level, level
from backlight.codegen.op_table import TENSOR_OPS
from backlight.dispatch.interpreters import UNHANDLED
from backlight.engine.tensor_state import writable
from backlight.engine.views import positions_in, same_part
from backlight.errors import GraphError
from backlight.kernels.state_blocks import block
from backlight.layouts import contiguous_format
from backlight.tensor.tensor import Tensor
from backlight.transforms.vmap.batched_tensor import BatchedTensor, batched
from backlight.transforms.vmap.function_rules import rule_of_function
from backlight.transforms.vmap.interpreter import VmapLevel


class _DirectionsLevel(VmapLevel):
    """The vmap of a level's directions; it also interprets a backward that is run for a tangent."""

    __slots__ = ()

    sees_backward = True


class Directions(Level):
    """A level whose tangents are batched, one element for each direction.

    Args:
        count: how many directions there are.
        randomness: "error" or "same", as in vmap: the directions share their random numbers.
    """

    __slots__ = ("vmap_level",)

    has_batches = True

    def __init__(self, count: int, randomness: str = "error"):
        super().__init__()
        self.vmap_level = _DirectionsLevel(count, randomness)

    def composite(self, function: Callable, args: tuple, kwargs: dict):
        """Refuse random functions, as vmap does."""
        rule, always = rule_of_function(function)
        return rule(self.vmap_level, function, args, kwargs) if always else UNHANDLED

    @block
    def outside(self):
        """Replace this level on the stack by its vmap within the block."""
        with super().outside(), self.vmap_level.reenter():
            yield

    def push_forward(self, op: Op, function: Callable, args: tuple, kwargs: dict, outs: tuple) -> list:
        """Compute the tangents for all directions at once."""
        if op.name == "as_strided":
            return [self.view_of(self.tangent_of(args[0]), args[0], outs[0])]
        with self.vmap_level.reenter():
            return super().push_forward(op, function, args, kwargs, outs)

    def view_of(self, tangent: Tensor, base: Tensor, tensor: Tensor):
        """Return the same view of each direction."""
        if tangent.__class__ is not BatchedTensor:
            return super().view_of(tangent, base, tensor)
        below, model = tangent.physical, writable(base)
        array, count = writable(below), self.vmap_level.size
        is_contiguous = model.flags.c_contiguous and array.size == count * model.size
        if not is_contiguous or (array.size and not array[0].flags.c_contiguous):
            raise GraphError(
                "forward mode along several directions needs tensors whose elements lie row by row, where memory is "
                "shown again (as_strided), or written to after views of it were made: call .contiguous() on it first"
            )
        first = np.arange(count).reshape((count, *(1,) * tensor._data.ndim)) * model.size
        rows = strided(array, (count, model.size), (array.strides[0], array.itemsize))
        part = same_part(rows[0], model, tensor._data)
        start = (part.__array_interface__["data"][0] - rows.__array_interface__["data"][0]) // array.itemsize
        seen = strided(rows[:, start:], (count, *part.shape), (rows.strides[0], *part.strides))
        return batched(TENSOR_OPS.as_strided(below, first + positions_in(base, tensor), seen), self.vmap_level)

    def zeros(self, tensor: Tensor):
        """Return a tangent of zeros that may be written to."""
        return batched(TENSOR_OPS.clone(self._repeated(TENSOR_OPS.filling_zeros(tensor))), self.vmap_level)

    def match_layout(self, tangent: Tensor, tensor: Tensor):
        """Return a tangent whose directions have the tensor's memory layout, if that is contiguous."""
        if tangent.__class__ is not BatchedTensor:
            return super().match_layout(tangent, tensor)
        data, model = tangent.physical._data, tensor._data
        if data.size == 0 or not model.flags.c_contiguous or data[0].flags.c_contiguous:
            return tangent
        with self.vmap_level.reenter():
            return TENSOR_OPS.clone(tangent, memory_format=contiguous_format)

    def columns(self, tangent: Tensor):
        """Return a tangent with the directions as its first dim; one that is the same for all is repeated."""
        if tangent.__class__ is BatchedTensor and tangent.level is self.vmap_level:
            return tangent.physical
        return self._repeated(tangent)

    def _repeated(self, tensor: Tensor):
        return TENSOR_OPS.expand(tensor.unsqueeze(0), (self.vmap_level.size, *tensor._data.shape))

    def direction(self, rows: Tensor):
        """Return a tangent of this level from rows, one for each direction."""
        return batched(rows, self.vmap_level)


def directions(count: int, randomness: str = "error") -> level:
    """Return a context with a level of forward mode for `count` directions."""
    return level(Directions(count, randomness))

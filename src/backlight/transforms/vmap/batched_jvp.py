"""Forward mode along many directions at once: tangents with a batch, of values that have none.

NOTE [Directions]
A function is pushed along all columns of a Jacobian in one call. Its values are the same for all of them, so only
tangents are batched. The batch belongs to the level: its vmap is on the stack while the level works tangents out, and
at no other time, so that values are computed once, and nothing that the function does can meet a batched tensor. A
transform inside (`jacrev` in a Hessian) finds plain tensors, too, and the level pushes what it computes.
"""

import numpy as np
from numpy.lib.stride_tricks import as_strided as strided

from backlight.codegen.forward_mode import Level, level
from backlight.codegen.op_table import TENSOR_OPS
from backlight.dispatch.interpreters import UNHANDLED
from backlight.engine.tensor_state import writable
from backlight.engine.views import positions_in, same_part
from backlight.errors import GraphError
from backlight.kernels.state_blocks import block
from backlight.layouts import contiguous_format
from backlight.transforms.vmap.batched_tensor import BatchedTensor, batched
from backlight.transforms.vmap.function_rules import rule_of_whole
from backlight.transforms.vmap.interpreter import Batching


class _Batch(Batching):
    """The vmap of a level's directions; a backward that is run for a tangent meets it."""

    __slots__ = ()

    sees_backward = True


class Directions(Level):
    """A level whose tangents are batches, one element a direction.

    Args:
        count: how many directions there are.
        randomness: "error" or "same": what vmap says of random numbers, which the directions share.
    """

    __slots__ = ("batching",)

    has_batches = True

    def __init__(self, count: int, randomness: str = "error"):
        super().__init__()
        self.batching = _Batch(count, randomness)

    def composite(self, function, args: tuple, kwargs: dict):
        """Let random functions be refused, as vmap does."""
        rule, always = rule_of_whole(function)
        return rule(self.batching, function, args, kwargs) if always else UNHANDLED

    @block
    def outside(self):
        """Take this level off the stack within the block, and let its batch be met instead."""
        with super().outside(), self.batching.again():
            yield

    def push_forward(self, op, function, args: tuple, kwargs: dict, outs: tuple) -> list:
        """Work tangents out for all directions at once."""
        if op.name == "as_strided":
            return [self.view_of(self.tangent_of(args[0]), args[0], outs[0])]
        with self.batching.again():
            return super().push_forward(op, function, args, kwargs, outs)

    def view_of(self, whole, base, tensor):
        """Return the same view of each direction."""
        if whole.__class__ is not BatchedTensor:
            return super().view_of(whole, base, tensor)
        below, model = whole.physical, writable(base)
        array, count = writable(below), self.batching.size
        whole_rows = model.flags.c_contiguous and array.size == count * model.size
        if not whole_rows or (array.size and not array[0].flags.c_contiguous):
            raise GraphError(
                "forward mode along several directions needs tensors whose elements lie row by row, where memory is "
                "shown again (as_strided), or written to after views of it were made: call .contiguous() on it first"
            )
        first = np.arange(count).reshape((count, *(1,) * tensor._data.ndim)) * model.size
        rows = strided(array, (count, model.size), (array.strides[0], array.itemsize))
        part = same_part(rows[0], model, tensor._data)
        start = (part.__array_interface__["data"][0] - rows.__array_interface__["data"][0]) // array.itemsize
        seen = strided(rows[:, start:], (count, *part.shape), (rows.strides[0], *part.strides))
        return batched(TENSOR_OPS.as_strided(below, first + positions_in(base, tensor), seen), self.batching)

    def zeros(self, tensor):
        """Return a tangent of zeros that may be written to."""
        return batched(TENSOR_OPS.clone(self._repeated(TENSOR_OPS.filling_zeros(tensor))), self.batching)

    def match_layout(self, tangent, tensor):
        """Return a tangent whose directions lie in memory as the tensor does, where it has its elements row by row."""
        if tangent.__class__ is not BatchedTensor:
            return super().match_layout(tangent, tensor)
        data, model = tangent.physical._data, tensor._data
        if data.size == 0 or not model.flags.c_contiguous or data[0].flags.c_contiguous:
            return tangent
        with self.batching.again():
            return TENSOR_OPS.clone(tangent, memory_format=contiguous_format)

    def columns(self, tangent):
        """Return a tangent with the directions as its first dim; one that is the same for all is repeated."""
        if tangent.__class__ is BatchedTensor and tangent.batching is self.batching:
            return tangent.physical
        return self._repeated(tangent)

    def _repeated(self, tensor):
        return TENSOR_OPS.expand(tensor.unsqueeze(0), (self.batching.size, *tensor._data.shape))

    def direction(self, rows):
        """Return a tangent of this level made of rows, one a direction."""
        return batched(rows, self.batching)


def directions(count: int, randomness: str = "error") -> level:
    """Return a block with a level of forward mode on that pushes so many directions at once."""
    return level(Directions(count, randomness))

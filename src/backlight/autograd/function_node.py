"""The node of a custom Function: it runs the user's backward on tensors, and checks its results."""

import weakref
from collections.abc import Sequence

import numpy as np

from backlight.codegen.packed_nodes import SavedTensor, freed_before
from backlight.codegen.runtime_support import own_edge, restore, restore_tensor, version_of, with_tangents
from backlight.engine.node import Edges, Gradients, Node, modified, name_of_tensor, output_name
from backlight.engine.saved_tensors import Packed, innermost_hooks, kept_edge
from backlight.engine.tensor_state import TensorState, storage_of, wrap
from backlight.errors import ArgumentError, GraphError


class _SavedTensor:
    """A saved tensor, and its version at that time."""

    __slots__ = ("node", "tensor", "version")

    def __init__(self, node: Node, tensor: TensorState):
        self.node = weakref.ref(node)
        self.tensor = tensor
        self.version = version_of(tensor)

    def plain(self) -> tuple:
        """Return the saved tensor, and its gradient edge."""
        return self.tensor, kept_edge(self.tensor)

    def unpack(self):
        tensor = self.tensor
        if version_of(tensor) != self.version:
            raise modified(self.node(), tensor._data, tensor._storage, self.version, name_of_tensor(tensor))
        return tensor


class _SavedOutput:
    """An output that its own node saved: without the tensor, which would hold the node in a cycle."""

    __slots__ = ("data", "node", "number", "storage", "version")

    def __init__(self, node: Node, tensor: TensorState):
        self.node = weakref.ref(node)
        self.number = tensor.output_nr
        self.data = tensor._data
        self.storage = storage_of(tensor)
        self.version = self.storage.version

    def plain(self) -> tuple:
        """Return the saved tensor, without a place in the graph; `_PackedOutput` restores that."""
        return wrap(self.data, None, self.storage), None

    def unpack(self):
        node = self.node()
        if self.storage.version != self.version:
            raise modified(node, self.data, self.storage, self.version, output_name(node, self.number))
        return with_tangents(wrap(self.data, own_edge(node, self.number), self.storage), node, self.number)


class _PackedOutput:
    """An output that its own node saved, packed."""

    __slots__ = ("node", "number", "packed")

    def __init__(self, node: Node, number: int, packed: Packed):
        self.node = node
        self.number = number
        self.packed = packed

    def unpack(self):
        return self.packed.unpack(own_edge(self.node(), self.number))


class FunctionNode(Node):
    """The node of one call of a Function: it runs the user's backward on tensors and checks its results."""

    __slots__ = ("ctx", "input_metas", "output_metas", "outputs", "tensor_places")

    wants_undefined = True
    freed_slots = ("saved_tensors",)

    def backward(self, grad: Gradients, edges: Edges, keep: bool):
        """Run the user's backward on arrays."""
        arrived = (grad,) if self.outputs == 1 else grad or (None,) * self.outputs
        found = self.call([None if one is None else wrap(one) for one in arrived])
        if not keep:
            self.free()
        return tuple(
            None if one is None or self.edges[i] is None else restore(self.fitting(i, one)._data, self.input_metas[i])
            for i, one in enumerate(found)
        )

    def backward_graph(self, grad: Gradients, edges: Edges):
        """Run the user's backward on tensors, recorded."""
        found = self.call((grad,) if self.outputs == 1 else grad or (None,) * self.outputs)
        return tuple(
            None if one is None or self.edges[i] is None else restore_tensor(self.fitting(i, one), self.input_metas[i])
            for i, one in enumerate(found)
        )

    def call(self, grads: Sequence) -> list:
        """Call the user's backward, and return the gradients of the tensors among the inputs."""
        if self.ctx._materialize:
            grads = [_zeros(meta) if one is None else one for one, meta in zip(grads, self.output_metas)]
        found = self.function._run_backward(self.ctx, *grads)
        return self.of_tensors(found if isinstance(found, tuple) else (found,))

    def of_tensors(self, found: tuple) -> list:
        """Select the gradients of tensors; the other inputs must have none."""
        expected = len(self.ctx.needs_input_grad)
        if len(found) > expected and all(one is None for one in found[expected:]):
            found = found[:expected]
        if len(found) != expected:
            raise GraphError(
                f"function {self.name()} returned an incorrect number of gradients (expected {expected}, got "
                f"{len(found)}); backward returns one gradient, or None, for each input of forward\n  "
                f"{self.name()} was made at {self.where}"
            )
        for place, one in enumerate(found):
            if place not in self.tensor_places and one is not None:
                raise GraphError(
                    f"function {self.name()} returned a gradient different than None at position {place + 1}, but the "
                    "corresponding forward input was not a Variable"
                )
            if one is not None and not isinstance(one, TensorState):
                raise GraphError(f"expected Variable or None (got {type(one).__name__}); it is gradient {place}")
        return [found[place] for place in self.tensor_places]

    def fitting(self, i: int, grad: TensorState):
        """Return a gradient whose shape is its input's, or broadcasts from it.

        Raises:
            RuntimeError: the shape is another.
        """
        wanted, found = self.input_metas[i][0], tuple(grad._data.shape)
        if found != wanted:
            aligned = found[len(found) - len(wanted) :]
            if len(found) < len(wanted) or any(size not in (1, other) for size, other in zip(wanted, aligned)):
                raise GraphError(
                    f"Function {self.name()} returned an invalid gradient at index {i} - got {list(found)} but "
                    f"expected shape compatible with {list(wanted)}\n  {self.name()} was made at {self.where}: return "
                    "a gradient of its input's shape"
                )
        return grad

    def free(self) -> None:
        """Drop what `save_for_backward` saved; other attributes of ctx stay."""
        self.ctx._saved = None

    def __getattr__(self, name: str):
        if name == "ctx":  # not set yet
            raise AttributeError(name)
        return getattr(self.ctx, name)

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {hex(id(self))}>"


def _zeros(meta: tuple | None):
    return None if meta is None else wrap(np.zeros(*meta))


def saved_for(node: Node, tensors: Sequence, output: object, outputs: Sequence) -> tuple:
    """Return the tensors of save_for_backward in a form that detects in-place writes and makes no reference cycle."""
    before = output if isinstance(output, tuple) else (output,)
    recorded = {id(old): new for old, new in zip(before, outputs)}
    made = []
    for place, tensor in enumerate(tensors):
        if tensor is not None and not isinstance(tensor, TensorState):
            raise ArgumentError(
                f"save_for_backward can only save variables, but argument {place} is of type {type(tensor).__name__}"
            )
        made.append(None if tensor is None else _saved(node, tensor, recorded.get(id(tensor), tensor)))
    return tuple(made)


def _saved(node: Node, tensor: TensorState, own: TensorState):
    """Return one saved tensor, packed if there are hooks; `own` is the same tensor as returned to the caller."""
    hooks, is_output = innermost_hooks(), own.grad_fn is node
    if hooks is None:
        return _SavedOutput(node, own) if is_output else _SavedTensor(node, tensor)
    version_of(tensor)  # raises for a tensor made in inference mode
    if is_output:
        return _PackedOutput(weakref.ref(node), own.output_nr, Packed.unrecorded(hooks, own, None))
    return Packed.unrecorded(hooks, tensor, kept_edge(tensor))


def raw_saved(ctx) -> tuple:
    """Return the tensors of save_for_backward as SavedTensor objects."""
    return tuple(_raw(ctx, number) for number in range(len(ctx._saved or ())))


def _raw(ctx, number: int) -> SavedTensor:
    def read():
        if ctx._saved is None:
            return freed_before(ctx._node())
        one = ctx._saved[number]
        return one.packed if isinstance(one, _PackedOutput) else one.plain() if hasattr(one, "plain") else one

    def write(packed: Packed) -> None:
        saved = list(ctx._saved)
        old = saved[number]
        is_output = isinstance(old, _SavedOutput)
        saved[number] = _PackedOutput(old.node, old.number, packed) if is_output else packed
        ctx._saved = tuple(saved)

    return SavedTensor(read, write, lambda: ctx.saved_tensors[number])


class DelayedError(Node):
    """The node of the gradients of a once-differentiable function: fails when they are differentiated."""

    __slots__ = ("function_name", "outputs")

    def backward(self, grad: Gradients, edges: Edges, keep: bool):
        """Raise: there is no second derivative."""
        raise GraphError(
            "trying to differentiate twice a function that was marked with @once_differentiable; write "
            f"{self.function_name} without the decorator, in differentiable operations, to allow it"
        )


DelayedError.__name__ = "Error"  # what PyTorch prints

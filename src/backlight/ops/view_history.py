"""Histories of tensors that were written to: of the base of a view, of the base's other views.

NOTE [Writing to a view]
When a view is written to, its base changes too. The base's new history is a CopySlices: it passes the gradient of the
slice to the node of the write, which it keeps inside, and the rest to the base as it was. Every live view of the base
then gets a new history that starts at the base (AsStridedBackward0), as PyTorch does lazily and we do at once, since
live views during a recorded write are rare.
"""

import weakref
from collections.abc import Callable, Iterator
from itertools import chain

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.codegen.op_table import ARRAY_OPS, TENSOR_OPS
from backlight.dispatch.interpreters import interpreted, uninterpreted
from backlight.engine.grad_mode import enable_grad
from backlight.engine.hook_calls import retain_gradient
from backlight.engine.node import Edge, Edges, Node, Output, extra_of, freed, new_node, node_and_number
from backlight.engine.tensor_state import Gradient, TensorState, edge_of, wrap
from backlight.engine.views import CUSTOM, live_views, positions_in, shows_parts, stale_view
from backlight.errors import ShapeError
from backlight.ops.memory_overlap import SHARED_PLACES
from backlight.ops.type_promotion import holds_complex

set_edge = TensorState._edge.__set__


def edge_of_values(tensor: TensorState):
    """Return the edge of a tensor's values before a write: for a view, directly from its base, not through other views.

    PyTorch does so too: hooks of those views belong to their old values, not to the written ones.
    """
    if tensor._view is None or tensor._edge is None:
        return tensor._edge
    base = tensor._view[0]
    with uninterpreted():
        return _shown(base, base, tensor)._edge


def _shown(base: TensorState, memory: TensorState, view: TensorState):
    """Return a view of a tensor with the memory of the base that it is a view of, with a history from there."""
    positions = positions_in(memory, view)
    if shows_parts(memory, view):
        return view_of_parts(base, positions=positions, data=view._data)
    return as_strided_view(base, positions=positions, data=view._data)


def rewrite_history(target: TensorState, result: TensorState, before: Edge | None = None, ends: int = 2) -> None:
    """Give `target` the history of `result`, and update its base and the base's other views."""
    tuple(rewritten_history(target, result, before, ends))


def rewritten_history(target: TensorState, result: TensorState, before: Edge | None = None, ends: int = 2) -> Iterator:
    """Return an iterator that does what `rewrite_history` does; run in C, it is not interrupted by signals.

    Args:
        before: the edge by which the node of the write leads to what a view showed before.
        ends: how many edges that node has in PyTorch, if we recorded none.
    """
    if interpreted.blocks:
        with uninterpreted():
            edges = _new_edges(target, result._edge, before, ends)
    else:
        edges = _new_edges(target, result._edge, before, ends)
    steps = map(set_edge, *zip(*edges))
    retaining = [pair for pair in edges if pair[0]._retains_grad]
    return chain(steps, *(_move_retained_gradient(*pair) for pair in retaining)) if retaining else steps


def _new_edges(target: TensorState, edge: Edge | None, before: Edge | None, ends: int) -> list[tuple]:
    """Return each tensor whose edge changes, with the new edge, when the values of `edge` are written into `target`."""
    if target._view is None:
        base, found = target, [(target, edge)]
        if not target._views:
            return found
    else:
        base = target._view[0]
        kinds = (base._data.dtype, target._data.dtype) if shows_parts(base, target) else None
        edge = copy_slices(base, positions_in(base, target), edge, before, ends, kinds)
        found = [(base, edge)]
    written = wrap(base._data, edge)
    for view in sorted(live_views(base), key=lambda view: view is not target):  # PyTorch's order: the written one first
        if view._view[1] is CUSTOM:
            found.append((view, stale_view(view)))
        else:
            found.append((view, _shown(written, base, view)._edge))
    return found


def _move_retained_gradient(tensor: TensorState, edge: Edge) -> Iterator:
    """Retain the gradient of a tensor's new value, and stop retaining the old one's once the iterator is run."""
    node, number = node_and_number(tensor._edge)
    retain_gradient(tensor, edge)
    return map(node.extra.retained.pop, (number,), (None,)) if node.extra is not None else iter(())


class CopySlices(Node):
    """The node of a base of which a view was written to: see NOTE [Writing to a view].

    Its edges are those of the write's node, but for the first, which leads to the base as it was.
    """

    __slots__ = ("inner", "kinds", "positions", "shape")

    def __getattr__(self, name: str):
        """Look up saved values in the node of the write."""
        inner = self.inner
        if inner is None or not name.startswith(("_saved", "_raw_saved")):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(inner, name)

    def backward(self, grad: np.ndarray, edges: Edges, keep: bool):
        """Return the gradients of the base as it was, and of what was written."""
        if self.kinds is not None:
            found = self._through_parts(grad, lambda part: self._run().backward(part, edges, keep), edges, ARRAY_OPS)
            if not keep:
                self.free()
            return found
        first, *others = self._run().backward(np.take(grad, self.positions), edges, keep)
        if not keep:
            self.free()
        if edges[0] is None:
            return (None, *others)
        _refuse_shared(self.positions)
        full = np.array(grad, order="C")
        full.reshape(-1)[self.positions.reshape(-1)] = 0 if first is None else first.reshape(-1)
        return (full, *others)

    def backward_graph(self, grad: TensorState, edges: Edges):
        """Do what `backward` does, on tensors."""
        if self.kinds is not None:
            return self._through_parts(grad, lambda part: self._run().backward_graph(part, edges), edges, TENSOR_OPS)
        first, *others = self._run().backward_graph(take_positions(grad, positions=self.positions), edges)
        if edges[0] is None:
            return (None, *others)
        _refuse_shared(self.positions)
        if first is None:
            first = wrap(np.zeros(self.positions.shape, grad._data.dtype))
        return (put_positions(grad, first, positions=self.positions), *others)

    def _through_parts(self, grad: Gradient, run: Callable, edges: Edges, ops):
        """Do what `backward` does where a view of other numbers was written to: real ones of complex ones, or reversed.

        Args:
            run: the derivative of the write.
        """
        whole, split = [kind.kind in "cW" for kind in self.kinds]
        parts = ops.to_pairs(grad) if whole else grad
        part = ops.take_positions(parts, positions=self.positions)
        first, *others = run(ops.of_pairs(part) if split else part)
        if edges[0] is None:
            return (None, *others)
        _refuse_shared(self.positions)
        if first is None:
            written = ops.new_zeros(parts, self.positions.shape)
        else:
            written = ops.to_pairs(first) if split else first
        found = ops.put_positions(parts, written, positions=self.positions)
        return (ops.of_pairs(found) if whole else found, *others)

    def _run(self) -> Node:
        if self.inner is None:
            raise freed(self)
        return self.inner

    def edge_of_part(self):
        """Return the edge of what was written, as a part of the base: through this node."""
        with enable_grad():
            if self.kinds is not None:
                base, view = self.kinds
                shape = self.positions.shape[:-1] if view.kind in "cW" else self.positions.shape
                whole = wrap(np.broadcast_to(np.zeros((), base), self.shape), self)
                return view_of_parts(whole, positions=self.positions, data=np.empty(shape, view))._edge
            base = wrap(np.broadcast_to(np.zeros(()), self.shape), self)
            return as_strided_view(base, positions=self.positions, data=np.empty(self.positions.shape))._edge

    def free(self) -> None:
        """Drop the node of the write, with what it saved."""
        inner, self.inner = self.inner, None
        if inner is not None:
            inner.free()


def _refuse_shared(positions: np.ndarray) -> None:
    """Raise if elements of what was written to share places: PyTorch writes a gradient there, which it then refuses."""
    if positions.size > 1:
        first = positions[(0,) * positions.ndim]
        starts = ((0,) * dim + (1,) for dim, size in enumerate(positions.shape) if size > 1)
        if any(positions[start].flat[0] == first for start in starts):
            raise ShapeError(SHARED_PLACES)


class PassThrough(Node):
    """Replaces the inner node of a CopySlices if the write is not one node whose first edge is the view's."""

    __slots__ = ()

    def __init__(self, edge: Edge | None, ends: int):
        self.edges = (None,) * ends if edge is None else (None, edge)

    def backward(self, grad: np.ndarray, edges: Edges, keep: bool):
        """Return nothing for the base in the slice, and the gradient for what was written there."""
        return (None, grad if self.edges[-1] is not None else None)[: len(edges)]


class _SliceEdge:
    """The `output_edge` of a node inside a CopySlices, which saved its own output."""

    __slots__ = ("node",)

    def __init__(self, node: CopySlices):
        self.node = weakref.ref(node)

    def __call__(self):
        return self.node().edge_of_part()


def copy_slices(
    base: TensorState, positions: np.ndarray, edge: Edge | None, before: Edge | None, ends: int, kinds: tuple | None
) -> CopySlices:
    """Return the node of a base after a write to the elements at flat positions.

    Args:
        edge: that of what was written.
        before: the edge by which its node leads to what was there.
        ends: how many edges a node would have that was not recorded.
        kinds: the dtypes of the base and of the view, where only one of them is complex.
    """
    alone = edge is not None and edge.__class__ is not Output and not edge.is_leaf_edge and edge.outputs == 1
    inner = edge if alone and edge.edges and edge.edges[0] is before else PassThrough(edge, ends)
    edges = (edge_of(base), *inner.edges[1:])
    node = new_node(CopySlices, edges, inner=inner, positions=positions, shape=base._data.shape, kinds=kinds)
    if inner is edge:
        extra_of(inner).output_edge = _SliceEdge(node)
    return node


@op(node="AsStridedBackward0", complex="linear")
def as_strided_view(xp, input, *, positions: np.ndarray, data: np.ndarray):
    """A view of a base that was written to: `data` is the view's memory."""
    return data


@as_strided_view.derivative("input", formula="grad added at the view's places, 0 elsewhere")
def as_strided_view_input(grad, input_shape, positions, ops):
    return ops.add_positions(grad, shape=input_shape, positions=positions)


@op(node="AsStridedBackward0", complex="own")
def view_of_parts(xp, input: Array, *, positions: np.ndarray, data: np.ndarray):
    """The same of a view that shows real numbers of a complex base, or complex numbers of a real one."""
    return data


@view_of_parts.derivative("input", formula="grad added at the view's places, 0 elsewhere")
def view_of_parts_input(grad, input_shape, input_dtype, positions, ops):
    whole = input_dtype.kind in "cW"
    shape = (*input_shape, 2) if whole else input_shape
    parts = ops.to_pairs(grad) if holds_complex(grad) else grad
    found = ops.add_positions(parts, shape=shape, positions=positions)
    return ops.of_pairs(found) if whole else found


@op(node="AsStridedBackward0", tangent="linear", complex="linear")
def take_positions(xp, input, *, positions: np.ndarray):
    """The elements at flat positions, in the shape of `positions`."""
    return xp.take(input, positions)


@take_positions.derivative("input", formula="grad added at the positions, 0 elsewhere")
def take_positions_input(grad, input_shape, positions, ops):
    return ops.add_positions(grad, shape=input_shape, positions=positions)


@op(node="AsStridedScatterBackward0", tangent="linear", complex="linear")
def add_positions(xp, input, *, shape: tuple, positions: np.ndarray):
    """Zeros of `shape` with the elements of `input` added at flat positions."""
    flat = xp.zeros(shape, input.dtype)
    xp.add.at(flat.reshape(-1), positions.reshape(-1), input.reshape(-1))
    return flat


@add_positions.derivative("input", formula="grad at the positions")
def add_positions_input(grad, positions, ops):
    return ops.take_positions(grad, positions=positions)


@op(node="AsStridedScatterBackward0", tangent="linear", complex="linear")
def put_positions(xp, input, values, *, positions: np.ndarray):
    """`input` with the elements at flat positions replaced by `values`."""
    out = xp.array(input, order="C")
    out.reshape(-1)[positions.reshape(-1)] = values.reshape(-1)
    return out


@put_positions.derivative("input", formula="grad outside the positions, 0 there")
def put_positions_input(grad, positions, ops):
    return ops.put_positions(grad, ops.new_zeros(grad, positions.shape), positions=positions)


@put_positions.derivative("values", formula="grad at the positions")
def put_positions_values(grad, positions, ops):
    return ops.take_positions(grad, positions=positions)


@op(complex="linear")
def new_zeros(xp, input, size: tuple):
    """Zeros of another shape, of the dtype of `input`; for derivatives."""
    return xp.zeros(size, input.dtype)

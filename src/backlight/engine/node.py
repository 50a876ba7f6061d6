"""Nodes of the backward graph, with the interface of PyTorch's `grad_fn`."""

import functools
import itertools
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from backlight.dispatch.anomaly_mode import anomaly
from backlight.dtypes import from_numpy_dtype
from backlight.engine.hooks import RemovableHandle
from backlight.engine.provenance import describe_place, line_number, user_place
from backlight.engine.storage import Storage
from backlight.engine.tensor_state import Gradient, TensorState
from backlight.errors import ArgumentError, GraphError
from backlight.kernels.native import core

next_sequence = itertools.count().__next__ if core is None else core.next_sequence

# Nodes that PyTorch wrote by hand: `name()` gives their C++ namespace too.
_IN_NAMESPACE = {"AccumulateGrad", "CopyBackwards", "CopySlices", "Error", "NotImplemented"}


Gradients = Gradient | list | None  # of a node: a list if it has several outputs, None if none arrived


class NodeExtra:
    """What few nodes have: hooks, metadata, tensors that retain their gradient, tangents of its outputs."""

    __slots__ = ("metadata", "output_edge", "outputs", "posthooks", "prehooks", "retained", "tangents", "tensor_hooks")

    def __init__(self):
        self.tensor_hooks = {}  # id -> (output number, hook)
        self.retained = {}  # output number -> weak reference to the tensor
        self.prehooks = {}
        self.posthooks = {}
        self.metadata = {}
        self.output_edge = None  # returns the edge of its output, where that is not the node itself
        self.tangents = {}  # output number -> what the output has in `_tangents`
        self.outputs = {}  # output number -> what `__torch_dispatch__` returned for it, where the node saved it


class Node:
    """One recorded op: where its gradients go (`edges`), what its derivatives need, and where it was made.

    Subclasses, one for each op, are made by codegen/generate.py; they add slots for saved values and the two methods
    `backward(grad, edges, keep)`, on arrays, and `backward_graph(grad, edges)`, on tensors. Both return one gradient
    (or None) for each edge; `edges` is `self.edges` with None where no gradient is wanted.
    """

    __slots__ = ("__weakref__", "code", "edges", "extra", "lasti", "sequence")

    is_leaf_edge = False
    outputs = 1
    wants_undefined = False  # whether it runs even if no gradient arrives
    freed_slots = ()  # the slots that `free` empties
    saved_slots = ()  # the same with the kind of each, in PyTorch's packing order (codegen/packed_nodes.py)

    def __reduce_ex__(self, protocol: int):
        raise ArgumentError(f"cannot pickle '{type(self).__name__}' object; graphs are not copied: detach the tensor")

    def name(self) -> str:
        """Return the node's name, as PyTorch spells it."""
        name = type(self).__name__
        return f"torch::autograd::{name}" if name in _IN_NAMESPACE else name

    def forward_name(self) -> str:
        """Return what PyTorch's messages call the op that made this node: `MulBackward0` is `Mul`."""
        before, _, after = type(self).__name__.removesuffix("0").rpartition("Backward")
        return before + after

    @property
    def next_functions(self) -> tuple:
        """The nodes that receive this node's gradients, each with the number of its output."""
        return tuple(public_edge(edge) for edge in self.edges)

    @property
    def metadata(self) -> dict:
        """A dictionary that belongs to the user."""
        return extra_of(self).metadata

    def _sequence_nr(self) -> int:
        return self.sequence

    @property
    def itself(self):
        """The node of the graph; a copy of one that runs in its place (codegen/packed_nodes.py) has another."""
        return self

    @property
    def where(self) -> str:
        """The user's line that made this node: `file:line: source`."""
        return describe_place(self.code, self.lasti)

    @property
    def line(self) -> tuple[str, int]:
        """File name and line number of the user's line that made this node."""
        return self.code.co_filename, line_number(self.code, self.lasti)

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after this node has run; it may return other grad_inputs."""
        return RemovableHandle(extra_of(self).posthooks, hook)

    def register_prehook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(grad_outputs)` before this node runs; it may return other grad_outputs."""
        return RemovableHandle(extra_of(self).prehooks, hook)

    def backward_graph(self, grad: Gradients, edges: "Edges") -> tuple:
        """Run backward on tensors: the same rule, unless it computes something."""
        return self.backward(grad, edges, True)

    def free(self) -> None:
        """Drop what was saved for backward."""

    def __call__(self, *grads):
        """Run this node's derivative on gradients of its outputs; return a gradient for each edge (alone if one).

        Raises:
            TypeError: there are not as many gradients as outputs, or one is neither a tensor nor None.
        """
        self._check_call(grads)
        if not self.wants_undefined and all(grad is None for grad in grads):
            return None if len(self.edges) == 1 else (None,) * len(self.edges)
        found = tuple(self.backward_graph(grads[0] if self.outputs == 1 else list(grads), self.edges))
        return found[0] if len(found) == 1 else found

    def _check_call(self, grads: tuple) -> None:
        if len(grads) != self.outputs:
            raise ArgumentError(
                f"expected {self.outputs} arguments, got {len(grads)} instead; {self.name()} takes the gradient of "
                "each of its outputs"
            )
        for place, grad in enumerate(grads):
            if grad is not None and not isinstance(grad, TensorState):
                raise ArgumentError(f"argument {place} is not a Variable; it must be a tensor or None")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self))}>"


class Output:
    """The edge to one output of a node that has several."""

    __slots__ = ("node", "number")

    is_leaf_edge = False

    def __init__(self, node: Node, number: int):
        self.node = node
        self.number = number


Edge = Node | Output | TensorState
Edges = Sequence[Edge | None]


class AccumulateGrad(Node):
    """The node that PyTorch shows at a leaf: it adds gradients to `variable.grad`."""

    __slots__ = ("variable",)

    def __init__(self, variable: TensorState):
        self.variable = variable
        self.edges = ()
        self.sequence = sys.maxsize
        self.code = None
        self.lasti = 0
        self.extra = None

    def __call__(self, *grads) -> tuple:
        """Add a gradient to `variable.grad`."""
        self._check_call(grads)
        (grad,) = grads
        if grad is not None:
            present = self.variable._grad
            self.variable._grad = grad.clone() if present is None else present + grad
        return ()

    def _sequence_nr(self) -> int:
        return 2**64 - 1


def new_node(node_class: type[Node], edges: tuple, **slots) -> Node:
    """Return a node that is made now, by the user's line; `slots` are those that its class adds."""
    node = node_class()
    node.edges, node.sequence, node.extra = edges, next_sequence(), None
    node.code, node.lasti = user_place()
    for name, value in slots.items():
        setattr(node, name, value)
    return node


def accumulator(leaf: TensorState) -> AccumulateGrad:
    """Return the AccumulateGrad of a leaf.

    It is the same node as long as anything holds it; its hooks and metadata stay with the leaf (`extra_of`).
    """
    reference = leaf._accumulator
    node = None if reference is None else reference()
    if node is None:
        node = AccumulateGrad(leaf)
        leaf._accumulator = weakref.ref(node)
    return node


class AccumulatorReference:
    """A leaf's reference to its AccumulateGrad once that has hooks or metadata: it keeps those alive.

    It does not keep the node, which holds the leaf: a leaf whose accumulator has hooks dies by reference count too.
    """

    __slots__ = ("extra", "leaf", "node")

    def __init__(self, node: AccumulateGrad):
        self.extra = node.extra
        self.leaf = weakref.ref(node.variable)
        self.node = weakref.ref(node)

    def __call__(self) -> AccumulateGrad:
        node = self.node()
        if node is None:
            node = AccumulateGrad(self.leaf())
            node.extra = self.extra
            self.node = weakref.ref(node)
        return node


def node_and_number(edge: Edge):
    """Split an edge into (node, output number)."""
    return (edge.node, edge.number) if edge.__class__ is Output else (edge, 0)


def public_edge(edge: Edge | None) -> tuple:
    """Return an edge as PyTorch shows it: (node, number of its output)."""
    if edge is None:
        return (None, 0)
    if edge.is_leaf_edge:
        return (accumulator(edge), 0)
    return node_and_number(edge)


class GradientEdge(NamedTuple):
    """One output of a node: its gradient can be requested like a tensor's.

    `ownership_token` keeps alive what PyTorch needs kept; here the node does.
    """

    node: Node
    output_nr: int
    ownership_token: object = None


def edge_from_public(edge: GradientEdge):
    """Return the edge that the engine uses."""
    if edge.node.__class__ is AccumulateGrad:
        return edge.node.variable
    return edge.node if edge.node.outputs == 1 else Output(edge.node, edge.output_nr)


def extra_of(node: Node) -> NodeExtra:
    """Return the node's rarely used part, made at the first call."""
    if node.extra is None:
        node.extra = NodeExtra()
        if node.__class__ is AccumulateGrad:
            node.variable._accumulator = AccumulatorReference(node)
    return node.extra


def freed(node: Node) -> GraphError:
    """Return the error for a node whose saved tensors are gone."""
    return GraphError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        f"saved tensors after calling backward.\n  {node.name()} was made at {node.where}"
    )


def output_name(node: Node, number: int = 0) -> str:
    """Return what PyTorch's messages call one output of a node: `output 0 of Mul`."""
    return f"output {number} of {node.forward_name()}"


def rename_node(node: Node, name: str) -> None:
    """Give a node the name that PyTorch's node of the same result has."""
    node.__class__ = _renamed_class(type(node), name)


@functools.cache
def _renamed_class(cls: type, name: str) -> type:
    return type(name, (cls,), {"__slots__": ()})


def name_of_tensor(tensor: TensorState) -> str | None:
    """Return what PyTorch's messages call a tensor: the output that it is, or None for a leaf."""
    return None if tensor.grad_fn is None else output_name(tensor.grad_fn, tensor.output_nr)


def origin(tensor: TensorState) -> str:
    """Return the line of a message that says where a tensor was made; none for a leaf, which no recorded op made."""
    made_by = tensor.grad_fn
    return "" if made_by is None else f"\n  It was made by {made_by.name()} at {made_by.where}"


def modified(node: Node, data: np.ndarray, storage: Storage, version: int, name: str | None) -> GraphError:
    """Return the error for a tensor (`name` is what messages call it) that was written to after it was saved."""
    from_type = from_numpy_dtype(data.dtype).old_name
    written = ""
    if storage.writer is not None:
        op_name, code, lasti = storage.writer
        written = f"\n  It was written by {op_name} at {describe_place(code, lasti)}"
    return GraphError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{from_type}Tensor {list(data.shape)}]{f', which is {name},' if name else ''} is at version "
        f"{storage.version}; expected version {version} instead. {_ANOMALY_HINT if anomaly.enabled else _HINT}"
        f"\n  {node.name()}, which saved it, was made at {node.where}{written}"
        "\n  Write to a copy (.clone()), or use the out-of-place form of that operation"
    )


_HINT = (
    "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
    "torch.autograd.set_detect_anomaly(True, check_nan=False)."
)
_ANOMALY_HINT = (
    "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in "
    "question was changed in there or anywhere later. Good luck!"
)

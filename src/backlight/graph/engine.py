"""The backward walk: collect, sort once by sequence number, run each node, add up what meets.

NOTE [One walk, two kinds of gradient]
Without create_graph gradients are plain arrays and no tensor is made on the way; with it they are tensors, and every
node runs its rules on tensors, so that the walk is itself recorded. All state of a run lives in the run: nodes are
not written to, and a backward may be started from a hook or from several threads.

NOTE [When leaves are written]
PyTorch writes a leaf's `.grad` as soon as its last gradient has arrived. Only hooks can see that moment: where there are
any, deliveries are counted and the order is kept; where there are none, leaves are written at the end, which is cheaper.
"""

import sys
import threading
from itertools import repeat
from operator import attrgetter

import numpy as np

from backlight.graph.hooks import HookDict, HookHandle
from backlight.graph.modes import set_recording
from backlight.graph.node import Output, extra_of, node_and_number
from backlight.graph.state import edge_of, storage_of, wrap

_by_sequence = attrgetter("sequence")
_accumulating = threading.RLock()
ndarray = np.ndarray
_nothing = repeat(None)


def run(roots, root_grads, *, keep_graph: bool, create_graph: bool, inputs=None) -> list:
    """Walk the graph backward from `roots`.

    Args:
        roots: edges to start from.
        root_grads: the gradient of each root: arrays, or tensors with create_graph.
        keep_graph: leave what nodes saved in place, for another backward.
        create_graph: record the walk.
        inputs: edges whose gradients are wanted. Then only what leads to them runs, and leaves are left alone.

    Returns:
        The gradient of each input (None where none arrived); an empty list without inputs.
    """
    walk = _Walk(keep_graph, create_graph)
    previous = set_recording(create_graph)
    try:
        with np.errstate(all="ignore"):
            order = walk.collect(roots)
            if inputs is not None:
                walk.restrict(order, inputs)
            if walk.watched:
                walk.count_deliveries(roots, order)
            walk.start(roots, root_grads)
            walk.run(order)
    finally:
        set_recording(previous)
    return walk.captured


class _Walk:
    """The state of one run."""

    __slots__ = ("keep", "graph", "buffers", "leaves", "watched", "pending", "owned", "masks", "captures", "captured")

    def __init__(self, keep, graph):
        self.keep = keep
        self.graph = graph
        self.buffers = {}  # node -> gradient of its output (a list of them if it has several)
        self.leaves = []
        self.watched = False  # whether a hook could see when a leaf is written
        self.pending = {}  # leaf -> edges that have yet to deliver
        self.owned = set()  # nodes whose buffer the walk made itself, so that it may add in place
        self.masks = None  # node -> edges that lead to an input, when inputs are given
        self.captures = None  # node -> [(output number, place in `captured`)]
        self.captured = []

    def collect(self, roots) -> list:
        """Return all nodes that the roots reach, last made first; note the leaves, and whether anybody watches."""
        buffers, leaves, stack, watched = self.buffers, self.leaves, [], False
        for edge in roots:
            node = edge.node if edge.__class__ is Output else edge
            if node not in buffers:
                buffers[node] = None
                (leaves if node.is_end else stack).append(node)
        order = []
        while stack:
            node = stack.pop()
            order.append(node)
            if node.extra is not None or node.wants_undefined:
                watched = True
            for edge in node.edges:
                if edge is None or edge in buffers:
                    continue
                if edge.__class__ is Output:
                    edge = edge.node
                    if edge in buffers:
                        continue
                buffers[edge] = None
                if edge.is_end:
                    leaves.append(edge)
                else:
                    stack.append(edge)
        order.sort(key=_by_sequence, reverse=True)
        self.watched = watched or any(
            leaf._hooks or leaf._post_accumulate_hooks or leaf._accumulator is not None for leaf in leaves
        )
        return order

    def count_deliveries(self, roots, order) -> None:
        """Count the edges that will deliver to each leaf (see NOTE [When leaves are written])."""
        pending = self.pending = dict.fromkeys(self.leaves, 0)
        for edge in roots:
            if edge.is_end:
                pending[edge] += 1
        for node in order:
            for edge in node.edges if self.masks is None else self.masks.get(node, ()):
                if edge is not None and edge.is_end:
                    pending[edge] += 1

    def restrict(self, order, inputs) -> None:
        """Keep only the edges that lead to one of `inputs`, and note which gradients to capture."""
        self.captured = [None] * len(inputs)
        self.captures = captures = {}
        for place, edge in enumerate(inputs):
            node, number = node_and_number(edge)
            captures.setdefault(node, []).append((number, place))
        leads = set(captures)
        self.masks = masks = {}
        for node in reversed(order):
            mask = tuple(
                edge if edge is not None and (edge.node if edge.__class__ is Output else edge) in leads else None
                for edge in node.edges
            )
            if any(edge is not None for edge in mask):
                leads.add(node)
                masks[node] = mask

    def start(self, roots, root_grads) -> None:
        """Put the first gradients in place."""
        for edge, grad in zip(roots, root_grads):
            node, number = node_and_number(edge)
            if node.outputs > 1:
                self.add_to_output(node, number, grad)
                continue
            self.buffers[node] = grad if self.buffers[node] is None else self.buffers[node] + grad
            if self.watched and node.is_end:
                self.delivered(node)

    def add_to_output(self, node, number, grad) -> None:
        """Add a gradient to what has arrived at one of several outputs of a node."""
        slots = self.buffers[node]
        if slots is None:
            slots = self.buffers[node] = [None] * node.outputs
        slots[number] = grad if slots[number] is None else slots[number] + grad

    def run(self, order) -> None:
        """Run the nodes in order: on the short path if nobody watches, else with every hook in its place."""
        if self.graph or self.watched or self.captures is not None:
            for node in order:
                self.run_watched(node)
        else:
            buffers, keep, owned, add_to_output = self.buffers, self.keep, self.owned, self.add_to_output
            for node in order:
                grad = buffers.pop(node)
                if grad is not None:
                    try:
                        node.walk(grad, keep, buffers, owned, add_to_output)
                    except Exception as problem:
                        _say_where(problem, node)
                        raise
                    grad = None
        if not self.watched:
            for leaf in self.leaves:
                self.finish_leaf(leaf)

    def run_watched(self, node) -> None:
        """Run one node between its hooks, keep gradients that were asked for, and hand its own on."""
        grad, self.buffers[node] = self.buffers[node], None
        edges = node.edges if self.captures is None else self.masks.get(node)
        if grad is None and not node.wants_undefined:
            self.hand_on(edges or (), _nothing)
            return
        if node.extra is not None:
            grad = before(node, grad, self.graph)
        if self.captures is not None and node in self.captures:
            self.capture(node, grad)
        if edges is None:
            return
        try:
            grads = node.backward_graph(grad, edges) if self.graph else node.backward(grad, edges, self.keep)
        except Exception as problem:
            _say_where(problem, node)
            raise
        if node.extra is not None and node.extra.posthooks:
            grads = after(node, grads, grad, self.graph)
        self.hand_on(edges, grads)

    def hand_on(self, edges, grads) -> None:
        """Add a node's gradients to what has arrived at the ends of its edges."""
        buffers, owned = self.buffers, self.owned
        for edge, grad in zip(edges, grads):
            if edge is None:
                continue
            if grad is not None:
                if edge.__class__ is Output:
                    self.add_to_output(edge.node, edge.number, grad)
                    continue
                present = buffers[edge]
                if present is None:
                    buffers[edge] = grad
                elif edge in owned:
                    np.add(present, grad, out=present)
                else:
                    total = buffers[edge] = present + grad
                    if total.__class__ is ndarray:
                        owned.add(edge)
            if self.watched and edge.is_end:
                present = None
                self.delivered(edge)

    def delivered(self, leaf) -> None:
        """Count one delivery to a leaf; the last one finishes it."""
        left = self.pending[leaf] = self.pending[leaf] - 1
        if left == 0:
            self.finish_leaf(leaf)

    def finish_leaf(self, leaf) -> None:
        """Write what arrived at a leaf into its `.grad`, or keep it for the caller who asked for it."""
        total, self.buffers[leaf] = self.buffers[leaf], None
        if total is None:
            return
        if self.captures is None:
            deposit(leaf, total, self.graph, owned=leaf in self.owned)
        elif leaf in self.captures:
            if leaf._hooks:
                total = _call_tensor_hooks(leaf._hooks.values(), total, self.graph)
            self.capture(leaf, total)

    def capture(self, node, grad) -> None:
        """Keep the gradient of those outputs of a node that the caller asked for."""
        for number, place in self.captures[node]:
            self.captured[place] = grad[number] if node.outputs > 1 else grad


def _say_where(problem: Exception, node) -> None:
    """Add to an exception which node was running and which line made it."""
    place = f"raised while running {node.name()}, made at {node.where}"
    if not any("raised while running" in note for note in getattr(problem, "__notes__", ())):
        problem.add_note(place)


def deposit(leaf, grad, graph: bool, *, owned: bool = False) -> None:
    """Add an arrived gradient to a leaf's `.grad`, between the leaf's hooks."""
    if leaf._hooks:
        grad = _call_tensor_hooks(leaf._hooks.values(), grad, graph)
    node = None if leaf._accumulator is None else leaf._accumulator()
    extra = None if node is None else node.extra
    if extra is not None and extra.prehooks:
        grad = _call_prehooks(node, grad, graph)
    _accumulate_into_grad(leaf, grad, graph, owned)
    if leaf._post_accumulate_hooks:
        for hook in list(leaf._post_accumulate_hooks.values()):
            hook(leaf)
    if extra is not None and extra.posthooks:
        after(node, (), grad, graph)


def add_to_grad(tensor, grad, graph: bool) -> None:
    """Add a gradient to `.grad` of any tensor, and tell its hooks."""
    _accumulate_into_grad(tensor, grad, graph, False)
    for hook in list((tensor._post_accumulate_hooks or {}).values()):
        hook(tensor)


def _accumulate_into_grad(leaf, grad, graph, owned) -> None:
    """Add `grad` to `leaf.grad`: stolen if nobody else holds it, copied if somebody may (NOTE [Stealing])."""
    with _accumulating:
        present = leaf._grad
        if graph:
            leaf._grad = grad.clone() if present is None else present + grad
            return
        dtype = leaf._data.dtype
        if grad.dtype is not dtype and grad.dtype != dtype:
            grad, owned = grad.astype(dtype), True
        if present is None:
            leaf._grad = wrap(grad if owned or _is_ours(grad) else _own_copy(grad))
        elif present._data.__class__ is ndarray:
            np.add(present._data, grad, out=present._data)
            storage_of(present).wrote("AccumulateGrad", (None, 0))
        else:
            present._data = present._data + grad


def _is_ours(grad) -> bool:
    """Tell whether nothing but the walk holds this array.

    NOTE [Stealing]
    Held at this point: the caller's local names and arguments on the way here, and one place in the tuple that the
    node returned. One holder more (another edge's gradient, a hook's tensor, what the user passed to backward) and
    the array must be copied. A view is always copied: its base belongs to somebody.
    """
    if grad.__class__ is not ndarray:
        return True
    return grad.base is None and grad.flags.c_contiguous and sys.getrefcount(grad) <= _HELD_BY_THE_WALK


_HELD_BY_THE_WALK = 6


def _own_copy(grad):
    return np.array(grad, order="C", copy=True)


def before(node, grad, graph):
    """Run tensor hooks, then prehooks, then keep gradients that were asked to be kept."""
    extra = node.extra
    if grad is None:
        return grad
    for number, hook in list(extra.tensor_hooks.values()):
        if node.outputs == 1:
            grad = _call_tensor_hooks((hook,), grad, graph)
        elif grad[number] is not None:
            grad[number] = _call_tensor_hooks((hook,), grad[number], graph)
    if extra.prehooks:
        grad = _call_prehooks(node, grad, graph)
    for number, reference in extra.retained.items():
        tensor = reference()
        arrived = grad if node.outputs == 1 else grad[number]
        if tensor is not None and arrived is not None:
            _retain(tensor, arrived, graph)
    return grad


def _retain(tensor, grad, graph) -> None:
    present = tensor._grad
    if graph:
        tensor._grad = grad.clone() if present is None else present + grad
    else:
        tensor._grad = wrap(_own_copy(grad) if present is None else present._data + grad)


def _call_tensor_hooks(hooks, grad, graph):
    """Let each hook see the gradient and replace it."""
    for hook in list(hooks):
        seen = grad if graph else wrap(grad)
        answer = hook(seen)
        if answer is None:
            if not graph:
                grad = seen._data
            continue
        _check_hook_answer(hook, answer, seen)
        grad = answer if graph else answer._data
    return grad


def _check_hook_answer(hook, answer, seen) -> None:
    if not hasattr(answer, "_data"):
        raise TypeError(
            f"expected Variable, but hook returned '{type(answer).__name__}'; "
            "return a tensor of the gradient's shape, or None to leave it as it is"
        )
    name = getattr(hook, "__name__", type(hook).__name__)
    if tuple(answer._data.shape) != tuple(seen._data.shape):
        raise RuntimeError(
            f"hook '{name}' has changed the size of value: from {list(seen._data.shape)} to "
            f"{list(answer._data.shape)}; a hook must return a gradient of the shape that it was given"
        )
    if answer._data.dtype != seen._data.dtype:
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was {seen.type()} got {answer.type()}); "
            f"return {seen.dtype}"
        )


def _as_hook_tuple(node, grad, graph) -> tuple:
    grads = (grad,) if node.outputs == 1 else tuple(grad)
    return grads if graph else tuple(None if g is None else wrap(g) for g in grads)


def _from_hook_tuple(answer, like, graph) -> list:
    if not isinstance(answer, tuple):
        answer = (answer,)
    if len(answer) != len(like):
        raise RuntimeError(f"hook has returned an incorrect number of values (got {len(answer)}, but expected {len(like)})")
    return list(answer) if graph else [None if g is None else g._data for g in answer]


def _call_prehooks(node, grad, graph):
    for hook in list(node.extra.prehooks.values()):
        answer = hook(_as_hook_tuple(node, grad, graph))
        if answer is not None:
            arrived = (grad,) if node.outputs == 1 else grad
            replaced = _from_hook_tuple(answer, arrived, graph)
            grad = replaced[0] if node.outputs == 1 else replaced
    return grad


def after(node, grads, grad, graph):
    """Run posthooks: each sees (grad_inputs, grad_outputs) and may return other grad_inputs."""
    outputs = (None,) * node.outputs if grad is None else _as_hook_tuple(node, grad, graph)
    for hook in list(node.extra.posthooks.values()):
        seen = tuple(grads) if graph else tuple(None if g is None else wrap(g) for g in grads)
        answer = hook(seen, outputs)
        if answer is not None:
            grads = _from_hook_tuple(answer, seen, graph)
    return grads


def register_tensor_hook(tensor, hook) -> HookHandle:
    """Call `hook(grad)` when the gradient of `tensor`, which requires grad, is known."""
    node, number = node_and_number(edge_of(tensor))
    if node.is_end:
        if tensor._hooks is None:
            tensor._hooks = HookDict()
        return HookHandle(tensor._hooks, hook)
    return HookHandle(extra_of(node).tensor_hooks, (number, hook))

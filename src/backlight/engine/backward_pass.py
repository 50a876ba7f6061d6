"""One backward pass: collect the nodes, sort them once by sequence number, run each, add up gradients that meet.

NOTE [When leaves are written]
PyTorch writes a leaf's `.grad` as soon as its last gradient has arrived. Only hooks can see that moment: if there
are any, deliveries are counted and the order is kept; if there are none, leaves are written at the end, which is
cheaper, or when a node fails: then those whose gradients were complete.
"""

import sys
import weakref
from itertools import repeat
from operator import attrgetter

import numpy as np

from backlight.dispatch.anomaly_checks import checked_gradients
from backlight.dispatch.anomaly_mode import anomaly
from backlight.dispatch.forward_traceback import say_where
from backlight.engine.accumulate_grad import add_to_grad, may_be_stolen, refuse_moved
from backlight.engine.hook_calls import (
    after,
    before,
    before_capture,
    call_post_accumulate_hooks,
    call_prehooks,
    call_tensor_hooks,
)
from backlight.engine.node import Output, accumulator, add_to_buffer, node_and_number

_by_sequence = attrgetter("sequence")
ndarray = np.ndarray
getrefcount = sys.getrefcount
_nothing = repeat(None)
HOOKLESS = (type(None), weakref.ref)  # types of a leaf's `_accumulator` while that has no hooks (`extra_of`)


class BackwardPass:
    """The state of one backward pass."""

    __slots__ = (
        "buffers",
        "captured",
        "captures",
        "first_infinite",
        "graph",
        "has_hooks",
        "keep",
        "leaves",
        "lone_root",
        "masks",
        "observed",
        "owned",
        "pending",
        "roots",
        "targets",
    )

    def __init__(self, keep, graph, observed, roots=()):
        self.roots = roots
        self.first_infinite = None  # in anomaly mode: the node that first made an infinity of a finite gradient
        self.keep = keep
        self.graph = graph
        self.observed = observed
        self.buffers = {}  # node -> gradient of its output (a list of them if it has several)
        self.leaves = []
        self.has_hooks = False  # whether a hook could see when a leaf is written
        self.pending = {}  # leaf -> number of edges that have yet to deliver
        self.owned = set()  # nodes whose buffer this pass made itself, so that it may add in place
        self.masks = None  # node -> edges that lead to an input, when inputs are given
        self.targets = None  # the inputs' nodes and leaves, when inputs are given
        self.lone_root = None  # the only root, when inputs are given: its tensor hooks run even if it leads to no input
        self.captures = {}  # node or leaf -> [(output number, place in `captured`)]
        self.captured = []

    def collect(self, roots, since: int) -> list:
        """Return all nodes that the roots reach, last made first; note the leaves, and whether there are hooks.

        Nodes made before `since` are left out.
        """
        buffers, leaves, stack, has_hooks = self.buffers, self.leaves, [], anomaly.enabled
        for edge in roots:
            node = edge.node if edge.__class__ is Output else edge
            if node not in buffers:
                buffers[node] = None
                (leaves if node.is_end else stack).append(node)
        order = []
        while stack:
            node = stack.pop()
            order.append(node)
            if node.extra is not None:
                has_hooks = True
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
                elif edge.sequence >= since:
                    stack.append(edge)
        order.sort(key=_by_sequence, reverse=True)
        self.has_hooks = has_hooks or any(
            leaf._hooks or leaf._post_accumulate_hooks or leaf._accumulator.__class__ not in HOOKLESS for leaf in leaves
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

    def restrict(self, order, roots, inputs, into_grad) -> None:
        """Keep only the edges that lead to one of `inputs`, and note which gradients to capture."""
        targets = self.targets = set()
        self.lone_root = node_and_number(roots[0])[0] if len(roots) == 1 else None
        if not into_grad:
            self.captured = [None] * len(inputs)
        for place, edge in enumerate(inputs):
            node, number = node_and_number(edge)
            targets.add(node)
            if not into_grad:
                self.captures.setdefault(node, []).append((number, place))
        leads, masks = set(targets), {}
        if into_grad:  # as in PyTorch these run, though their gradients are not wanted
            masks = {node: [None] * len(node.edges) for node in targets if not node.is_end}
        for node in reversed(order):
            mask, useful = [], False
            for edge in node.edges:
                if edge in leads or (edge.__class__ is Output and edge.node in leads):
                    useful = True
                    mask.append(edge)
                else:
                    mask.append(None)
            if useful:
                leads.add(node)
                masks[node] = mask
        self.masks = masks

    def reaches(self, node) -> bool:
        """Tell whether a node or leaf runs, or has its gradient captured, in this pass."""
        return node in self.buffers and (self.masks is None or node in self.masks or node in self.targets)

    def start(self, roots, root_grads) -> None:
        """Put the gradients of the roots into the buffers."""
        for edge, grad in zip(roots, root_grads):
            node, number = node_and_number(edge)
            if node.outputs > 1:
                self.add_to_output(node, number, grad)
                continue
            self.buffers[node] = grad if self.buffers[node] is None else self.buffers[node] + grad
            if self.has_hooks and node.is_end:
                self.pending[node] -= 1
                if self.pending[node] == 0:
                    self.finish_leaf(node)

    def add_to_output(self, node, number, grad) -> None:
        """Add a gradient to what has arrived at one of several outputs of a node."""
        slots = self.buffers[node]
        if slots is None:
            slots = self.buffers[node] = [None] * node.outputs
        slots[number] = grad if slots[number] is None else slots[number] + grad

    def run(self, order) -> None:
        """Run the nodes in order: on the fast path if there are no hooks, else with every hook in its place."""
        if self.graph or self.has_hooks:
            for node in order:
                try:
                    complete = self.run_with_hooks(node)
                except Exception:
                    self.write_complete_leaves(order, node)
                    raise
                for leaf in complete:
                    self.finish_leaf(leaf)
        else:
            self.run_without_hooks(order)
        if not self.has_hooks:
            for leaf in self.leaves:
                self.finish_leaf(leaf)

    def run_without_hooks(self, order) -> None:
        """Let each node compute its gradients and add them to the buffers itself."""
        buffers, keep, owned, add_to_output = self.buffers, self.keep, self.owned, self.add_to_output
        masks, captures = self.masks, self.captures
        for node in order:
            grad = buffers.pop(node)
            if grad is None and not node.wants_undefined:
                continue
            edges = None  # all of the node's
            if masks is not None:
                if node in captures:
                    self.capture(node, grad)
                edges = masks.get(node)
                if edges is None:
                    continue
            try:
                node.backward_into(edges, grad, keep, buffers, owned, add_to_output)
            except Exception as problem:
                say_where(problem, node)
                self.write_complete_leaves(order, node)
                raise
            grad = None

    def write_complete_leaves(self, order, failed) -> None:
        """Write the leaves that had all their gradients when a node failed (see NOTE [When leaves are written])."""
        if self.has_hooks:
            return
        masks, waiting = self.masks, set()
        for node in order[order.index(failed) :]:
            waiting.update(node.edges if masks is None else masks.get(node, ()))
        for leaf in self.leaves:
            if leaf not in waiting:
                self.finish_leaf(leaf)

    def run_with_hooks(self, node) -> list:
        """Run one node between its hooks, capture the gradients that are wanted, and propagate its own.

        Returns:
            The leaves that now have all their gradients.
        """
        grad, self.buffers[node] = self.buffers[node], None
        edges = node.edges if self.masks is None else self.masks.get(node)
        if edges is None:  # this node is an input, or leads to none
            if node in self.targets or node is self.lone_root:
                seen = grad if node.extra is None else before_capture(node, grad, self.graph, self.observed)
                self.capture(node, seen)
            return []
        if grad is None and not node.wants_undefined:
            return self.propagate(edges, _nothing if node.extra is None else self.hooks_without_gradient(node, edges))
        if node in self.captures:  # before its hooks, as in PyTorch
            self.capture(node, grad)
        if node.extra is not None:
            grad = before(node, grad, self.graph, self.observed)
        return self.propagate(edges, self.gradients(node, grad, edges))

    def hooks_without_gradient(self, node, edges):
        """Call a node's hooks without a gradient; return none for its edges."""
        before(node, None, self.graph, self.observed)
        if node.extra.posthooks:
            after(node, (None,) * len(edges), None, self.graph, self.observed)
        return _nothing

    def gradients(self, node, grad, edges):
        """Return the gradients of one node's edges, after its posthooks."""
        try:
            if anomaly.enabled:
                return checked_gradients(self, node, grad, edges)
            hooked = node.extra is not None and bool(node.extra.posthooks)
            if self.graph:
                grads = node.backward_graph(grad, edges)
            else:
                grads = node.backward(grad, edges, self.keep or hooked)
        except Exception as problem:
            say_where(problem, node)
            raise
        if hooked:
            grads = after(node, grads, grad, self.graph, self.observed)
        if not self.keep and (hooked or self.graph):
            node.free()
        if self.observed is not None:
            self.observed.ran(node, grad, grads, not self.keep)
        return grads

    def propagate(self, edges, grads) -> list:
        """Add a node's gradients to the buffers at the ends of its edges; return the leaves that are complete."""
        buffers, owned, complete = self.buffers, self.owned, []
        for edge, grad in zip(edges, grads):
            if edge is None:
                continue
            if grad is not None:
                if edge.__class__ is Output:
                    self.add_to_output(edge.node, edge.number, grad)
                    continue
                add_to_buffer(buffers, owned, edge, grad)
            if self.has_hooks and edge.is_end:
                left = self.pending[edge] = self.pending[edge] - 1
                if left == 0:
                    complete.append(edge)
        return complete

    def finish_leaf(self, leaf) -> None:
        """Accumulate a leaf's gradient into its `.grad`, or capture it for the caller."""
        grad, self.buffers[leaf] = self.buffers[leaf], None
        if grad is None and not self.has_hooks:
            return
        graph, observed = self.graph, self.observed
        if self.targets is not None and leaf not in self.targets:
            if leaf is self.lone_root and leaf._hooks:
                call_tensor_hooks(leaf._hooks.values(), grad, graph, observed)
            return
        if leaf._hooks:
            refuse_moved(leaf)
            end = None if observed is None else accumulator(leaf)
            grad = call_tensor_hooks(leaf._hooks.values(), grad, graph, observed, end)
        if leaf in self.captures:
            self.capture(leaf, grad)
            return
        node = None if leaf._accumulator is None else leaf._accumulator()
        extra = None if node is None else node.extra
        if extra is not None and extra.prehooks:
            grad = call_prehooks(node, grad, graph, observed)
        if grad is not None and leaf._edge is not None:  # else requires_grad_(False) was called since
            present = None if observed is None else observed.grad_of(leaf)
            references = getrefcount(grad)  # here only the local `grad` and the count itself should hold it
            steal = grad.__class__ is ndarray and (leaf in self.owned or may_be_stolen(grad, references))
            add_to_grad(leaf, grad, graph, steal=steal)
            if observed is not None:
                observed.accumulated(leaf, grad, present)
        if leaf._post_accumulate_hooks:
            call_post_accumulate_hooks(leaf)
        if extra is not None and extra.posthooks:
            after(node, (), grad, graph, observed)
        if observed is not None and grad is not None:
            observed.leaf_ran(leaf, grad)

    def capture(self, node, grad) -> None:
        """Keep the gradient of those outputs of a node that the caller wants."""
        if grad is not None:
            for number, place in self.captures.get(node, ()):
                self.captured[place] = grad[number] if node.outputs > 1 else grad

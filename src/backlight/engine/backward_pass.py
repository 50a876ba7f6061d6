"""The backward pass in Python: the reference, which runs with hooks, create_graph and interpreters, too.

    collect          every node that the roots reach, the last made first
    limit_to_inputs  where inputs are given, to what leads to them
    run_node         each node between its hooks; its gradients are propagated along its edges, where they add up
    finish_leaf      as soon as a leaf's last gradient has arrived, it is added to `.grad`

csrc/core/backward_pass.c does the same where there are no hooks; tests/engine/test_compiled_pass.py holds it to this.

NOTE [When leaves are written]
PyTorch writes a leaf's `.grad` as soon as its last gradient has arrived, and hooks can see that moment. So a leaf is
finished after the last node that leads to it. If a node fails, the leaves that were finished by then have theirs.
"""

import sys
from collections.abc import Iterable
from itertools import repeat
from operator import attrgetter

import numpy as np

from backlight.dispatch.anomaly_checks import checked_gradients
from backlight.dispatch.anomaly_mode import anomaly
from backlight.dispatch.forward_traceback import say_where
from backlight.dispatch.observed_pass import ObservedRun
from backlight.dispatch.torch_dispatch import torch_dispatch
from backlight.engine.accumulate_grad import add_to_grad, may_be_stolen, refuse_moved
from backlight.engine.grad_mode import modes
from backlight.engine.hook_calls import (
    call_hooks_before,
    call_output_hooks,
    call_post_accumulate_hooks,
    call_posthooks,
    call_prehooks,
    call_tensor_hooks,
)
from backlight.engine.node import Edge, Edges, Gradients, Node, Output, accumulator, node_and_number
from backlight.engine.ready_queue import leaves_as_queued
from backlight.engine.tensor_state import TensorState
from backlight.kernels.sparse_array import gradient_sum

_by_sequence = attrgetter("sequence")
_nothing = repeat(None)
getrefcount = sys.getrefcount
ndarray = np.ndarray


class BackwardPass:
    """The state of one backward pass; nodes are not written to.

    Args:
        retain_graph: leave what nodes saved in place, for another backward.
        on_tensors: gradients are tensors, and each node runs its rules on tensors; else they are arrays.
        observed: reports the pass to observers, if there are any.
        inputs: edges whose gradients are wanted. Then only what leads to them runs.
        accumulate_grad: leaves among the inputs get their gradients in `.grad`; else the gradients are captured.
    """

    __slots__ = (
        "buffers",
        "captured",
        "captures",
        "first_infinite",
        "on_tensors",
        "inputs",
        "accumulate_grad",
        "retain_graph",
        "lone_root",
        "masks",
        "observed",
        "roots",
        "targets",
    )

    def __init__(
        self,
        retain_graph: bool,
        on_tensors: bool,
        observed: ObservedRun | None = None,
        inputs: list[Edge] | None = None,
        accumulate_grad: bool = False,
    ):
        self.retain_graph = retain_graph
        self.on_tensors = on_tensors
        self.observed = observed
        self.inputs = inputs
        self.accumulate_grad = accumulate_grad
        self.roots = []
        self.buffers = {}  # node or leaf -> gradient that has arrived (a list of them if it has several outputs)
        self.masks = None  # node -> its edges, with None for those that lead to no input, when inputs are given
        self.targets = None  # the inputs' nodes and leaves, when inputs are given
        self.lone_root = None  # the only root, when inputs are given: its tensor hooks run even if it leads to no input
        self.captures = {}  # node or leaf -> [(output number, place in `captured`)]
        self.captured = []  # for each input its gradient, None where none arrived
        self.first_infinite = None  # in anomaly mode: the node that first made an infinity of a finite gradient

    def run(self, roots: list, root_grads: list, since: int = -1) -> list:
        """Run all nodes that the roots reach; return the captured gradients.

        Args:
            since: the sequence number of the oldest node that can lead to an input; older nodes are left out.
        """
        self.roots = roots
        order = self.collect(roots, since)
        if self.inputs is not None:
            self.limit_to_inputs(order)
        complete = self.leaves_by_last_node(order)
        self.propagate(roots, root_grads)
        for leaf in complete.get(None, ()):
            self.finish_leaf(leaf)
        for node in order:
            self.propagate(*self.run_node(node))
            for leaf in complete.get(node, ()):
                self.finish_leaf(leaf)
        return self.captured

    def collect(self, roots: list, since: int) -> list[Node]:
        """Return all nodes that the roots reach, last made first; make a buffer for each of them and each leaf."""
        buffers, order = self.buffers, []
        buffers.update(dict.fromkeys(node_and_number(edge)[0] for edge in roots))
        stack = [node for node in buffers if not node.is_leaf_edge]
        while stack:
            node = stack.pop()
            order.append(node)
            for edge in node.edges:
                if edge is None or edge in buffers:
                    continue
                if edge.__class__ is Output:
                    edge = edge.node
                    if edge in buffers:
                        continue
                buffers[edge] = None
                if not edge.is_leaf_edge and edge.sequence >= since:
                    stack.append(edge)
        order.sort(key=_by_sequence, reverse=True)
        return order

    def limit_to_inputs(self, order: list[Node]) -> None:
        """Keep only the edges that lead to an input, and note which gradients to capture."""
        targets = self.targets = set()
        self.lone_root = node_and_number(self.roots[0])[0] if len(self.roots) == 1 else None
        masks = self.masks = {}
        for place, edge in enumerate(self.inputs):
            node, number = node_and_number(edge)
            targets.add(node)
            if not self.accumulate_grad:
                self.captured.append(None)
                self.captures.setdefault(node, []).append((number, place))
            elif not node.is_leaf_edge:  # as in PyTorch it runs, though its gradients are not wanted
                masks[node] = [None] * len(node.edges)
        leads = set(targets)
        for node in reversed(order):  # an edge leads to what was made before
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

    def reaches(self, node: Node | TensorState) -> bool:
        """Tell whether a node or leaf runs, or has its gradient captured, in this pass."""
        return node in self.buffers and (self.masks is None or node in self.masks or node in self.targets)

    def leaves_by_last_node(self, order: list[Node]) -> dict[Node | None, list[TensorState]]:
        """Return the leaves whose last gradient comes from each node; from the roots' own gradients for None."""
        masks, complete, seen = self.masks, {}, set()

        def edges_of(node: Node) -> Edges:
            return node.edges if masks is None else masks.get(node, ())

        for node in (*reversed(order), None):
            for edge in reversed(self.roots if node is None else edges_of(node)):  # a node may lead to a leaf twice
                if edge is not None and edge.is_leaf_edge and edge not in seen:
                    seen.add(edge)
                    complete.setdefault(node, []).insert(0, edge)
        if all(len(leaves) < 3 for leaves in complete.values()):  # two run in the order of their edges
            return complete
        return leaves_as_queued(self.roots, order, edges_of)

    def propagate(self, edges: Edges, grads: Iterable) -> None:
        """Add gradients to what has arrived at the ends of edges."""
        buffers = self.buffers
        for edge, grad in zip(edges, grads):
            if edge is None or grad is None:
                continue
            arrived, place = buffers, edge
            if edge.__class__ is Output:
                arrived, place = self.outputs_of(edge)
            present = arrived[place]
            arrived[place] = grad if present is None else gradient_sum(present, grad)

    def outputs_of(self, edge: Output) -> tuple[list, int]:
        """Return the list of what has arrived at the outputs of a node, and the place of an edge in it."""
        node = edge.node
        if self.buffers[node] is None:
            self.buffers[node] = [None] * node.outputs
        return self.buffers[node], edge.number

    def run_node(self, node: Node) -> tuple:
        """Run one node between its hooks, and capture its gradient if that is wanted.

        Returns:
            The edges to propagate along, and their gradients.
        """
        grad, self.buffers[node] = self.buffers[node], None
        edges = node.edges if self.masks is None else self.masks.get(node)
        if edges is None:  # this node is an input, or leads to none
            if node in self.targets or node is self.lone_root:
                seen = grad if node.extra is None else call_output_hooks(node, grad, self.on_tensors, self.observed)
                self.capture(node, seen)
            return (), ()
        if grad is None and not node.wants_undefined:
            return edges, _nothing if node.extra is None else self.hooks_without_gradient(node, edges)
        if node in self.captures:  # before its hooks, as in PyTorch
            self.capture(node, grad)
        if node.extra is not None:
            grad = call_hooks_before(node, grad, self.on_tensors, self.observed)
        return edges, self.gradients(node, grad, edges)

    def hooks_without_gradient(self, node: Node, edges: Edges):
        """Call a node's hooks without a gradient; return none for its edges."""
        call_hooks_before(node, None, self.on_tensors, self.observed)
        if node.extra.posthooks:
            call_posthooks(node, (None,) * len(edges), None, self.on_tensors, self.observed)
        return _nothing

    def gradients(self, node: Node, grad: Gradients, edges: Edges):
        """Return the gradients of one node's edges, after its posthooks."""
        try:
            if anomaly.enabled:
                return checked_gradients(self, node, grad, edges)
            hooked = node.extra is not None and bool(node.extra.posthooks)
            if self.on_tensors:
                dispatched = torch_dispatch.active and not modes.grad_enabled
                grads = (torch_dispatch.backward if dispatched else type(node).backward_graph)(node, grad, edges)
            else:
                grads = node.backward(grad, edges, self.retain_graph or hooked)
        except Exception as problem:
            say_where(problem, node)
            raise
        if hooked:
            grads = call_posthooks(node, grads, grad, self.on_tensors, self.observed)
        if not self.retain_graph and (hooked or self.on_tensors):
            node.free()
        if self.observed is not None:
            self.observed.ran(node, grad, grads, not self.retain_graph)
        return grads

    def finish_leaf(self, leaf: TensorState) -> None:
        """Accumulate a leaf's gradient into its `.grad`, between its hooks, or capture it for the caller."""
        grad, self.buffers[leaf] = self.buffers[leaf], None
        on_tensors, observed = self.on_tensors, self.observed
        if self.targets is not None and leaf not in self.targets:
            if leaf is self.lone_root and leaf._hooks:
                call_tensor_hooks(leaf._hooks.values(), grad, on_tensors, observed)
            return
        if leaf._hooks:
            refuse_moved(leaf)
            end = None if observed is None else accumulator(leaf)
            grad = call_tensor_hooks(leaf._hooks.values(), grad, on_tensors, observed, end)
        if leaf in self.captures:
            self.capture(leaf, grad)
            return
        node = None if leaf._accumulator is None else leaf._accumulator()
        extra = None if node is None else node.extra
        if extra is not None and extra.prehooks:
            grad = call_prehooks(node, grad, on_tensors, observed)
        if grad is not None and leaf._edge is not None:  # else requires_grad_(False) was called since
            present = None if observed is None else observed.grad_of(leaf)
            references = getrefcount(grad)  # here only the local `grad` and the count itself should hold it
            add_to_grad(leaf, grad, on_tensors, steal=grad.__class__ is ndarray and may_be_stolen(grad, references))
            if observed is not None:
                observed.accumulated(leaf, grad, present)
        if leaf._post_accumulate_hooks:
            call_post_accumulate_hooks(leaf)
        if extra is not None and extra.posthooks:
            call_posthooks(node, (), grad, on_tensors, observed)
        if observed is not None and grad is not None:
            observed.leaf_ran(leaf, grad)

    def capture(self, node: Node | TensorState, grad: Gradients) -> None:
        """Keep the gradient of those outputs of a node that the caller wants."""
        if grad is not None:
            for number, place in self.captures.get(node, ()):
                self.captured[place] = grad[number] if node.outputs > 1 else grad

"""Tells watchers of one backward of PyTorch.

NOTE [How a backward of PyTorch is watched]
Its beginning and end: `_engine_run_backward` is replaced (adapters/torch_watching.py). Its nodes: all that the roots
reach get one hook, which runs after the node and after the user's hooks on it, and is removed when the run ends:
parameters keep their AccumulateGrad, and with it hooks, from one step to the next. What users' tensor hooks change: for
the time of the run their hooks are wrapped, in the dicts that hold them.
CPU graphs run on the thread that calls backward. What runs on a device's thread is reported from there, one at a time.
"""

import weakref
from collections.abc import Callable
from functools import partial, wraps
from types import FrameType

from backlight.adapters.torch_compiled import COMPILED_NODES
from backlight.dispatch.observers import Run
from backlight.kernels.native import core

HOOKS = "backlight.hooks"  # in a node's metadata: {output number: the dict of that output's hooks}


class WatchedRun:
    """One backward, from the moment before the engine begins until after it ended."""

    def __init__(self, hub, given: tuple, accumulate_grad: bool, frame: FrameType):
        self.hub = hub
        self.engine = hub.engine
        outputs, gradients, keep_graph, create_graph, inputs, *_ = given
        self.run = Run(
            number=hub.runs,
            roots=[self._edge(one) for one in outputs],
            root_gradients=list(gradients),
            inputs=[edge for one in inputs if (edge := self._edge(one)) is not None] if inputs else None,
            accumulate_grad=accumulate_grad,
            retain_graph=bool(keep_graph),
            create_graph=bool(create_graph),
            code=frame.f_code,
            lasti=frame.f_lasti,
        )
        self.inputs = inputs
        self.handles = []
        self.wrapped = []  # (dict of hooks, its key, the user's hook)
        self.before = {}  # id of a tensor that gets a .grad -> what it was
        self.pauses = hub.pauses
        hub.runs += 1

    def _edge(self, output):
        """Return (node, number) of a tensor or a GradientEdge."""
        return self.engine.node_of(output) if self.engine.is_tensor(output) else (output.node, output.output_nr)

    def __enter__(self):
        listeners = self.hub.listeners
        if listeners["ran"] or listeners["accumulated"] or listeners["changed"] or listeners["freed"]:
            self._hook_nodes()
        self.hub.notify("started", self.run)

    def __exit__(self, kind, problem, traceback):
        while self.hub.pauses > self.pauses:  # a compiled node failed
            self.hub.resume()
        for handle in self.handles:
            handle.remove()
        for hooks, key, hook in self.wrapped:
            if key in hooks:
                hooks[key] = hook
        self.run.problem = problem
        if problem is None:
            self._report_inputs()
        self.hub.notify("ended", self.run)

    def _hook_nodes(self) -> None:
        hub, leaf_class, saves, handles = self.hub, self.engine.leaf_class, self.engine.saves, self.handles
        retained = self._retained()
        frees = bool(not self.run.retain_graph and hub.listeners["freed"])
        for node in self._nodes():
            if node.__class__ is leaf_class:
                self._hook_leaf(node)
                continue
            if node.__class__.__name__.startswith(COMPILED_NODES):
                handles.append(node.register_prehook(self._pause))
                handles.append(node.register_hook(self._resume))
            kept = retained.get(self.engine.key_of(node), ()) if retained else ()
            report = node_report(hub.mode, hub.listeners, self.run, node, "freed" if frees and saves(node) else None)
            handles.append(node.register_hook(partial(self._report_node, kept, report) if kept else report))
            hooked = node.metadata.get(HOOKS)
            if hooked is not None:
                for number, hooks in hooked.items():
                    self._wrap(hooks, node, number)

    def _pause(self, grad_outputs) -> None:
        """A node that was compiled begins: its hook."""
        self.hub.pause()

    def _resume(self, grad_inputs, grad_outputs) -> None:
        self.hub.resume()

    def _nodes(self) -> list:
        found = {node: None for node, _ in self.run.roots}
        stack = list(found)
        while stack:
            for inner, _ in stack.pop().next_functions:
                if inner is not None and inner not in found:
                    found[inner] = None
                    stack.append(inner)
        return list(found)

    def _retained(self) -> dict[int, list]:
        """Return the tensors that retain their gradient by the keys of their nodes, and forget those that are gone."""
        alive = [one for one in (reference() for reference in self.hub.retained) if one is not None]
        self.hub.retained = [weakref.ref(one) for one in alive]
        found: dict[int, list] = {}
        for tensor in alive:
            if tensor.retains_grad and tensor.grad_fn is not None:
                self.before[id(tensor)] = tensor.grad
                found.setdefault(self.engine.key_of(tensor.grad_fn), []).append(weakref.ref(tensor))
        return found

    def _report_node(self, retained, report: Callable, grad_inputs, grad_outputs) -> None:
        """Report that a node ran of which tensors retain their gradients: its hook."""
        for reference in retained:
            self._report_retained(reference(), grad_outputs)
        report(grad_inputs, grad_outputs)

    def _report_retained(self, tensor, grad_outputs) -> None:
        if tensor is None or tensor.grad is None:
            return
        before = self.before.get(id(tensor))
        arrived = tensor.grad if before is None else grad_outputs[tensor.output_nr]
        self.hub.notify("accumulated", self.run, tensor, arrived, before)

    def _hook_leaf(self, node) -> None:
        """Hook an AccumulateGrad: what was in `.grad` before is only there before it runs."""
        hub, then, before = self.hub, None, None
        if hub.listeners["accumulated"]:
            then, before = "accumulated", [None]
            self.handles.append(node.register_prehook(partial(self._keep_grad, node, before)))
        report = node_report(hub.mode, hub.listeners, self.run, node, then, before)
        self.handles.append(node.register_hook(report))
        if node.variable._backward_hooks:
            self._wrap(node.variable._backward_hooks, node, 0)

    def _keep_grad(self, node, before: list, grad_outputs) -> None:
        present = node.variable.grad
        before[0] = present if present is None or self.run.create_graph else _copied(present)

    def _wrap(self, hooks: dict, node, number: int) -> None:
        """Put hooks that tell what they change in the place of a user's hooks."""
        if not self.hub.listeners["changed"]:
            return
        for key, hook in list(hooks.items()):
            hooks[key] = self._reporting(hook, node, number)
            self.wrapped.append((hooks, key, hook))

    def _reporting(self, hook, node, number: int):
        hub, run = self.hub, self.run

        @wraps(hook, updated=())
        def call(grad):
            version, before = grad._version, _copied(grad)
            answer = hook(grad)
            if answer is not None and answer is not grad:
                hub.notify("changed", run, node, number, hook, before, answer)
            elif grad._version != version:
                hub.notify("changed", run, node, number, hook, before, grad)
            return answer

        return call

    def _report_inputs(self) -> None:
        """Report the gradients that `backward(inputs=…)` gave to tensors that are no leaves."""
        if self.run.accumulate_grad and self.inputs:
            for tensor in self.inputs:
                if self.engine.is_tensor(tensor) and tensor.grad_fn is not None and id(tensor) not in self.before:
                    self.hub.notify("accumulated", self.run, tensor, tensor.grad, None)


def _python_node_report(mode, listeners: dict, run: Run, node, then: str | None, before: list | None) -> Callable:
    """Return a node's hook, which reports that the node ran and what comes with it.

    Args:
        then: the second event: "freed" with the node, "accumulated" with the leaf, what arrived and `.grad` before.
        before: of a leaf, a list of `.grad` before, which its prehook fills in.
    """

    def report(grad_inputs, grad_outputs) -> None:
        if mode.silent:
            return
        mode.silent = True
        try:
            for listener in listeners["ran"]:
                listener(run, node, grad_outputs, grad_inputs if before is None else ())
            if then is not None:
                event = (node,) if before is None else (node.variable, grad_outputs[0], before[0])
                for listener in listeners[then]:
                    listener(run, *event)
        finally:
            mode.silent = False

    return report


def node_report(mode, listeners: dict, run: Run, node, then: str | None, before: list | None = None) -> Callable:
    """Return a node's hook, as `_python_node_report` does; it is compiled if the mode is."""
    compiled = core is not None and isinstance(mode, core.CallsMode)
    return (core.NodeReport if compiled else _python_node_report)(mode, listeners, run, node, then, before)


def _copied(grad):
    """Return a copy of a gradient; the gradient itself where none can be made, in a batch of `is_grads_batched`."""
    try:
        return grad.detach().clone()
    except RuntimeError:
        return grad

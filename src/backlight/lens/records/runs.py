"""Records one backward: its steps in the order in which nodes fired.

NOTE [What a gradient is read once for]
What a node hands along an edge is what arrives at the other end, if nothing else arrives there. So it is summarised
when it arrives, and the step that handed it on is given that summary then.
"""

import time

from backlight.dispatch.observers import Run
from backlight.lens.records.building import Builder
from backlight.lens.records.nodes import LEAF, Backward, Edge, HookChange, Node, Step, Summary
from backlight.training.engine_types import AnyTensor, Gradients

clock = time.perf_counter


class RunRecording:
    """One backward, while it runs."""

    def __init__(self, builder: Builder, run: Run, roots: list[int]):
        self.builder = builder
        self.nodes = builder.record.nodes
        self.backward = Backward(
            roots, into_grad=run.accumulate_grad, keep_graph=run.retain_graph, create_graph=run.create_graph
        )
        self.order = max((self.nodes[root].order for root in roots), default=1)
        self.lone = set() if builder.shapes_only else self._single_use_outputs(roots, run)
        self.waiting: dict[tuple[int, int], list] = {}  # (node, output) -> the `outgoing` and place to fill in
        self.changes: dict[int, list[HookChange]] = {}
        self.retained: dict[int, tuple] = {}  # node -> (`.grad` before, after), until its step is there
        self.spent = 0.0  # since the last step, without what recording takes
        self.since = clock()

    def _single_use_outputs(self, roots: list[int], run: Run) -> set[tuple[int, int]]:
        """Return the outputs at which the gradient of just one edge arrives, and surely does."""
        if run.inputs is not None:
            return set()
        counts: dict[tuple[int, int], int] = {(root, -1): 0 for root in roots}
        reached, stack = set(roots), list(set(roots))
        while stack:
            for edge in self.nodes[stack.pop()].edges:
                if edge is not None:
                    counts[edge.to, edge.output] = counts.get((edge.to, edge.output), 0) + 1
                    if edge.to not in reached:
                        reached.add(edge.to)
                        stack.append(edge.to)
        return {output for output, count in counts.items() if count == 1 and output[0] not in roots}

    def ran(self, node: int, grad_outputs: Gradients, grad_inputs: Gradients) -> None:
        """Note that a node fired."""
        seconds, self.spent = self.spent + clock() - self.since, 0.0
        changes = self.changes.pop(node, None) or []
        if self.builder.shapes_only:
            incoming = self.builder.unread_all(grad_outputs)
        else:
            incoming = [self._arrived(node, number, grad, changes) for number, grad in enumerate(grad_outputs)]
        made = self.nodes[node]
        if len(made.outputs) < len(incoming):
            self._learn_shapes(made, incoming)
        outgoing: list[Summary | None] = []
        if made.kind != LEAF and self.builder.shapes_only and len(made.edges) == len(grad_inputs):
            outgoing = [
                None if edge is None else one for edge, one in zip(made.edges, self.builder.unread_all(grad_inputs))
            ]
        elif made.kind != LEAF:
            outgoing = [None] * len(made.edges)
            for place, (edge, grad) in enumerate(zip(made.edges, grad_inputs)):
                if edge is not None and grad is not None:
                    outgoing[place] = self._outgoing(edge, grad, outgoing, place)
        step = Step(node, incoming, outgoing, None, None, changes, 0, seconds)
        if node in self.retained:
            self._grad_written(step, *self.retained.pop(node))
        self.backward.steps.append(step)
        self.since = clock()

    def _arrived(self, node: int, number: int, grad: AnyTensor | None, changes: list[HookChange]) -> Summary | None:
        if grad is None:
            return None
        summary = self.builder.summary(grad)
        for outgoing, place in self.waiting.pop((node, number), ()):
            first = next((change for change in changes if change.output == number), None)
            outgoing[place] = summary if first is None or first.before is None else first.before
        return summary

    def _outgoing(self, edge: Edge, grad: AnyTensor | None, outgoing: list, place: int) -> Summary:
        if (edge.to, edge.output) in self.lone:
            self.waiting.setdefault((edge.to, edge.output), []).append((outgoing, place))
            return self.builder.unread(grad)
        return self.builder.summary(grad)

    def _learn_shapes(self, made: Node, incoming: list) -> None:
        """Note the shapes of outputs that were not seen being made: a gradient has the shape of its output."""
        for number in range(len(made.outputs), len(incoming)):
            arrived = incoming[number]
            if arrived is None:
                return
            made.outputs.append(Summary(arrived.shape, arrived.dtype))

    def accumulated(self, node: int, before: AnyTensor | None, now: AnyTensor | None) -> None:
        """Note `.grad` before and after a write; the event comes just before the node's step or just after it."""
        self.spent += clock() - self.since
        written = None if before is None else self.builder.summary(before), now
        last = self.backward.steps[-1] if self.backward.steps else None
        if self.nodes[node].kind == LEAF and last is not None and last.node == node and last.grad_after is None:
            self._grad_written(last, *written)
        else:
            self.retained[node] = written
        self.since = clock()

    def _grad_written(self, step: Step, before: Summary | None, now: AnyTensor | None) -> None:
        """Fill in a step's `.grad`: without one before, a leaf has now what arrived."""
        step.grad_before = before
        if before is None and self.nodes[step.node].kind == LEAF:
            step.grad_after = step.incoming[0]
        else:
            step.grad_after = None if now is None else self.builder.summary(now)

    def changed(self, node: int, number: int, hook: str, before: AnyTensor | None, after: AnyTensor | None) -> None:
        """Note what a hook changed."""
        self.spent += clock() - self.since
        before, after = (None if one is None else self.builder.summary(one) for one in (before, after))
        self.changes.setdefault(node, []).append(HookChange(hook, number, before, after))
        self.since = clock()

    def freed(self, node: int) -> None:
        """Note what memory the node that fired last dropped."""
        if self.backward.steps and self.backward.steps[-1].node == node:
            self.backward.steps[-1].freed = self.builder.free(self.nodes[node])
            self.since = clock()

    def end(self, problem: BaseException | None) -> None:
        """Note how the run ended."""
        if problem is not None:
            self.backward.problem = f"{type(problem).__name__}: {problem}"

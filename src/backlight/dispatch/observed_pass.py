"""Report a backward pass to watchers (NOTE [Watching] in dispatch/observers.py)."""

import numpy as np

from backlight.dispatch.observation import Observation, local, observers
from backlight.dispatch.observers import Run
from backlight.engine.node import accumulator, public_edge
from backlight.engine.provenance import user_place
from backlight.engine.tensor_state import TensorState, below_batches, wrap
from backlight.kernels.state_blocks import Block

OF_RUNS = ("started", "ran", "accumulated", "changed", "freed", "ended")


def observed_run(roots, root_grads, retain_graph, create_graph, inputs, accumulate_grad) -> "ObservedRun | None":
    """Return what reports a run that begins now in this thread, or None if no watcher here wants its events."""
    observation = local.observation
    if observation is None:
        with observers.lock:
            observers.backwards_elsewhere += 1
    if observation is None or observation.silent:
        return None
    if not any(getattr(observation, event) for event in OF_RUNS):
        observation.runs += 1
        return None
    run = Run(
        number=observation.runs,
        roots=[public_edge(edge) for edge in roots],
        root_gradients=_tensors(root_grads),
        inputs=None if inputs is None else [public_edge(edge) for edge in inputs],
        accumulate_grad=accumulate_grad or inputs is None,
        retain_graph=bool(retain_graph),
        create_graph=bool(create_graph),
        **dict(zip(("code", "lasti"), user_place(3))),
    )
    observation.runs += 1
    return ObservedRun(observation, run)


def _tensors(grads) -> list:
    """Return gradients as tensors: a pass carries arrays, or tensors under create_graph."""
    return [one if one is None or isinstance(one, TensorState) else wrap(one) for one in grads]


class ObservedRun(Block):
    """Reports the events of one run to watchers."""

    __slots__ = ("ended", "observation", "reports_accumulated", "reports_changes", "reports_ran", "run")

    def __init__(self, observation: Observation, run: Run):
        self.observation = observation
        self.run = run
        self.ended = False
        self.reports_ran = bool(observation.ran)
        self.reports_accumulated = bool(observation.accumulated)
        self.reports_changes = bool(observation.changed)

    def _block_state(self):
        return None

    def _block_change(self, state):
        self.observation.notify(self.observation.started, self.run)

    def _block_restore(self, state):
        if not self.ended:
            self.ended = True
            self.observation.notify(self.observation.ended, self.run)

    def ran(self, node, grad, grads, freed: bool) -> None:
        """Report that a node has run, and that it dropped its saved values if `freed`."""
        observation = self.observation
        if self.reports_ran:
            outputs = (grad,) if node.outputs == 1 else grad or (None,) * node.outputs
            if not self.run.create_graph:
                outputs, grads = _tensors(outputs), _tensors(grads)
            observation.notify(observation.ran, self.run, node, outputs, grads)
        if freed and node.freed_slots and observation.freed:
            observation.notify(observation.freed, self.run, node)

    def grad_of(self, tensor):
        """Return a copy of a tensor's `.grad` as it is now, or None."""
        present = tensor._grad
        return None if present is None or not self.reports_accumulated else _copied(present)

    def accumulated(self, tensor, arrived, before) -> None:
        """Report that a gradient was added to `.grad`."""
        if self.reports_accumulated:
            (arrived,) = _tensors((arrived,))
            self.observation.notify(self.observation.accumulated, self.run, tensor, arrived, before)

    def leaf_ran(self, leaf, grad) -> None:
        """Report that a leaf's AccumulateGrad has run."""
        if self.reports_ran:
            self.observation.notify(self.observation.ran, self.run, accumulator(leaf), _tensors((grad,)), ())

    def leaf_written(self, leaf, grad, before) -> None:
        """Report both; the compiled pass calls this."""
        self.accumulated(leaf, grad, before)
        self.leaf_ran(leaf, grad)

    def call(self, hook, ends, seen: tuple, *given):
        """Call a hook with the arguments `given`, and report those gradients in `seen` that it changes.

        Args:
            ends: for each gradient (node, output number) of where it goes; (None, 0) for nowhere.
        """
        if not self.reports_changes:
            return hook(*given)
        before = [None if one is None else _copied(one) for one in seen]
        answer = hook(*given)
        answers = answer if isinstance(answer, tuple) else (answer,) * len(seen)
        for (node, number), old, one, new in zip(ends, before, seen, answers):
            after = new if isinstance(new, TensorState) else one
            if node is not None and after is not None and (after is not one or not _same_bits(old, after)):
                self.observation.notify(self.observation.changed, self.run, node, number, hook, old, after)
        return answer


def _copied(tensor):
    """Return a copy; of a batched tensor, of all elements of the batch."""
    return wrap(np.array(below_batches(tensor)._data))


def _same_bits(one, other) -> bool:
    return below_batches(one)._data.tobytes() == below_batches(other)._data.tobytes()

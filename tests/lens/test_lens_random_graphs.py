"""200 random programs on each engine: what `lens.watch` records is what the engine's own hooks report.

Each program runs twice. Once nobody watches, and hooks on every node (`register_prehook`, `register_hook`) note what
fires, in which order, with which gradients, and what stands in `.grad` before and after. Once it is watched and has
no such hooks. Nodes are told apart by their place in a walk from the roots, depth first, along their edges in order.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from for_each import for_each
from random_programs import NAMES, OPS

import backlight
from backlight import lens
from backlight.lens.records.nodes import LEAF, Summary

COUNT = 200


@dataclass
class Fired:
    """A node that fired, as values: gradients that arrived and that it handed on, `.grad` before and after."""

    place: int
    incoming: list
    outgoing: list = field(default_factory=list)
    before: object = None
    after: object = None


def numbers(tensor):
    return None if tensor is None else tensor.detach().numpy(force=True).copy()


def hook(name):
    return lambda grad: grad * 0.5 if name % 2 else grad.clamp(-1.0, 1.0)


def bring_up_to_date(made):
    """Have PyTorch make the new nodes of views that were written to: it does when somebody asks, as watching does."""
    assert all(one.grad_fn is None or one.requires_grad for one in made)


class Player:
    """Runs one random program; `watching` starts each backward by letting somebody look at its roots."""

    def __init__(self, t, seed):
        self.t = t
        self.rng = np.random.default_rng(seed)
        self.kept = []  # tensors that retain their gradient
        self.problem = None

    def tensors(self):
        t, rng = self.t, self.rng
        leaves = [t.tensor(rng.normal(size=(3, 4)).tolist(), dtype=t.float64, requires_grad=True) for _ in range(3)]
        return leaves, [*leaves, t.tensor(rng.normal(size=(3, 4)).tolist(), dtype=t.float64), leaves[0] * 1]

    def steps(self, made):
        for _ in range(int(self.rng.integers(3, 20))):
            name = NAMES[self.rng.integers(len(NAMES))]
            a, b, k = (int(one) for one in self.rng.integers(0, 1000, 3))
            x, y = made[-1 - a % min(len(made), 4)], made[b % len(made)]
            bring_up_to_date(made)
            try:
                if name == "hook":
                    x.register_hook(hook(k))
                    continue
                out = OPS[name](self.t, x, y, k)
            except RuntimeError:
                continue
            if out is not x:
                made.append(out)
            elif name == "retain" and not x.is_leaf and not any(x is one for one in self.kept):
                self.kept.append(x)
        bring_up_to_date(made)

    def play(self, look):
        """Run the program and its backwards; `look(roots)` returns what is to be called when a backward has ended."""
        leaves, made = self.tensors()
        self.steps(made)
        ends = [(one * (0.5 + number)).sum() for number, one in enumerate(made) if one.requires_grad]
        way = int(self.rng.integers(5))
        run = self.t.autograd
        if way == 0:  # from several roots at once
            self.backward(look, ends, lambda: run.backward(ends))
        elif way == 1:  # twice through one graph
            total = sum(ends)
            self.backward(look, [total], lambda: total.backward(retain_graph=True))
            self.backward(look, [total], total.backward)
        elif way == 2:  # a gradient's gradient
            total = sum(ends)
            grads = self.backward(look, [total], lambda: run.grad(total, leaves, create_graph=True, allow_unused=True))
            penalty = sum([(grad * grad).sum() for grad in grads or () if grad is not None], total)
            self.backward(look, [penalty], penalty.backward)
        elif way == 3:  # only what leads to some
            total = sum(ends)
            self.backward(look, [total], lambda: total.backward(inputs=leaves[:2]))
        else:
            total = sum(ends)
            self.backward(look, [total], total.backward)

    def backward(self, look, roots, begin):
        if self.problem is not None:
            return None
        end = look(roots)
        try:
            return begin()
        except RuntimeError as problem:
            self.problem = str(problem)[:60]
            return None
        finally:
            end()


class Hooks:
    """Notes by the engine's own hooks what fires."""

    def __init__(self):
        self.runs = []

    def look(self, roots):
        fired, handles = [], []
        self.runs.append(fired)
        for place, node in enumerate(walk([root.grad_fn for root in roots], edges_of_engine)):
            handles += (
                self.hook_leaf(node, place, fired) if hasattr(node, "variable") else self.hook(node, place, fired)
            )
        return lambda: [handle.remove() for handle in handles]

    def hook(self, node, place, fired):
        edges = edges_of_engine(node)

        def note(grad_inputs, grad_outputs):
            handed_on = [None if edge is None else numbers(one) for edge, one in zip(edges, grad_inputs, strict=True)]
            fired.append(Fired(place, [numbers(one) for one in grad_outputs], handed_on))

        return [node.register_hook(note)]

    def hook_leaf(self, node, place, fired):
        before = []

        def look(grad_outputs):
            before[:] = [numbers(node.variable.grad)]

        def note(grad_inputs, grad_outputs):
            fired.append(Fired(place, [numbers(grad_outputs[0])], before=before[0], after=numbers(node.variable.grad)))

        return [node.register_prehook(look), node.register_hook(note)]


def edges_of_engine(node):
    return [inner for inner, _ in node.next_functions]


def walk(roots, edges_of):
    """Return the nodes that the roots reach, depth first, along their edges in order."""
    found, stack = {}, list(reversed(roots))
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found[node] = None
            stack.extend(reversed(edges_of(node)))
    return list(found)


def values(summary):
    if summary is None or summary.values is None:
        return summary
    return np.array(summary.values, np.float64).reshape(summary.shape)


def recorded(record):
    """Return what a record says fired, in the form of `Hooks`, and what retained gradients became."""
    runs, retained = [], []
    for backward in record.backwards:
        order = walk(backward.roots, lambda number: [edge and edge.to for edge in record.nodes[number].edges])
        places = {number: place for place, number in enumerate(order)}
        fired = []
        for step in backward.steps:
            one = Fired(places[step.node], [values(grad) for grad in step.incoming])
            if record.nodes[step.node].kind == LEAF:
                one.before, one.after = values(step.grad_before), values(step.grad_after)
            else:
                one.outgoing = [values(grad) for grad in step.outgoing]
                if step.grad_after is not None:
                    retained.append(values(step.grad_after))
            fired.append(one)
        runs.append(fired)
    return runs, retained


def same(one, other):
    if isinstance(one, Summary):  # its values were not read: see NOTE [What a gradient is read once for]
        return one.shape == other.shape
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return (
        one is other is None
        if one is None or other is None
        else np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True)
    )


def both(t, seed):
    """Return what hooks report of a program, and its record; and the players."""
    hooks, plain, watched = Hooks(), Player(t, seed), Player(t, seed)
    plain.play(hooks.look)
    with lens.watch(engine=t.__name__, values="full") as watch:
        watched.play(lambda roots: lambda: None)
    assert plain.problem == watched.problem
    return hooks, plain, watched, watch.record


ENGINES = pytest.mark.parametrize("t", [backlight, torch], ids=["backlight", "torch"])


def compare(hooks, watched, record):
    """Compare a record with what hooks reported."""
    runs, retained = recorded(record)
    unread = [one for fired in runs for step in fired for one in step.outgoing if isinstance(one, Summary)]
    assert not unread or watched.problem is not None
    assert [[one.place for one in fired] for fired in runs] == [[one.place for one in fired] for fired in hooks.runs]
    for fired, expected in zip(runs, hooks.runs, strict=True):
        for one, other in zip(fired, expected, strict=True):
            assert same(one.incoming, other.incoming)
            assert same(one.outgoing, other.outgoing)
            assert same(one.before, other.before) and same(one.after, other.after)
    if watched.problem is None and watched.kept:
        final = [numbers(one.grad) for one in watched.kept if one.grad is not None]
        assert all(any(same(one, kept) for kept in retained) for one in final)


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
@ENGINES
def test_the_record_is_what_the_engines_own_hooks_report(t):
    kinds, ends, changed, retained = set(), 0, 0, 0

    def check(seed):
        nonlocal kinds, ends, changed, retained
        hooks, _, watched, record = both(t, seed)
        kinds |= {node.type for node in record.nodes}
        ends += watched.problem is None
        changed += any(step.changes for backward in record.backwards for step in backward.steps)
        retained += bool(watched.kept)
        compare(hooks, watched, record)

    for_each(range(COUNT), check)
    assert {"CopySlices", "SelectBackward0", "ViewBackward0", "UnbindBackward0", "CatBackward0"} <= kinds
    assert ends > 0.6 * COUNT and changed > 10 and retained > 5

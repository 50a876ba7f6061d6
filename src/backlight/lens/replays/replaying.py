"""Builds the replay of a record: see NOTE [A replay] in lens/replays/replay.py."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from backlight.lens.records.nodes import LEAF, Backward, Cut, Node, Place, SavedTensor, Step, Summary
from backlight.lens.replays.equations import LINE, Equations
from backlight.lens.replays.filled import same
from backlight.lens.replays.replay import BEGIN, END, FIRE, FORWARD, GRAD, Detail, Moment, OutgoingGradient, Replay
from backlight.lens.replays.wording import (
    brief,
    drawn,
    equals,
    function_of,
    given_of,
    is_written_out,
    listed,
    number_text,
    shape_text,
    sum_sign,
    sum_text,
    word_of,
)
from backlight.report.numbers import size_text

# PyTorch's names of what a node keeps, in words
KEPT = {
    "self": "its input",
    "input": "its input",
    "other": "its other input",
    "mat1": "its first matrix",
    "mat2": "its second matrix",
}
ROUNDING = 1e-4  # how far a sum may be from what arrived, in relation to its largest element


def replay_of(
    nodes: list[Node], backwards: list[Backward], cuts: Sequence[Cut] = (), *, title: str = "", engine: str = ""
) -> Replay:
    """Return the steps of what was recorded, forward and backward."""
    return Replay(title, engine, tuple(_Builder(nodes, backwards, cuts).steps()))


class _Builder:
    """Walks through a record once, in the order in which things happened."""

    def __init__(self, nodes: list[Node], backwards: list[Backward], cuts: Sequence[Cut]):
        self.nodes, self.backwards = nodes, backwards
        self.cuts: dict[int, list[Cut]] = defaultdict(list)
        for cut in cuts:
            if cut.into is not None:
                self.cuts[cut.into].append(cut)
        self.equations, self.memory = Equations(nodes), Memory(nodes)
        self.number = 0

    def steps(self) -> Iterator[Moment]:
        """Give all steps: before each backward, the forward of the nodes that are there by then."""
        made = 0
        for number, backward in enumerate(self.backwards):
            last = max([*backward.roots, *(step.node for step in backward.steps)], default=-1)
            yield from self._forwards(range(made, last + 1))
            made = max(made, last + 1)
            yield from _Backward(self, number, backward).steps()
        yield from self._forwards(range(made, len(self.nodes)))

    def moment(self, kind: str, title: str, parts: list[Detail], **fields) -> Moment:
        """Number a step."""
        self.number += 1
        return Moment(self.number - 1, kind, title, tuple(parts), held=self.memory.held, **fields)

    def _forwards(self, ids: range) -> Iterator[Moment]:
        for node in (self.nodes[id] for id in ids):
            kept = self.memory.keep(node)
            if node.kind == LEAF:
                parts = [
                    Detail("compute", "value", tuple(drawn(node.outputs[0]) if node.outputs else ["not recorded"]))
                ]
            else:
                parts = [Detail("compute", "computes", tuple(self.equations.forward(node)))]
            parts += self.cut(node)
            if kept:
                held = size_text(self.memory.held)
                parts.append(Detail("memory", "keeps", (f"{self._kept(node)}; {held} held for backward now",)))
            outputs = self.equations.outputs(node)
            value = brief(outputs[0]) if outputs else None
            fields = {"node": node.id, "value": value, "place": place_text(node.place)}
            yield self.moment(FORWARD, self._forward_title(node), parts, **fields)

    def _kept(self, node: Node) -> str:
        """List what a node keeps: its input first, of its numbers the exponent, which the derivative depends on."""
        saved = sorted(node.saved, key=lambda one: one.name not in ("self", "input"))
        exponents = [f"the exponent {number_text(value)}" for name, value in node.options.items() if name == "exponent"]
        return listed([*(self._kept_word(node, one) for one in saved), *exponents])

    def cut(self, node: Node) -> Iterator[Detail]:
        """Describe what a node read that had left the graph."""
        for one in self.cuts.get(node.id, ()):
            line = f"it reads what {one.op} made of {word_of(self.nodes[one.node])} ({one.reason})"
            lines = (f"{line}: no gradient goes back there", place_text(one.place))
            yield Detail("note", "cut", tuple(filter(None, lines)))

    def _kept_word(self, node: Node, kept: SavedTensor) -> str:
        """Describe what a node keeps: `its input x`, `its result`, `the total weight (64)`."""
        if kept.of == node.id or kept.name.startswith("result"):
            return "its result"
        role = KEPT.get(kept.name, f"the {kept.name.replace('_', ' ')}")
        if kept.of is not None:
            return f"{role} {word_of(self.nodes[kept.of])}"
        if not kept.summary.shape and kept.summary.values is not None:
            return f"{role} ({brief(kept.summary)})"
        return role

    def _forward_title(self, node: Node) -> str:
        again = "" if node.order == 1 else f", in a backward that is recorded itself (order {node.order})"
        if node.kind == LEAF:
            return f"forward: {word_of(node)} is a {'parameter' if node.parameter else 'leaf'}{again}"
        inside = f" in {node.module}" if node.module else ""
        return f"forward: {node.label}{f' makes {node.name}' if node.name else f' #{node.id}'}{inside}{again}"


class _Backward:
    def __init__(self, builder: _Builder, number: int, backward: Backward):
        self.builder, self.number, self.backward = builder, number, backward
        self.nodes = builder.nodes
        self.firing = {step.node for step in backward.steps}
        self.users: dict[int, list[int]] = defaultdict(list)  # of those that fire, once for each edge
        for id in sorted(self.firing):
            for number in self.nodes[id].inputs:
                self.users[number].append(id)
        self.arrivals: dict[tuple[int, int], list[tuple[int, Summary | None]]] = defaultdict(list)  # (user, gradient)
        self.totals: dict[tuple[int, int], np.ndarray | None] = {}  # their sums
        self.waiting = {id: len(self.users[id]) for id in {*self.firing, *self.users}}  # users that have still to fire
        self.ready = {id for id in self.firing if not self.waiting[id]}  # ops that nothing keeps from firing

    def steps(self) -> Iterator[Moment]:
        """Give its beginning, its nodes and its end."""
        yield self._begin()
        for step in self.backward.steps:
            self.ready.discard(step.node)
            yield self._grad(step) if self.nodes[step.node].kind == LEAF else self._fire(step)
        yield self._end()

    def _moment(self, kind: str, title: str, parts: list[Detail], **fields) -> Moment:
        return self.builder.moment(kind, title, parts, backward=self.number, **fields)

    @property
    def _name(self) -> str:
        return "backward" if len(self.builder.backwards) == 1 else f"backward {self.number + 1}"

    def _begin(self) -> Moment:
        roots = listed([word_of(self.nodes[id]) for id in self.backward.roots])
        count = len(self.firing)
        all_fire = f"{count} nodes will fire, each when all that used its result have"
        lines = [all_fire if count > 1 else "1 node will fire"]
        if not self.backward.into_grad:
            lines.append("autograd.grad: gradients are returned, no .grad is written")
        if self.backward.create_graph:
            lines.append("create_graph: what this backward computes is recorded, and can be differentiated")
        elif self.backward.keep_graph:
            lines.append("retain_graph: nothing is freed, so that it can be run again")
        parts = [Detail("note", "begins at", (roots,)), Detail("note", "then", tuple(lines))]
        return self._moment(BEGIN, f"{self._name} begins", parts, place=place_text(self.backward.place))

    def _end(self) -> Moment:
        if self.backward.problem:
            parts = [Detail("note", "ended by", tuple(self.backward.problem.splitlines()))]
            return self._moment(END, f"{self._name} is ended by an error", parts)
        written = [step for step in self.backward.steps if step.grad_after is not None]
        afters = ((word_of(self.nodes[step.node]), step.grad_after) for step in written)
        lines = tuple(f"{word}.grad {equals(after)} {brief(after)}" for word, after in afters)
        parts = [Detail("grad", "written", lines)] if written else []
        if not self.backward.into_grad:
            parts.append(Detail("grad", "returned", tuple(self._returned()) or ("nothing",)))
        parts.append(Detail("memory", "memory", (f"{size_text(self.builder.memory.held)} still held for backward",)))
        return self._moment(END, f"{self._name} is done", parts)

    def _returned(self) -> Iterator[str]:
        """Give what autograd.grad returns: what arrived where nothing fired."""
        for target, pieces in self.arrivals.items():
            given = [gradient for _, gradient in pieces if gradient is not None]
            if target[0] not in self.firing and given:
                total, shape = self.totals[target], tuple(given[0].shape)
                text = brief(given[0]) if len(given) == 1 else f"a sum of shape {shape_text(shape)}"
                if total is not None:
                    text = brief(Summary(shape, given[0].dtype, values=np.asarray(total).tolist()))
                yield f"{text} for {word_of(self.nodes[target[0]])}"

    def _fire(self, step: Step) -> Moment:
        node = self.nodes[step.node]
        parts = [self._why(node), *self._gradient(node, step), *self._hooks(step)]
        flows = tuple(self._flows(node, step))
        for edge, gradient in zip(node.edges, step.outgoing):
            if edge is not None:
                lines = self.builder.equations.derivative(node, step, edge, gradient)
                parts.append(Detail("formula", f"→ {word_of(self.nodes[edge.to])}", tuple(lines)))
        parts += self.builder.cut(node)
        if step.grad_after is not None:
            parts.append(_accumulated(word_of(node), step, "retained in "))
        freed = None if self.backward.keep_graph else self.builder.memory.drop(node)
        if freed is not None:
            parts.append(Detail("memory", "frees", (self._freed(freed),)))
        inside = f" in {node.module}" if node.module else ""
        title = f"{self._name}: {function_of(node)} fires{inside}"
        return self._step_moment(FIRE, title, parts, step, flows=flows, freed=freed or 0)

    def _grad(self, step: Step) -> Moment:
        node = self.nodes[step.node]
        parts = [self._why(node), *self._gradient(node, step), *self._hooks(step)]
        if step.grad_after is not None:
            parts.append(_accumulated(word_of(node), step))
        elif not self.backward.into_grad:
            parts.append(Detail("grad", "returned", (f"by autograd.grad; {word_of(node)}.grad is not touched",)))
        return self._step_moment(GRAD, f"{self._name}: the gradient of {function_of(node)} is complete", parts, step)

    def _step_moment(self, kind: str, title: str, parts: list[Detail], step: Step, **fields) -> Moment:
        gradient, grad = (None if one is None else brief(one) for one in (step.arrived, step.grad_after))
        place = place_text(self.nodes[step.node].place)
        return self._moment(kind, title, parts, node=step.node, gradient=gradient, grad=grad, place=place, **fields)

    def _freed(self, freed: int) -> str:
        held = size_text(self.builder.memory.held)
        if freed:
            return f"{size_text(freed)}; {held} still held for backward"
        return f"nothing yet: what it kept is kept by others too; {held} still held for backward"

    def _why(self, node: Node) -> Detail:
        users = list(dict.fromkeys(self.users[node.id]))
        ways = [function_of(self.nodes[id]) for id in sorted(users, reverse=True)]
        if not ways and node.id not in self.backward.roots:
            line = "nothing that was recorded used its result"
        elif not ways:
            line = f"backward begins here: {word_of(node)} is the root"
        elif len(ways) == 1:
            line = f"its only user has fired: {ways[0]}"
        else:
            line = f"all {len(ways)} users have fired: {listed(ways[:4] + (['others'] if len(ways) > 4 else []))}"
        return Detail("why", "why now", (line, *self._among(node)))

    def _among(self, node: Node) -> list[str]:
        """Explain why this node goes first, where others could too and the rule explains it."""
        if node.kind == LEAF or not self.ready or max(self.ready) > node.id:
            return []
        words = listed([word_of(self.nodes[id]) for id in heapq.nlargest(3, self.ready)])
        return [f"{words} could fire too: what was made last goes first"]

    def _gradient(self, node: Node, step: Step) -> Iterator[Detail]:
        for output, arrived in enumerate(step.incoming):
            heading = "gradient" if len(step.incoming) == 1 else f"gradient {output}"
            yield Detail("gradient", heading, tuple(self._added_up(node, output, arrived, step)))

    def _added_up(self, node: Node, output: int, arrived: Summary | None, step: Step) -> list[str]:
        """Describe what arrived, and from whom."""
        changes = [change for change in step.changes if change.output == output]
        before = changes[0].before if changes else arrived
        pieces = [(user, gradient) for user, gradient in self.arrivals[node.id, output] if gradient is not None]
        if before is None:
            return ["none arrived"]
        sources = [function_of(self.nodes[user]) for user, _ in pieces]
        if not pieces:
            begun = node.id in self.backward.roots
            return _with_ending(drawn(before), ", which backward began with" if begun else "")
        if len(pieces) == 1 or len(pieces) > 6:
            return _with_ending(drawn(before), f", from {listed(sources[:6])}{' and others' if sources[6:] else ''}")
        terms = [gradient for _, gradient in pieces]
        if not _is_sum(terms, before):
            return _with_ending(drawn(before), f", from {listed(sources)}")
        lines = [f"{sum_text(terms)} {sum_sign(terms, before)} {brief(before)}"]
        return lines + [f"{brief(term)} from {source}" for term, source in zip(terms, sources)]

    def _hooks(self, step: Step) -> Iterator[Detail]:
        for change in step.changes:
            line = f"{change.hook} changes it: {brief(change.before)} → {brief(change.after)}"
            yield Detail("hook", "hook", (line,))

    def _flows(self, node: Node, step: Step) -> Iterator[OutgoingGradient]:
        for edge, gradient in zip(node.edges, step.outgoing):
            if edge is None:
                continue
            self.arrivals[edge.to, edge.output].append((node.id, gradient))
            waiting = self._count_down(edge.to)
            total = self._add_up((edge.to, edge.output), gradient) or brief(gradient)
            yield OutgoingGradient(
                node.id, edge.to, edge.output, edge.name, edge.formula, brief(gradient), total, waiting
            )

    def _add_up(self, target: tuple[int, int], gradient: Summary | None) -> str | None:
        """Add a gradient to what has arrived; return the sum in short, None where values were not recorded."""
        if gradient is None:
            return None
        array, before = given_of(gradient).array, self.totals.get(target, 0.0)
        if array is None or before is None:
            self.totals[target] = None
            return None
        self.totals[target] = before + array
        return brief(Summary(gradient.shape, gradient.dtype, values=np.asarray(self.totals[target]).tolist()))

    def _count_down(self, id: int) -> int:
        """Note that a user of a node has fired; return how many have still to."""
        self.waiting[id] -= 1
        if not self.waiting[id] and id in self.firing and self.nodes[id].kind != LEAF:
            self.ready.add(id)
        return self.waiting[id]


def _accumulated(word: str, step: Step, how: str = "") -> Detail:
    """Describe what `.grad` becomes: `None → 4`, `2 + 4 = 6`."""
    before, after, arrived = step.grad_before, step.grad_after, step.arrived
    head = f"{how}{word}.grad: {'None' if before is None else brief(before)}"
    if before is None or arrived is None or not _is_sum([before, arrived], after):
        return Detail("grad", "writes", (f"{head} → {brief(after)}",))
    sign = sum_sign([before, arrived], after)
    terms = (head, f" → {sum_text([before, arrived])}", f" {sign} {brief(after)}, added to what was there")
    if sum(map(len, terms)) <= LINE:
        return Detail("grad", "writes", ("".join(terms),))
    return Detail("grad", "writes", tuple(term.strip() for term in terms))


def _is_sum(terms: Sequence[Summary], total: Summary) -> bool:
    """Return whether terms are known to add up to a total, and all of it can be written."""
    summaries = [*terms, total]
    if not all(one is not None and is_written_out(one) for one in summaries):
        return False
    arrays = [given_of(one).array for one in summaries]
    return same(np.asarray(sum(arrays[:-1])), arrays[-1], ROUNDING)


def _with_ending(lines: list[str], ending: str) -> list[str]:
    """Describe where lines come from: behind the line, beneath several."""
    return [lines[0] + ending] if len(lines) == 1 else [*lines, *filter(None, [ending.removeprefix(", ")])]


def place_text(place: Place | None) -> str:
    """Write a line of source: `train.py:12  loss = f(x)`."""
    return "" if place is None else f"{place.where}  {place.text.strip()}".rstrip()


VIEWS = frozenset(  # ops whose result is a view of their input: what it shows is the input's memory
    ("Alias", "AsStrided", "Chunk", "Diagonal", "Expand", "Narrow", "Permute", "Select", "Slice", "Split", "Squeeze")
    + ("T", "Transpose", "Unbind", "Unfold", "Unsqueeze", "View")
)


class Memory:
    """Follows what is held from node to node.

    The memory of a leaf, also where a view of it was kept, is not counted: the user keeps it anyway.
    """

    def __init__(self, nodes: list[Node]):
        self.nodes = nodes
        self.keepers: Counter = Counter()  # how many nodes keep each memory
        self.sizes: dict[int, int] = {}
        self.keeping: set[int] = set()  # nodes that have something and have not dropped it
        self.held = 0  # bytes, now

    def keep(self, node: Node) -> bool:
        """Let a node keep what it saved; tell whether that is anything that counts."""
        counted = self._counted(node)
        for memory, size in counted.items():
            self.keepers[memory] += 1
            grown = max(0, size - self.sizes.get(memory, 0))
            self.sizes[memory] = self.sizes.get(memory, 0) + grown
            self.held += grown
        if counted:
            self.keeping.add(node.id)
        return bool(counted)

    def drop(self, node: Node) -> int | None:
        """Drop what a node saved; return how many bytes nothing keeps any more, None if it saved nothing."""
        if node.id not in self.keeping:
            return None
        self.keeping.discard(node.id)
        before = self.held
        for memory in self._counted(node):
            self.keepers[memory] -= 1
            if not self.keepers[memory]:
                self.held -= self.sizes.pop(memory)
        return before - self.held

    def _counted(self, node: Node) -> dict[int, int]:
        found: dict[int, int] = {}
        for kept in node.saved:
            if not self._is_of_leaf(kept):
                found[kept.memory] = max(kept.bytes, found.get(kept.memory, 0))
        return found

    def _is_of_leaf(self, kept: SavedTensor) -> bool:
        node = None if kept.of is None else self.nodes[kept.of]
        while node is not None and node.type.partition("Backward")[0] in VIEWS and node.edges[0] is not None:
            node = self.nodes[node.edges[0].to]
        return node is not None and node.kind == LEAF

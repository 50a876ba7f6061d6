"""Whether a gradient flows from one tensor to another: `graph.path(y, x)`, and where the path is cut if it does not."""

import html
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from backlight.autograd.nodes import first_node, nodes, place_of, short
from backlight.autograd.saved_memory import saved
from backlight.dispatch.observers import Line, line_at
from backlight.dtypes import from_numpy_dtype
from backlight.engine.node import AccumulateGrad, Node
from backlight.engine.tensor_state import TensorState
from backlight.engine.views import NO_GRAD
from backlight.errors import ArgumentError
from backlight.ops.type_promotion import has_gradient
from backlight.tensor.tensor import Tensor
from backlight.transforms.checkpoint.reentrant import (
    function_run_again,
    held_by,
    name_of_function,
    outputs_run_again,
)

NOT_REQUIRED, INTEGER, NO_GRAPH, IS_LEAF = "requires_grad is False", "integer dtype", "no graph", "is a leaf"
DETACHED, NO_GRAD_VIEW, TOO_LATE = "detached", "no_grad", "required too late"
OVERWRITTEN, UNRELATED, NOT_KNOWN = "overwritten in place", "unrelated", "not known"
MOST_SUSPECTS = 5
CURES = {
    NOT_REQUIRED: "call requires_grad_() on it before the computation",
    INTEGER: "make it of floats, .float(), before the computation",
    NO_GRAPH: "compute it from tensors that require grad, outside of no_grad(), without .detach(), .item() or .data",
    IS_LEAF: "compute it from the other tensor, instead of making it anew of its numbers",
    DETACHED: "use the tensor itself there",
    NO_GRAD_VIEW: "make the view outside of no_grad()",
    TOO_LATE: "call requires_grad_() before the computation",
    OVERWRITTEN: "take the path to the tensor before the write, or write to a clone",
    UNRELATED: "compute y from x itself; inside lens.watch(), lens.path() names the .item(), argmax or no_grad() that "
    "left the graph",
    NOT_KNOWN: "call checkpoint with use_reentrant=False, which records all that the function reads",
}


@dataclass(frozen=True)
class Step:
    """A node on the path, with the line that made it."""

    node: Node
    place: Line | None

    @property
    def name(self) -> str:
        """The node's name, as PyTorch spells it, without a namespace."""
        return self.node.name().rpartition("::")[2]

    def __str__(self) -> str:
        if self.node.__class__ is AccumulateGrad:
            return f"AccumulateGrad of a leaf {list(self.node.variable._data.shape)}"
        return f"{self.name}, {short(self.place)}" if self.place is not None else self.name


@dataclass(frozen=True)
class Cut:
    """Why no gradient arrives.

    Args:
        kind: "requires_grad is False", "integer dtype", "no graph", "is a leaf", "detached", "no_grad", "required too
            late", "overwritten in place", "unrelated"; "not known" where one may arrive.
        what: the reason, as a sentence.
        place: the line that caused it, if it is known.
        cure: what to change.
    """

    kind: str
    what: str
    place: Line | None
    cure: str

    def __str__(self) -> str:
        where = [] if self.place is None else [f"  at {short(self.place)}"]
        return "\n".join([self.what, *where, f"  Try: {self.cure}"])


@dataclass(frozen=True, repr=False)
class Path:
    """The path of a gradient from one tensor to another; false if there is none, or none is known.

    Args:
        steps: the nodes of a shortest path, from the first tensor; () if none leads to the other.
        ways: how many paths there are; their gradients are summed.
        cut: why none arrives; None if one does.
        notes: further facts: saved tensors were freed, the gradient is not kept, it is always 0.
    """

    steps: tuple[Step, ...]
    ways: int
    cut: Cut | None
    notes: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        """Whether a gradient arrives."""
        return self.cut is None

    @property
    def unknown(self) -> bool:
        """Whether the graph cannot tell: a node computes again in backward, and may read the other tensor then."""
        return self.cut is not None and self.cut.kind == NOT_KNOWN

    def __bool__(self) -> bool:
        return self.found

    def __len__(self) -> int:
        return len(self.steps)

    def _title(self) -> str:
        if self.unknown:
            return f"it is not known whether a gradient arrives: {self.cut}"
        if self.cut is not None:
            return f"no gradient arrives: {self.cut}"
        more = "" if self.ways == 1 else f"; the shortest of {self.ways} paths"
        return f"a gradient arrives, through {len(self.steps)} node{'s' if len(self.steps) != 1 else ''}{more}"

    def __str__(self) -> str:
        lines = [f"{'  ' * min(depth + 1, 20)}{step}" for depth, step in enumerate(self.steps)]
        return "\n".join([self._title(), *lines, *(f"note: {one}" for one in self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        steps = "".join(f"<li><code>{html.escape(str(step))}</code></li>" for step in self.steps)
        notes = "".join(f"<p><i>{html.escape(one)}</i></p>" for one in self.notes)
        title = html.escape(self._title()).replace("\n", "<br>")
        return f"<p><b>{title}</b></p><ol>{steps}</ol>{notes}"


def path(y: Tensor, x: Tensor) -> Path:
    """Explain why the gradient of `y` does, or does not, arrive at `x`.

    It reads only the tensors and the graph: nothing has to be recorded before. A function that a re-entrant
    checkpoint will run again in backward is run now, too, since what it reads is recorded only then.

    Example:
        >>> import backlight
        >>> x = backlight.tensor([1.0, 2.0], requires_grad=True)
        >>> found = path((x * 3).exp().sum(), x)
        >>> [step.name for step in found.steps]
        ['SumBackward0', 'ExpBackward0', 'MulBackward0', 'AccumulateGrad']
        >>> path(x.detach() * x.detach(), x).cut.kind
        'no graph'

    Raises:
        TypeError: one of the two is no tensor.
    """
    for name, one in (("y", y), ("x", x)):
        if not isinstance(one, TensorState):
            raise ArgumentError(
                f"{name} must be a tensor, got {type(one).__name__}: pass the result and an input of it"
            )
    cut = _without_graph(y, x)
    if cut is not None:
        return Path((), 0, cut)
    target = first_node(x)
    found = _shortest(first_node(y), target, _is_flat) or _shortest(first_node(y), target)
    if found:
        steps = tuple(Step(node, place_of(node)) for node in found)
        return Path(steps, _count(y, target), None, tuple(_notes(y, x, steps)))
    reruns = [node for node in nodes(y) if function_run_again(node) is not None]
    results = [outputs_run_again(node) for node in reruns]
    for node, outs in zip(reruns, results):
        for out in outs or ():
            inner = path(out, x)
            if inner.found:
                return _through(y, node, inner)
    cut = cut_between(y, x, next((node for node, outs in zip(reruns, results) if outs is None), None))
    return Path((), 0, cut, tuple(_suspects(y)) if cut.kind == UNRELATED else ())


def _cut(kind: str, what: str, place: Line | None = None) -> Cut:
    return Cut(kind, what, place, CURES[kind])


def _without_graph(y: TensorState, x: TensorState) -> Cut | None:
    """Return why there can be no path, if one of the two has no graph."""
    if x._edge is None:
        if not has_gradient(x._data.dtype):
            return _cut(INTEGER, f"x is {from_numpy_dtype(x._data.dtype)}: only floating point tensors have gradients")
        view = _made_without_recording(x)
        return view or _cut(NOT_REQUIRED, "x does not require grad: no op records what is computed from it")
    if y._edge is None:
        if not has_gradient(y._data.dtype):
            kind = from_numpy_dtype(y._data.dtype)
            return _cut(NO_GRAPH, f"y is {kind}: what made it has no derivative, or y was converted")
        return _made_without_recording(y) or _cut(NO_GRAPH, f"y does not require grad{_shared(y, x)}")
    if y.is_leaf and y is not x:
        return _cut(IS_LEAF, f"y is a leaf: it was made from numbers, not computed from other tensors{_shared(y, x)}")
    return None


def _made_without_recording(tensor: TensorState) -> Cut | None:
    if tensor._view is None or tensor._view[1] is not NO_GRAD:
        return None
    return _cut(NO_GRAD_VIEW, "it is a view that was made while gradients were not recorded")


def _shared(y: TensorState, x: TensorState) -> str:
    return "; it shares memory with x: it is what .detach() or .data gave" if _share(y, x) else ""


def _share(one: TensorState, other: TensorState) -> bool:
    """Tell whether two tensors share memory."""
    first, second = one._data, other._data
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray):
        return first is second
    return np.may_share_memory(first, second)


def _is_flat(node: Node) -> bool:
    """Tell whether a node's gradients are always zeros, as for round and sign."""
    op = getattr(node, "op", None)
    return op is not None and set(op.formulas().values()) == {"0"}


def _shortest(start: Node, target: Node, avoid: Callable[[Node], bool] = lambda node: False) -> list[Node]:
    """Return the nodes of a shortest path around those to avoid, [] if there is none."""
    before, queue = {start: None}, deque([start])
    while queue:
        node = queue.popleft()
        if node is target:
            found = []
            while node is not None:
                found.append(node)
                node = before[node]
            return found[::-1]
        if avoid(node):
            continue
        for inner, _ in node.next_functions:
            if inner is not None and inner not in before:
                before[inner] = node
                queue.append(inner)
    return []


def _count(y: TensorState, target: Node) -> int:
    """Count the paths from y to a node: nodes made earlier come later in `nodes`."""
    ways = {first_node(y): 1}
    for node in nodes(y):
        if node is target:
            return ways.get(node, 0)
        for inner, _ in node.next_functions:
            if inner is not None:
                ways[inner] = ways.get(inner, 0) + ways.get(node, 0)
    return ways.get(target, 0)


def _notes(y: TensorState, x: TensorState, steps: tuple[Step, ...]):
    """Yield other reasons why a gradient is not visible, though there is a path."""
    flat = next((step for step in steps if _is_flat(step.node)), None)
    if flat is not None:
        yield f"the gradient that arrives is 0: each path goes through a node whose gradient is always 0, like {flat}"
    if not x.is_leaf and not x.retains_grad:
        yield "x is no leaf: its gradient is not kept in x.grad; call x.retain_grad() before backward()"
    if any(node.freed_slots and _is_freed(node) for node in nodes(y)):
        yield "a backward has freed what nodes on the path saved: it cannot run again (see retain_graph)"


def _suspects(y: TensorState):
    """Yield nodes that read a tensor without a graph: what that was computed from is unknown."""
    found = [node for node in nodes(y) if None in node.edges and _reads_more_than_numbers(node)]
    for node in found[:MOST_SUSPECTS]:
        where = f"{node.name()} ({short(place_of(node))})"
        yield f"{where} read a tensor without a graph: if that was computed from x, the path was cut before it"


def _reads_more_than_numbers(node: Node) -> bool:
    if hasattr(node, "ctx"):
        return True
    kept = (getattr(node, slot, None) for slot, _ in node.saved_slots)
    plain = [one for one in kept if isinstance(one, TensorState) and one._edge is None]
    return any(one._data.ndim for one in plain) or not plain


def _is_freed(node: Node) -> bool:
    if hasattr(node, "ctx"):  # its saved tensors cannot be read after a backward, and it may have saved none
        return False
    return all(getattr(node, slot, None) is None for slot in node.freed_slots)


def _through(y: TensorState, node: Node, inner: Path) -> Path:
    """Return a path through a node that runs a function again in backward, and through the graph that this records."""
    outer = tuple(Step(one, place_of(one)) for one in _shortest(first_node(y), node))
    note = f"{outer[-1].name} runs {name_of_function(node)} again in backward, which reads x: the path continues there"
    return Path((*outer, *inner.steps), _count(y, node) * inner.ways, None, (note, *inner.notes))


def cut_between(y: TensorState, x: TensorState, unknown: Node | None = None) -> Cut:
    """Return why no gradient of `y` arrives at `x`, though both have a graph.

    Args:
        unknown: a node that runs a function again in backward, of which the inputs are unknown.
    """
    if unknown is not None:
        return _inside_checkpoint(unknown, x)
    reached = dict.fromkeys(nodes(y))
    earlier = next((node for node in nodes(x) if node in reached and node.edges), None)
    writer = None if x._storage is None else x._storage.writer
    if writer is not None and earlier is not None and not x.is_leaf:
        name, *place = writer
        return _cut(
            OVERWRITTEN, f"x was written to by {name} after y had read it: it is another value now", line_at(*place)
        )
    for one in saved(y):
        if not isinstance(one.value, TensorState):
            continue
        if one.value is x:
            return _cut(TOO_LATE, f"{one.node.name()} read x before x required grad", one.place)
        if one.value._edge is None and _share(one.value, x):
            what = f"{one.node.name()} read the memory of x through a tensor without a graph: .detach() or .data"
            return _made_without_recording(one.value) or _cut(DETACHED, what, one.place)
    return _cut(UNRELATED, "nothing in the graph of y is known to come from x")


def _inside_checkpoint(node: Node, x: TensorState) -> Cut:
    """Return a cut: a node may pass a gradient to tensors that its function reads besides its arguments."""
    function, name = function_run_again(node), name_of_function(node)
    what = f"{node.name().rpartition('::')[2]} runs {name} again in backward, and what that reads besides its arguments"
    what += " is not in the graph"
    if any(one is x for one in held_by(function)):
        what += f". {name} holds x: a gradient arrives if it is used"
    return _cut(NOT_KNOWN, what, place_of(node))

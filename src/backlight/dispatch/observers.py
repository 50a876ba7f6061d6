"""The events that a watcher of a program receives: ops as they return, modules entered and left, the backward pass.

NOTE [Watching]
A `Watcher` receives events from an engine's `observe(watcher)` (see NOTE [An engine] in lens/engines.py), which is the
same for backlight's own engine and for PyTorch's. Tensors and nodes are the engine's own objects, not copies: a watcher
that keeps one keeps its memory, and must read a value at once if it may be written to later. A watcher's own ops are
not reported to it. A method's cost is paid at every event; an event whose method is not overridden costs nothing.
"""

import linecache
from collections.abc import Sequence
from types import CodeType
from typing import Any, NamedTuple

from backlight.engine.provenance import line_number

OF_LEAF = -1  # in place of an output's number: an edge leads to a leaf
COMPILED = "compiled "  # with what the name of a call of compiled code begins


class Line(NamedTuple):
    """A line of source: `file:line`, in which function, and its text ("" if it cannot be read)."""

    file: str
    line: int
    function: str
    text: str


def line_at(code: CodeType | None, lasti: int) -> Line | None:
    """Return the line of an instruction, None if the code is not known."""
    if code is None:
        return None
    number = line_number(code, lasti)
    return Line(code.co_filename, number, code.co_name, linecache.getline(code.co_filename, number).strip())


class SavedValue(NamedTuple):
    """A tensor that a node saved; `tensor` is None if it was freed or modified, and `problem` says which."""

    name: str
    tensor: Any
    problem: str | None


class Call(NamedTuple):
    """One call of an op by a program: `torch.relu(x)`, `x + y`, `x.add_(1)`, `x.numpy()`.

    Args:
        name: the function's own name, `add`, `add_`, `cross_entropy`, `__getitem__`.
        args: what it was called with, the tensor of a method first.
        kwargs: the keyword arguments.
        out: what it returned.
        code: the code object of the user's line, outside of the engine's own files.
        lasti: the instruction within it (`engine.provenance.line_number` gives the line).
    """

    name: str
    args: tuple
    kwargs: dict[str, Any]
    out: Any
    code: CodeType
    lasti: int


class Run:
    """One backward pass, of `backward()` or of `autograd.grad()`.

    Args:
        number: how many runs began before this one, nested runs included.
        roots: (node, output number) that it starts from; a leaf's node is its AccumulateGrad.
        root_gradients: the gradient that each starts with.
        inputs: the (node, output number) whose gradients are wanted, or None for all leaves.
        accumulate_grad: whether they are added to the leaves' `.grad`: `backward()`, not `grad()`.
        retain_graph: whether saved tensors stay.
        create_graph: whether the run is itself recorded.
        code: the code object of the user's line that started it.
        lasti: the instruction within it.
        problem: the exception that ended it, if one did.
    """

    __slots__ = (
        "code",
        "create_graph",
        "inputs",
        "accumulate_grad",
        "retain_graph",
        "lasti",
        "number",
        "problem",
        "root_gradients",
        "roots",
    )

    def __init__(
        self,
        *,
        number: int,
        roots: list[tuple[Any, int]],
        root_gradients: list,
        inputs: list[tuple[Any, int]] | None,
        accumulate_grad: bool,
        retain_graph: bool,
        create_graph: bool,
        code: CodeType,
        lasti: int,
    ):
        self.number = number
        self.roots = roots
        self.root_gradients = root_gradients
        self.inputs = inputs
        self.accumulate_grad = accumulate_grad
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.code = code
        self.lasti = lasti
        self.problem: BaseException | None = None


class Watcher:
    """Receives the events of a program (see NOTE [Watching]); a subclass overrides the methods of those that it wants.

    `only_nodes` restricts calls to those that may have made nodes, that read a tensor with a graph and return a value
    without one, or that register hooks: an engine may leave out the others, which are most. `only_recorded` leaves out
    those of the others that return while recording is off. The watcher may change both in `called`, which holds from
    the next call on; if it changes them elsewhere, it calls the engine's `wants_changed`.
    """

    only_nodes = False
    only_recorded = False

    def called(self, call: Call) -> None:
        """An op returned; `call.out` has its node already."""

    def wrote(self, tensor, name: str, code: CodeType, lasti: int) -> None:
        """An op wrote to a tensor's memory and counted a version, which is the tensor's `_version` now."""

    def entered(self, module, path: str) -> None:
        """A module's forward begins; `path` is its dotted name inside the outermost module that runs, "" for that."""

    def left(self, module, path: str, out) -> None:
        """A module's forward ends."""

    def started(self, run: Run) -> None:
        """A backward begins: its graph is as the forward left it."""

    def ran(self, run: Run, node, grad_outputs: Sequence, grad_inputs: Sequence) -> None:
        """A node and its hooks have run: gradients of its outputs as they arrived, and those that it gives its edges.

        Tensors, or None where there is no gradient. For an AccumulateGrad `grad_inputs` is empty.
        """

    def accumulated(self, run: Run, tensor, arrived, before) -> None:
        """A gradient was added to `.grad` of a leaf, or of a tensor that retains it; `before` is None or a copy."""

    def changed(self, run: Run, node, number: int, hook, before, after) -> None:
        """A user's hook replaced the gradient of a node's output (`before` → `after`), or edited it in place."""

    def freed(self, run: Run, node) -> None:
        """A node dropped its saved values."""

    def ended(self, run: Run) -> None:
        """A backward ended; if an exception ended it, `run.problem` is it."""

    def compiled(self, name: str, out) -> None:
        """Compiled code ran, and returned `out`: what it did inside is not reported; the call itself was."""

    def paused(self) -> None:
        """Compiled code begins: what the watcher has put into the engine must be taken away until `resumed`."""

    def resumed(self) -> None:
        """It ended."""

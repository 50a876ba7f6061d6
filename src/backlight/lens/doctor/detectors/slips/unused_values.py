"""Values that are computed in a step and never used: a name that is assigned and never read.

NOTE [A value that is never used]
The result of an op with a graph is stored under a name that its scope reads nowhere, in steps whose loss does not
contain it. What a module with parameters returned is left alone: that its parameters are cut off is another finding,
and a forward may be called for its hooks.
"""

import ast
from itertools import islice

from backlight.dispatch.observers import Call
from backlight.engine.provenance import frame_of
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Tensor, is_computed, nodes_behind, sequence_of
from backlight.lens.doctor.places import Instruction, brief, brief_at, is_users, place_of
from backlight.lens.doctor.source import spelled, spot_of, stored_in
from backlight.lens.records.record import Place

TWICE, DEEP = 2, 20_000
HIDDEN_READS = {"locals", "vars", "eval", "exec", "globals"}


class UnusedValues(Detector):
    """Finds them (see NOTE [A value that is never used])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.names: dict[Instruction, str | None] = {}  # lines -> the name that is never read, None if there is none
        self.waiting: dict[Instruction, int] = {}  # -> sequence number of the last value
        self.times: dict[Instruction, int] = {}

    def called(self, call: Call) -> None:
        """Look at what becomes of a result."""
        if not self.engine.is_tensor(call.out):
            return
        line = Instruction(call.code, call.lasti)
        name = self.names.get(line, "")
        if name is None:
            return
        if not is_computed(call.out):
            return
        if not name:
            name = self.names[line] = self._unread(line)
        if name is not None:
            self.waiting[line] = sequence_of(call.out.grad_fn)

    def _unread(self, line: Instruction) -> str | None:
        """Return the name under which a result is stored, if nothing reads it."""
        name = stored_in(*line)
        if not name or name.startswith("_") or not is_users(line.code.co_filename):
            return None
        spot = spot_of(line, frame_of(line.code))
        if spot.scope is None or spot.statement is None or not isinstance(spot.statement, ast.Assign):
            return None
        if spelled(spot.statement.targets[0]) != name or spot.statement.value is not spot.expression:
            return None
        nodes = list(ast.walk(spot.scope))
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Load, ast.Del)):
                if node.id == name or node.id in HIDDEN_READS:
                    return None
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                if name in node.names:
                    return None
            elif isinstance(node, ast.AugAssign) and spelled(node.target) == name:
                return None
        called = None if spot.call is None else spot.value(spot.call.func)
        if spot.call is not None and called is None:
            called = _attribute(spot, spot.call.func)
        if isinstance(called, self.engine.module.nn.Module) and next(called.parameters(), None) is not None:
            return None
        return name

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Count a step in which a value was not used."""
        if not self.waiting or not is_computed(tensor):
            return
        waiting, self.waiting = self.waiting, {}
        behind = {sequence_of(one) for one in islice(nodes_behind([tensor.grad_fn]), DEEP) if one.next_functions}
        for line, number in waiting.items():
            if number in behind:
                self.names[line] = None
                continue
            self.times[line] = self.times.get(line, 0) + 1
            if self.times[line] == TWICE:
                self._report(line, place)

    def _report(self, line: Instruction, place: Place | None) -> None:
        name = self.names[line]
        self.report(
            "value-never-used",
            place_of(line),
            f"{name} is assigned at {brief_at(line)}, requires grad, but nothing reads it.",
            f"The loss of backward() at {brief(place)} does not contain it.",
            title=f"{name} is computed in each step and never used",
        )


def _attribute(spot, func: ast.AST):
    """Return the layer that `self.layer` stands for."""
    if not isinstance(func, ast.Attribute):
        return None
    return getattr(spot.value(func.value), "_modules", {}).get(func.attr)

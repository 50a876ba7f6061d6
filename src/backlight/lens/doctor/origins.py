"""Where tensors without a graph come from: the op that was given a recorded tensor and returned one that is not.

NOTE [Cuts]
A cut is an op some input of which requires grad and whose output does not. What is computed from a cut's output is
behind the same cut. Nothing is kept alive: an output's cuts are forgotten with it.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Module
from backlight.lens.doctor.places import Instruction, users_frames
from backlight.lens.doctor.source import Spot, spot_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

MODULES = 100  # outermost modules that are remembered
SWITCHES = ("no_grad", "inference_mode", "set_grad_enabled")
MANY = 8  # cuts that one tensor is said to be behind


@dataclass(frozen=True)
class CutOrigin:
    """An op after which there is no graph (NOTE [Cuts]).

    Args:
        name: the op's.
        code, lasti: the user's line.
        recording: whether recording was on.
        of_tensor: whether it was called on a tensor, and not on a list.
        switch: what switched recording off, if it is known.
    """

    name: str
    code: CodeType
    lasti: int
    recording: bool
    of_tensor: bool
    switch: Spot | None = None


class Origins(Detector):
    """Follows cuts from op to op; it finds nothing itself."""

    every_call = True

    def __init__(self, watch):
        super().__init__(watch)
        self._behind: WeakIdDict[tuple[CutOrigin, ...]] = WeakIdDict()
        self._modules: WeakIdDict[None] = WeakIdDict()
        self._switches: dict[tuple[CodeType, int], Spot | None] = {}  # lines at which nothing is recorded

    def called(self, call: Call) -> None:
        """Note a cut, or hand earlier ones on."""
        out = call.out
        if self.engine.is_tensor(out):
            outs = [] if out.requires_grad else [out]
        else:
            outs = [one for one in _flat(out) if self.engine.is_tensor(one)] if isinstance(out, (tuple, list)) else []
        if all(one.requires_grad for one in outs):
            return
        cuts: dict[CutOrigin, None] = {}
        for value in (*_flat(call.args), *_flat(tuple(call.kwargs.values()))):
            if not self.engine.is_tensor(value):
                continue
            if value.requires_grad:
                of_tensor = bool(call.args) and self.engine.is_tensor(call.args[0])
                recording = self.engine.module.is_grad_enabled()
                switch = None if recording else self._switch(call)
                cuts[CutOrigin(call.name, call.code, call.lasti, recording, of_tensor, switch)] = None
            cuts.update(dict.fromkeys(self.cuts_before(value)))
        if cuts:
            for one in outs:
                self._behind[one] = tuple(cuts)[:MANY]

    def _switch(self, call: Call) -> Spot | None:
        """Return what switched recording off for a call; looked for once a line."""
        key = call.code, call.lasti
        if key not in self._switches:
            self._switches[key] = switch_around(sys._getframe(1))
        return self._switches[key]

    def cuts_before(self, tensor: Any) -> tuple[CutOrigin, ...]:
        """Return the cuts that a tensor without a graph is behind, those of its own line first."""
        return self._behind.get(tensor, ())

    def entered(self, module: Module, path: str) -> None:
        """Remember an outermost module."""
        if not path and len(self._modules) < MODULES:
            self._modules[module] = None

    def all_frozen(self) -> Iterator[str]:
        """Describe which modules ran whose parameters are all frozen."""
        for module in self._modules.alive():
            parameters = list(module.parameters())
            if parameters and not any(one.requires_grad for one in parameters):
                yield f"all {len(parameters)} parameters of {type(module).__name__} have requires_grad=False"


def _flat(value: Any) -> list:
    """Return what is in a value: itself, or what is in lists and tuples."""
    return [one for inner in value for one in _flat(inner)] if isinstance(value, (list, tuple)) else [value]


def switch_around(frame: FrameType | None) -> Spot | None:
    """Return the `with no_grad():` or the decorator by which what runs in a frame is not recorded."""
    for user in users_frames(frame):
        spot = spot_of(Instruction(user.f_code, user.f_lasti))
        head = switch_around_node(spot.expression)
        if head is not None:
            return spot.at(head)
    return None


def switch_around_node(node: ast.AST | None) -> ast.AST | None:
    """Return the `no_grad()` of a block or a decorator that a piece of syntax stands in, within its function."""
    while node is not None:
        heads = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            heads = node.decorator_list
        head = next((one for one in heads if _switches_off(one)), None)
        if head is not None or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return head
        node = getattr(node, "parent", None)
    return None


def _switches_off(head: ast.AST) -> bool:
    """Return whether an expression is `torch.no_grad()` or one of its like."""
    func = head.func if isinstance(head, ast.Call) else head
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    if name == "set_grad_enabled":
        mode = head.args[0] if isinstance(head, ast.Call) and head.args else None
        return isinstance(mode, ast.Constant) and mode.value is False
    return name in SWITCHES

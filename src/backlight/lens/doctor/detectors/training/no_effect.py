"""Statements that look as if they did something: a dropped result, a method that is not called, a hook, an update."""

import ast
import dis
import inspect
import linecache
import textwrap
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from backlight.dispatch.observers import Call, Run
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import name_in
from backlight.lens.doctor.graph import Optimizer, Tensor, is_parameter
from backlight.lens.doctor.places import Instruction, brief, brief_at, is_users, place_of, place_of_frame
from backlight.lens.doctor.source import parsed, spelled, spot_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

OUT_OF_PLACE = {
    "detach",
    "clamp",
    "clip",
    "masked_fill",
    "to",
    "float",
    "double",
    "half",
    "long",
    "squeeze",
    "unsqueeze",
}
OUT_OF_PLACE |= {"reshape", "view", "permute", "transpose", "flatten", "contiguous", "mul", "add", "sub", "div", "neg"}
OUT_OF_PLACE |= {"relu", "sigmoid", "tanh", "softmax", "normalize", "masked_scatter", "index_add", "scatter", "expand"}
IN_PLACE = {"detach", "clamp", "masked_fill", "mul", "add", "sub", "div", "squeeze", "unsqueeze", "neg", "relu"}
METHODS = {"backward", "step", "zero_grad", "train", "eval", "detach", "detach_", "requires_grad_"}
MODULES = {"F", "torch", "nn.functional", "torch.nn.functional", "functional"}
FLAGS = {"requires_grad", "training"}
THRICE = 3
HOOKS = ("register_hook", "register_full_backward_hook", "register_forward_hook", "register_forward_pre_hook")


class NoEffect(Detector):
    """Looks for statements without effect."""

    calls = frozenset({*OUT_OF_PLACE, "register_hook"})

    def __init__(self, watch):
        super().__init__(watch)
        self.known: set[Instruction] = set()
        self.files: dict[str, None] = {}

    def begin(self) -> None:
        """Watch hooks of modules."""
        kind = self.engine.module.nn.Module
        for name in HOOKS[1:]:
            if hasattr(kind, name):
                self.watch.after(kind, name, self._registered)

    def called(self, call: Call) -> None:
        """Look at a result that is dropped, or at a hook."""
        if call.name == "register_hook":
            if len(call.args) > 1:
                self._look_at_hook(call.args[1], spot_of(call).place)
            return
        line = Instruction(call.code, call.lasti)
        if line in self.known or len(self.known) > 100_000:
            return
        self.known.add(line)
        if not self.engine.is_tensor(call.out) or any(call.out is one for one in call.args):
            return
        if _is_popped(call.code, call.lasti):
            self._look_at_dropped(call)

    def _look_at_dropped(self, call: Call) -> None:
        spot = spot_of(call)
        node = spot.call
        if (
            node is None
            or not isinstance(node.func, ast.Attribute)
            or node.func.attr.strip("_") != call.name.strip("_")
        ):
            return
        if not isinstance(spot.statement, ast.Expr) or spot.statement.value is not node or node.func.attr.endswith("_"):
            return
        owner = spelled(node.func.value)
        if owner in MODULES and spot.function == "<module>":
            return  # tried out, as in an example
        method = owner is not None and spot.value(node.func.value) is None and owner not in MODULES
        corrected = f"{owner} = {spot.text(node)}" if method and owner != "nn" and owner.isidentifier() else None
        self.report(
            "result-dropped",
            spot.place,
            f"{call.name}() at {brief(spot.place)} returned a new tensor of shape {tuple(call.out.shape)}, "
            "which nothing keeps; the original is unchanged.",
            title=f"the result of {call.name}() is discarded",
            cure=f"keep the result: {owner or 'x'} = {spot.text(node)}" if method else None,
            corrected=corrected,
        )

    def _registered(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        if len(args) > 1 and is_users(frame.f_code.co_filename):
            self._look_at_hook(args[1], place_of_frame(frame))

    def _look_at_hook(self, hook: Callable, place: Place | None) -> None:
        """Report a hook that ends in an assignment to a name of its own, and returns nothing."""
        name = getattr(hook, "__name__", "")
        function = _source_of(hook)
        if function is None or any(isinstance(one, ast.Return) and one.value is not None for one in ast.walk(function)):
            return
        last = function.body[-1]
        shared = {
            one for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal)) for one in node.names
        }
        if not isinstance(last, ast.Assign) or not all(isinstance(one, ast.Name) for one in last.targets):
            return
        if any(one.id in shared for one in last.targets):
            return
        code = hook.__code__
        line = code.co_firstlineno + last.lineno - 1
        where = Place(code.co_filename, line, name, linecache.getline(code.co_filename, line).strip())
        target = last.targets[0].id
        self.report(
            "hook-returns-nothing",
            where,
            f"{name}, registered at {brief(place)}, ends in `{where.text}` and returns None: it only assigns the "
            f"local name {target}.",
            title=f"the hook {name} changes nothing: it does not return what it computes",
            cure=f"return {target} from {name}",
            corrected=f"return {ast.unparse(last.value)}" if len(last.targets) == 1 else None,
        )

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Note a file of the program."""
        if place is not None:
            self.files[place.file] = None

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Note a file of the program."""
        if place is not None:
            self.files[place.file] = None

    def end(self, problem: BaseException | None) -> None:
        """Report statements that name a method and do not call it, or compare where they should assign."""
        for file in self.files:
            for node in _lone_expressions(tuple(linecache.getlines(file))):
                self._look_at_statement(file, node)

    def _look_at_statement(self, file: str, node: ast.Expr) -> None:
        value, text = node.value, linecache.getline(file, node.lineno).strip()
        place = Place(file, node.lineno, "", text)
        if isinstance(value, ast.Attribute) and value.attr in METHODS and spelled(value.value) is not None:
            self.report(
                "method-not-called",
                place,
                f"`{ast.unparse(value)}` at {brief(place)} is a statement without parentheses: it is not called.",
                corrected=text.replace(ast.unparse(value), f"{ast.unparse(value)}()", 1),
            )
        elif isinstance(value, ast.Compare) and isinstance(value.left, ast.Attribute) and value.left.attr in FLAGS:
            single = len(value.ops) == 1 and isinstance(value.ops[0], ast.Eq)
            self.report(
                "method-not-called",
                place,
                f"`{ast.unparse(value)}` at {brief(place)} compares, but nothing uses the result.",
                title="a comparison is used where an assignment is meant",
                cause="== was written instead of =",
                cure="write = instead of ==",
                corrected=text.replace("==", "=", 1) if single and text.count("==") == 1 else None,
            )
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and _has_parameters(value.right):
            owner = spelled(value.left)
            self.report(
                "method-not-called",
                place,
                f"`{ast.unparse(value)}` at {brief(place)} makes a new list, but nothing keeps it.",
                title="a sum of lists of parameters is discarded",
                cause="+ was written instead of +=",
                cure=f"write += instead of +: {owner or 'the list'} is then longer",
                corrected=None if owner is None else text.replace(f"{owner} + ", f"{owner} += ", 1),
            )


@lru_cache(maxsize=64)
def _lone_expressions(lines: tuple[str, ...]) -> list[ast.Expr]:
    """Return the expressions of a file that are statements of one line."""
    nodes = ast.walk(parsed(lines) or ast.Module(body=[]))
    return [node for node in nodes if isinstance(node, ast.Expr) and node.lineno == node.end_lineno]


def _has_parameters(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "parameters" for one in ast.walk(node))


def _is_popped(code: CodeType, lasti: int) -> bool:
    """Return whether the result of the call at an instruction is dropped, and not shown either."""
    after = (one for one in dis.get_instructions(code) if one.offset > lasti and one.opname != "CACHE")
    following = next(after, None)
    return following is not None and following.opname == "POP_TOP"


def _source_of(hook: Callable) -> ast.FunctionDef | None:
    """Return the syntax of a hook that is a plain function of the user's."""
    if not inspect.isfunction(hook) or not is_users(hook.__code__.co_filename):
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(hook)))
    except (OSError, SyntaxError, TypeError):
        return None
    found = tree.body[0] if tree.body else None
    return found if isinstance(found, ast.FunctionDef) else None


@dataclass(slots=True)
class Update:
    """A new value of a leaf that one line computed: what it is, the leaf's version and memory, how often in vain."""

    result: weakref.ref
    version: int
    memory: int
    times: int = 0


class ThrownUpdates(Detector):
    """Finds `p = p - lr * p.grad` in a loop over parameters: the name is bound anew, the parameter stays."""

    calls = frozenset({"sub", "add", "mul", "neg", "div"})

    def __init__(self, watch):
        super().__init__(watch)
        self.grads: WeakIdDict[int] = WeakIdDict()  # gradients that were read, and multiples -> id of the leaf
        self.updates: WeakIdDict[dict[Instruction, Update]] = WeakIdDict()  # leaves
        self.found: dict[Instruction, tuple[str, int]] = {}

    def read_grad(self, tensor: Tensor, grad: Tensor | None, frame: FrameType) -> None:
        """Note a gradient that the program takes."""
        if grad is not None and is_parameter(tensor):
            self.grads[grad] = id(tensor)

    def called(self, call: Call) -> None:
        """Follow a gradient into an update."""
        if not len(self.grads) or not self.engine.is_tensor(call.out) or any(call.out is one for one in call.args):
            return
        tensors = [one for one in call.args if self.engine.is_tensor(one)]
        leaf = next((known for one in tensors if (known := self.grads.get(one)) is not None), None)
        if leaf is None:
            return
        changed = next((one for one in tensors if id(one) == leaf), None)
        if changed is None:
            self.grads[call.out] = leaf
        elif self.watch.name in ("sub", "add") and is_parameter(changed):
            self._note(changed, call)

    def _note(self, leaf: Any, call: Call) -> None:
        line = Instruction(call.code, call.lasti)
        updates = self.updates.get(leaf)
        if updates is None:
            updates = self.updates[leaf] = {}
        version, memory = self.engine.version_of(leaf), self.engine.memory_of(leaf)[0]
        before = updates.get(line)
        times = 0
        if before is not None and before.version == version and before.memory == memory and before.result() is None:
            times = before.times + 1
        updates[line] = Update(weakref.ref(call.out), version, memory, times)
        if times >= THRICE and id(leaf) not in self.watch.optimised():
            name = name_in(None, leaf) or self.watch.flow.name_of(leaf)
            self.found[line] = name, times

    def ended(self, run: Run) -> None:
        """Nothing: an update is judged when its line computes the next."""

    def end(self, problem: BaseException | None) -> None:
        """Report updates that were thrown away."""
        for line, (name, times) in self.found.items():
            spot = spot_of(line)
            statement = spot.statement
            corrected = None
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
                target, value = spelled(statement.targets[0]), statement.value
                sign = {ast.Sub: "-", ast.Add: "+"}.get(type(value.op))
                alone = statement.lineno == statement.end_lineno
                if sign and alone and target is not None and target == spelled(value.left):
                    corrected = f"{target} {sign}= {spot.text(value.right)}"
            self.report(
                "update-thrown-away",
                place_of(line),
                f"{brief_at(line)} computed a new value of {name} {times + 1} times; each was discarded, and {name} "
                f"is unchanged.",
                corrected=corrected,
            )

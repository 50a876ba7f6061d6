"""How a failed call was written: as a function, `torch.mul(x, 1)`, or as a method, `x.mul(1)`.

Both are one object here. PyTorch counts the arguments of a method without its tensor, so its errors differ; the call
is looked up in the bytecode of the line that made it. A method that was passed on, as to `assertRaises(…, x.mul, 1)`,
is found among the variables of the function that called it.
"""

import dis
import sys
from types import FrameType, MethodType, ModuleType

from backlight.engine.provenance import user_frame
from backlight.engine.tensor_state import TensorState

ATTRIBUTES = ("LOAD_METHOD", "LOAD_ATTR")
NAMES = ("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FAST_CHECK")


def called_name(name: str, args: tuple) -> str:
    """Return the public name of a function that failed; `.name` if it was called as a method."""
    if name[0] == "." or not args or not isinstance(args[0], TensorState):
        return name
    last = name.rpartition(".")[2]
    frame = user_frame(sys._getframe())
    return f".{last}" if _is_method_call(frame, last) or _holds_method(frame, last, args[0]) else name


def _holds_method(frame: FrameType, name: str, tensor: TensorState) -> bool:
    """Tell whether a variable of a frame is this method of the tensor."""
    return any(
        one.__class__ is MethodType and one.__self__ is tensor and getattr(one.__func__, "__name__", None) == name
        for one in frame.f_locals.values()
    )


def _is_method_call(frame: FrameType, name: str) -> bool:
    """Tell whether a frame calls a method of this name now, of anything but a module."""
    before = []
    for one in dis.get_instructions(frame.f_code):
        if one.offset >= frame.f_lasti:
            break
        before.append(one)
    else:
        return False
    start = _start(one)
    while before and not (
        before[-1].opname in ATTRIBUTES and before[-1].argval == name and _start(before[-1]) == start
    ):
        before.pop()
    if not before or start is None:
        return False
    before.pop()
    path = []
    while before and _reads_attribute(before[-1], start):
        path.append(before.pop().argval)
    if not before or before[-1].opname not in NAMES:
        return True  # what a call or an index returned
    return not isinstance(_value(frame, before[-1].argval, reversed(path)), ModuleType)


def _reads_attribute(instruction: dis.Instruction, start: tuple | None) -> bool:
    return instruction.opname in ATTRIBUTES and _start(instruction) == start


def _start(instruction: dis.Instruction) -> tuple | None:
    """Return where the expression of an instruction starts; None if Python does not know."""
    positions = getattr(instruction, "positions", None)
    return None if positions is None or positions.lineno is None else (positions.lineno, positions.col_offset)


def _value(frame: FrameType, name: str, path) -> object:
    for names in (frame.f_locals, frame.f_globals, frame.f_builtins):
        if name in names:
            found = names[name]
            break
    else:
        return None
    for part in path:
        found = getattr(found, part, None)
    return found

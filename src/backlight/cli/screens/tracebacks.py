"""A script's traceback as Python would have printed it: without the runner's frames and without those that watched.

NOTE [Frames that watch]
What the lens stands in for (`backward`, a call of PyTorch's, an op of ours) has a frame of its own between the caller
and what it calls. Only such frames are left out: they hand on a call and do no more. Frames of the lens' own work stay,
so that a mistake of ours is seen. Where PyTorch handed a call to a TorchFunctionMode, its function stands twice; once
is left out with what lies between.

NOTE [Folded frames]
Frames between the program's own that say nothing of it (backlight's engine, what PyTorch wraps modules, optimizers'
steps and `no_grad` functions in) are printed as one line that counts them; BACKLIGHT_TRACEBACK=full prints them all.
A program with an excepthook of its own gets every frame.
"""

import os
import sys
import traceback
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path
from types import CodeType, TracebackType

from backlight.engine.provenance import GENERATED, PACKAGE

COMMANDS = Path(__file__).parents[1]
RUNNER = {
    str(COMMANDS / "run.py"),
    str(COMMANDS / "programs" / "program.py"),
    str(COMMANDS / "programs" / "notebook.py"),
    str(COMMANDS / "programs" / "jupyter.py"),
    str(COMMANDS.parent / "torch_api" / "module_names.py"),
}
IMPORTLIB = "importlib"
STANDS_FOR = {"engines_own", "original"}  # how the lens calls what a function of its own stands for
HANDS_ON = {
    "adapters/torch_calls.py": {"__torch_function__", "followed"},
    "adapters/torch_backward.py": {"call"},
    "dispatch/dispatcher.py": {"dispatch", "call_op", "public", "reported"},
    "dispatch/observed_pass.py": {"call"},
    "lens/native.py": {"run_module", "apply_function"},
}
DISPATCH = "handle_torch_function"


FULL = "BACKLIGHT_TRACEBACK"
SEEN = ("lens" + os.sep, "cli" + os.sep)  # rooms of ours whose frames are shown: a mistake there is ours
WRAPPERS = {  # files of PyTorch, with the functions that hand on a call
    "torch/nn/modules/module.py": {"_wrapped_call_impl", "_call_impl", "inner"},
    "torch/utils/_contextlib.py": {"decorate_context"},
    "torch/optim/optimizer.py": {"wrapper", "_use_grad"},
    "torch/optim/lr_scheduler.py": {"wrapper"},
    "torch/utils/hooks.py": {"hook"},
    "torch/_tensor.py": {"_handle_torch_function_and_wrap_type_error_to_not_implemented"},
    "torch/_dynamo/eval_frame.py": {"_fn", "compile_wrapper"},
}


class FoldedStack(traceback.StackSummary):
    """A stack that prints frames between the program's own as one line (NOTE [Folded frames])."""

    def format(self, **options) -> list[str]:
        """Return the lines to print."""
        lines: list[str] = []
        for folded, frames in groupby(self, _is_internal):
            frames = list(frames)
            lines += [_fold(frames)] if folded else traceback.StackSummary.from_list(frames).format(**options)
        return lines


def _fold(frames: list[traceback.FrameSummary]) -> str:
    whose = " and ".join(sorted({"backlight" if _is_backlights(one.filename) else "torch" for one in frames}))
    count = f"{len(frames)} frame" + ("s" if len(frames) > 1 else "")
    return f"  ... {count} of {whose} folded; {FULL}=full shows them\n"


def _is_backlights(filename: str) -> bool:
    return filename.startswith((PACKAGE, GENERATED))


def _is_internal(frame: traceback.FrameSummary) -> bool:
    """Return whether a frame says nothing of the program."""
    if _is_backlights(frame.filename):
        return not frame.filename.removeprefix(PACKAGE).startswith(SEEN)
    within = "/".join(Path(frame.filename).parts)
    return any(within.endswith(f"/{file}") and frame.name in names for file, names in WRAPPERS.items())


def show(problem: BaseException, hook: Callable | None = None) -> None:
    """Print an exception as Python does at the end of a program (NOTE [Frames that watch], NOTE [Folded frames]).

    Args:
        hook: what the program made `sys.excepthook`; None if it left it as it was.
    """
    for one in _with_causes(problem):
        one.__traceback__ = _as_without_us(one.__traceback__)
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()
    hook = hook or sys.__excepthook__
    if hook is sys.__excepthook__ and os.environ.get(FULL) != "full":
        _print_folded(problem)
        return
    try:
        hook(type(problem), problem, problem.__traceback__)
    except Exception as failure:  # as Python says it
        print("Error in sys.excepthook:", file=sys.stderr)
        failure.__traceback__ = failure.__traceback__ and failure.__traceback__.tb_next
        traceback.print_exception(failure)
        print("\nOriginal exception was:", file=sys.stderr)
        _print_folded(problem)


def _print_folded(problem: BaseException) -> None:
    shown = traceback.TracebackException.from_exception(problem, compact=True)
    waiting = [shown]
    while waiting:
        one = waiting.pop()
        stack = FoldedStack()
        stack.extend(one.stack)
        one.stack = stack
        waiting += [other for other in (one.__cause__, one.__context__, *(one.exceptions or ())) if other is not None]
    print("".join(shown.format()), end="", file=sys.stderr)


def _with_causes(problem: BaseException) -> Iterable[BaseException]:
    """Return an exception, what caused it, what it was raised in, and the members of groups, each once."""
    found: dict[int, BaseException] = {}
    waiting: list[BaseException | None] = [problem]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in found:
            found[id(one)] = one
            waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return found.values()


def _as_without_us(trace: TracebackType | None) -> TracebackType | None:
    frames = []
    while trace is not None:
        if not _is_ours(trace.tb_frame.f_code):
            frames.append(trace)
        trace = trace.tb_next
    kept = None
    for frame in reversed(_each_once(frames)):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def _is_ours(code: CodeType) -> bool:
    """Return whether a frame belongs to the runner, to an import that failed, or hands a call on."""
    filename = code.co_filename
    if filename in RUNNER or IMPORTLIB in filename:
        return True
    within = Path(filename.removeprefix(PACKAGE)).as_posix() if filename.startswith(PACKAGE) else ""
    if within.startswith(("lens/", "adapters/")) and not STANDS_FOR.isdisjoint(code.co_freevars):
        return True
    return code.co_name in HANDS_ON.get(within, ())


def _each_once(frames: list[TracebackType]) -> list[TracebackType]:
    """Leave out a function of PyTorch's that handed its call to a mode, and was then called again."""
    kept: list[TracebackType] = []
    for frame in frames:
        codes = [one.tb_frame.f_code for one in (*kept[-2:], frame)]
        if len(codes) == 3 and codes[1].co_name == DISPATCH and codes[0] is codes[2]:
            del kept[-2:]
        kept.append(frame)
    return kept

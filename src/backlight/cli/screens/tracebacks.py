"""A script's traceback as Python would have printed it: without the runner's frames and without those that watched.

NOTE [Frames that watch]
What the lens stands in for (`backward`, a call of PyTorch's, an op of ours) has a frame of its own between the caller
and what it calls. Only such frames are left out: they hand on a call and do no more. Frames of the lens' own work stay,
so that a mistake of ours is seen. Where PyTorch handed a call to a TorchFunctionMode, its function stands twice; once
is left out with what lies between.
"""

import sys
from pathlib import Path
from types import CodeType, TracebackType

from backlight.engine.provenance import PACKAGE

COMMANDS = Path(__file__).parents[1]
RUNNER = {str(COMMANDS / "run.py"), str(COMMANDS.parent / "torch_api" / "module_names.py")}
IMPORTLIB = "importlib"
STANDS_FOR = {"engines_own", "original"}  # how the lens calls what a function of its own stands for
HANDS_ON = {
    "adapters/torch_watching.py": {"__torch_function__"},
    "adapters/torch_backward.py": {"call"},
    "dispatch/dispatcher.py": {"dispatch", "call_op", "public", "reported"},
    "dispatch/observed_pass.py": {"call"},
    "lens/native.py": {"run_module", "apply_function"},
}
DISPATCH = "handle_torch_function"


def show(problem: BaseException) -> None:
    """Print an exception as Python does at the end of a program (NOTE [Frames that watch])."""
    cause, seen = problem, set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        cause.__traceback__ = _as_without_us(cause.__traceback__)
        cause = cause.__cause__ or cause.__context__
    sys.stdout.flush()
    sys.excepthook(type(problem), problem, problem.__traceback__)


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

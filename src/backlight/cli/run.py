"""`backlight run`: run an unchanged PyTorch program on backlight; other commands use it to run one on either engine."""

import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType

from backlight.cli.main import COMMANDS, INTERRUPTED, Parser
from backlight.cli.programs.command_line import add_program, parsed, required
from backlight.cli.programs.program import NotRunnableError, Program, program_at
from backlight.cli.screens.tracebacks import show
from backlight.lens.engines import Engine, engine_named
from backlight.overrides import asked_about
from backlight.torch_api.error_names import pytorch_error_names
from backlight.torch_api.module_names import torch_names


def run(argv: Sequence[str]) -> int:
    """Run the command; return the program's exit code, 1 if it ended with an exception."""
    parser = Parser(prog="backlight run", description=COMMANDS["run"])
    add_program(parser, "script.py|notebook.ipynb")
    _, program = parsed(parser, argv)
    ended = run_program(required(program, "a script"))
    ended.show()
    return ended.code


@dataclass(frozen=True)
class Ended:
    """How a program ended.

    Args:
        code: its exit code, 1 if it ended with an exception.
        problem: the exception that nothing caught.
        folder: where the command was started; the program may have left it.
        streams: what it had for stdout and stderr at its end.
        hook: what it had made `sys.excepthook`; None if it left it as it was.
    """

    code: int
    problem: BaseException | None
    folder: str
    streams: tuple
    hook: Callable | None

    def show(self) -> None:
        """Print the traceback, where Python would have printed it."""
        if self.problem is None:
            return
        before = sys.stdout, sys.stderr
        try:
            sys.stdout, sys.stderr = self.streams
            show(self.problem, self.hook)
        finally:
            sys.stdout, sys.stderr = before

    @contextmanager
    def where_it_began(self) -> Iterator[None]:
        """Work in the folder in which the command was started: paths of its options count from there."""
        after = _working_folder()
        os.chdir(self.folder)
        try:
            yield
        finally:
            if after is not None:
                os.chdir(after)


def run_script(
    path: str, args: Sequence[str] = (), *, engine: str = "backlight", around: AbstractContextManager | None = None
) -> int:
    """Run a script or a notebook and show the exception that ends it; see `run_program`."""
    ended = run_program(program_at(path, tuple(args)), engine=engine, around=around)
    ended.show()
    return ended.code


def run_program(program: Program, *, engine: str = "backlight", around: AbstractContextManager | None = None) -> Ended:
    """Run a program as `python` would, on backlight in place of PyTorch, or on PyTorch itself.

    Args:
        program: what to run.
        engine: "backlight" or "torch": what `import torch` gives it.
        around: a block that the program runs in; it sees the exception that ends it.

    Raises:
        InputError: there is no such program, or it is no Python source.
        SystemExit: this is a process that the program forked, and it has come to its end.
    """
    source = program.source()
    overrides = not source or b"__torch_function__" in source
    names = torch_names() if engine == "backlight" else nullcontext()
    errors = pytorch_error_names() if engine == "backlight" else nullcontext()
    asking = asked_about() if engine == "backlight" and overrides else nullcontext()
    process, folder, code, problem, hook = os.getpid(), os.getcwd(), 0, None, sys.excepthook
    with _as_main(program) as main, names, errors, asking:
        try:
            FunctionType(_execute.__code__, main.__dict__)(program.pieces(main), around or nullcontext(), _wait)
        except NotRunnableError:
            raise
        except SystemExit as stop:
            code = _exit_code(stop.code)
        except BaseException as raised:
            code, problem = INTERRUPTED if isinstance(raised, KeyboardInterrupt) else 1, raised
        hook = None if sys.excepthook is hook else sys.excepthook
        ended = Ended(code, problem, folder, (sys.stdout, sys.stderr), hook)
    if os.getpid() != process:
        ended.show()
        raise SystemExit(code)
    return ended


def _execute(pieces: Iterable[CodeType], around: AbstractContextManager, wait: Callable) -> None:
    """Run a program inside a block. It is called with the program's globals as its own: a watcher finds them."""
    with around, wait():
        for code in pieces:
            exec(code, globals())


@contextmanager
def _wait() -> Iterator[None]:
    """Wait, after a block, for the threads that it started, as Python does when a program has come to its end."""
    before = set(threading.enumerate())
    yield
    for thread in threading.enumerate():
        if thread not in before and not thread.daemon:
            thread.join()


@contextmanager
def _as_main(program: Program) -> Iterator[ModuleType]:
    """Make a module `__main__` and what else a program finds when Python starts with it; put all back at the end."""
    main = ModuleType("__main__")
    main.__builtins__ = sys.modules["builtins"]
    before = sys.modules["__main__"], sys.argv, list(sys.path)
    streams, folder = (sys.stdout, sys.stderr, sys.excepthook), os.getcwd()
    try:
        sys.modules["__main__"], sys.argv = main, [program.name, *program.arguments]
        sys.path.insert(0, program.imports_from)
        if program.works_in is not None:
            os.chdir(program.works_in)
        yield main
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:] = before
        _flush(sys.stdout, sys.stderr)
        sys.stdout, sys.stderr, sys.excepthook = streams
        if program.works_in is not None:
            os.chdir(folder)


def _flush(*streams) -> None:
    """Write out what is left in streams; a program may have closed or replaced them."""
    for stream in streams:
        with suppress(AttributeError, ValueError):
            stream.flush()


def _working_folder() -> str | None:
    """Return the working directory; None if it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


def _exit_code(code: object) -> int:
    """Return what Python would exit with after `sys.exit(code)`; a text is printed first."""
    if code is None or isinstance(code, int):
        return int(code or 0)
    print(code, file=sys.stderr)
    return 1


def engine_requested(name: str | None) -> Engine:
    """Return the engine that a program is to run on: the one that is named, else PyTorch if it is installed.

    Raises:
        InputError: PyTorch is named and not installed.
    """
    return engine_named(name or ("torch" if importlib.util.find_spec("torch") else "backlight"))

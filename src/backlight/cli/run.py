"""`backlight run`: a PyTorch script, unchanged, on backlight; and how other commands run one, on either engine."""

import argparse
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from backlight.cli.main import INTERRUPTED
from backlight.cli.screens.tracebacks import show
from backlight.errors import InputError
from backlight.lens.engines import Engine, engine_named
from backlight.overrides import asked_about
from backlight.torch_api.module_names import torch_names


def run_script(
    path: str,
    args: Sequence[str] = (),
    *,
    engine: str = "backlight",
    around: AbstractContextManager | None = None,
) -> int:
    """Run a script as `python` would, on backlight in place of PyTorch, or on PyTorch itself.

    Args:
        path: the script.
        args: what it sees in `sys.argv` after its own name.
        engine: "backlight" or "torch": what `import torch` gives it.
        around: a block that the script runs in; it sees the exception that ends it.

    Returns:
        The exit code: the script's own, or 1 if it ended with an exception.

    Raises:
        InputError: the file is missing or is no Python source.
    """
    source = _read(path)
    _check(source, path)
    script = str(Path(path).resolve())
    names = torch_names() if engine == "backlight" else nullcontext()
    asking = asked_about() if engine == "backlight" and b"__torch_function__" in source else nullcontext()
    with _as_main(script, [path, *args]) as main, names, asking:
        try:
            code = compile(source, script, "exec")
            FunctionType(_execute.__code__, main.__dict__)(code, around or nullcontext())
        except SystemExit as stop:
            return _exit_code(stop.code)
        except BaseException as problem:
            show(problem)
            return INTERRUPTED if isinstance(problem, KeyboardInterrupt) else 1
    return 0


def _execute(code: CodeType, around: AbstractContextManager) -> None:
    """Run a script inside a block. It is called with the script's globals as its own, so that a watcher finds them."""
    with around:
        exec(code, globals())


def _read(path: str) -> bytes:
    """Return the bytes of a script: Python itself decodes them, by the encoding that they declare."""
    try:
        source = Path(path).read_bytes()
    except OSError as problem:
        raise InputError(f"can't open file {path!r}: {problem.strerror}; give the path of a Python script") from problem
    if b"\0" in source:
        raise InputError(f"{path!r} must be a Python script, and is a binary file")
    return source


def _check(source: bytes, path: str) -> None:
    """Raise if a file is no Python script. What is called one may hold mistakes: Python shows those."""
    suffix = Path(path).suffix.lower()
    wrong = suffix == ".json"
    if suffix not in ("", ".py", ".pyw", ".json"):
        try:
            compile(source, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            wrong = True
    if wrong:
        what = "a record is drawn by `backlight graph`, replayed by `backlight replay`"
        raise InputError(f"script must be a Python file, got {path!r}: {what if suffix == '.json' else 'give one'}")


@contextmanager
def _as_main(script: str, argv: list[str]) -> Iterator[ModuleType]:
    """Make a module `__main__` and what else a script finds when Python starts with it; put all back at the end."""
    main = ModuleType("__main__")
    main.__file__, main.__loader__ = script, SourceFileLoader("__main__", script)
    main.__builtins__ = sys.modules["builtins"]
    before = sys.modules["__main__"], sys.argv, list(sys.path)
    try:
        sys.modules["__main__"], sys.argv = main, argv
        sys.path.insert(0, str(Path(script).parent))
        yield main
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:] = before


def _exit_code(code: object) -> int:
    """Return what Python would exit with after `sys.exit(code)`; a text is printed first."""
    if code is None or isinstance(code, int):
        return int(code or 0)
    print(code, file=sys.stderr)
    return 1


def add_engine(parser: argparse.ArgumentParser, source: str) -> None:
    """Add which engine a script runs on, and say how it gets its own arguments.

    Args:
        source: what the usage calls the script.
    """
    parser.usage = f"%(prog)s {source} [options] [-- what the script sees in sys.argv]"
    parser.add_argument(
        "--engine",
        choices=("torch", "backlight"),
        help="what `import torch` gives the script; by default PyTorch if it is installed",
    )


def parsed(parser: argparse.ArgumentParser, argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return a command's own arguments, and what follows the first `--`, which are the script's."""
    argv = list(argv)
    end = argv.index("--") if "--" in argv else len(argv)
    return parser.parse_args(argv[:end]), argv[end + 1 :]


def engine_requested(name: str | None) -> Engine:
    """Return the engine that a script is to run on: the one that is named, else PyTorch if it is installed.

    Raises:
        InputError: PyTorch is named and not installed.
    """
    return engine_named(name or ("torch" if importlib.util.find_spec("torch") else "backlight"))

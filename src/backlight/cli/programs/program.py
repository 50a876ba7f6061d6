"""A program that a command runs as Python would: a script, a module that `-m` names, a notebook."""

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from backlight.cli.programs.notebook import Cell, code_cells, is_notebook
from backlight.errors import InputError


class NotRunnableError(InputError):
    """What was named cannot be run: the command's mistake, not the program's, though it may show while it runs."""


@dataclass(frozen=True)
class Program:
    """What to run, and how it finds the world.

    Args:
        name: what the command line calls it: a path, or a module's name.
        arguments: what it sees in `sys.argv` after its own name.
    """

    name: str
    arguments: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What pages call it."""
        return Path(self.name).name

    @property
    def imports_from(self) -> str:
        """The folder that is first in `sys.path`."""
        return str(Path(self.name).resolve().parent)

    @property
    def works_in(self) -> str | None:
        """The folder that it is started in; None for where the command is."""
        return None

    def source(self) -> bytes:
        """Return its source; empty if that is only known once it runs.

        Raises:
            InputError: there is no such file, or it is no program.
        """
        return _read(self.name)

    def pieces(self, main: ModuleType) -> Iterator[CodeType]:
        """Prepare the module `__main__`, and give the code to execute there, in order."""
        raise NotImplementedError


class Script(Program):
    """A Python file."""

    def source(self) -> bytes:
        """Return the bytes of the file: Python itself decodes them, by the encoding that they declare."""
        source = _read(self.name)
        if b"\0" in source:
            raise InputError(f"{self.name!r} must be a Python script, and is a binary file")
        _check(source, self.name)
        return source

    def pieces(self, main: ModuleType) -> Iterator[CodeType]:
        """Give the code of the whole file."""
        path = os.path.abspath(self.name)
        main.__file__, main.__loader__ = path, SourceFileLoader("__main__", path)
        return iter([compile(_read(self.name), path, "exec", dont_inherit=True)])


class Module(Program):
    """A module that Python would find under a name; a package's `__main__`."""

    @property
    def title(self) -> str:
        """What pages call it."""
        return self.name

    @property
    def imports_from(self) -> str:
        """The folder that is first in `sys.path`: where the command is, as with `python -m`."""
        return os.getcwd()

    def source(self) -> bytes:
        """Return nothing: to find a module, the packages around it must be run."""
        return b""

    def pieces(self, main: ModuleType) -> Iterator[CodeType]:
        """Import the packages around it, and give its code."""
        spec = _found(self.name)
        code = getattr(spec.loader, "get_code", lambda name: None)(spec.name)
        if code is None:
            raise NotRunnableError(f"module must have Python code, got {self.name!r}")
        main.__file__, main.__loader__, main.__spec__ = spec.origin, spec.loader, spec
        main.__package__, main.__cached__ = spec.parent, spec.cached
        sys.argv[0] = spec.origin
        yield code


class Notebook(Program):
    """A Jupyter notebook: its code cells, one after the other, in its own folder."""

    @property
    def works_in(self) -> str | None:
        """The folder of the notebook, as in Jupyter."""
        return self.imports_from

    def cells(self) -> list[Cell]:
        """Return its code cells."""
        return code_cells(_read(self.name), self.name)

    def pieces(self, main: ModuleType) -> Iterator[CodeType]:
        """Give the code of each cell."""
        main.display = print  # Jupyter's own name, which cells call without an import
        for cell in self.cells():
            yield cell.compiled()


def program_at(path: str, arguments: tuple[str, ...] = ()) -> Program:
    """Return the script or the notebook at a path."""
    return (Notebook if is_notebook(path) else Script)(path, arguments)


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        raise InputError(f"can't open file {path!r}: {problem.strerror}; give the path of a Python script") from problem
    except ValueError as problem:
        raise InputError(f"can't open file {path!r}: {problem}; give the path of a Python script") from problem


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


def _found(name: str) -> ModuleSpec:
    """Return the spec of a module, of a package's `__main__` if it is one, as `python -m` finds it."""
    package = name.rpartition(".")[0]
    try:
        if package:
            importlib.import_module(package)
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as problem:
        if problem.name is None or not f"{name}.".startswith(f"{problem.name}."):
            raise  # a module that the package itself imports is missing
        spec = None
    except ValueError:  # `sys.modules` holds something without a spec
        spec = None
    if spec is None:
        raise NotRunnableError(f"no module named {name!r}: give the name as in an import, without .py")
    if spec.submodule_search_locations is None:
        return spec
    if name.rpartition(".")[2] == "__main__":
        raise NotRunnableError(f"module must be one that can be run, got {name!r}, a package")
    return _found(f"{name}.__main__")

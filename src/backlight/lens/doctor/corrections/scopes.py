"""Which names a line of the user's program may use: what a corrected line is checked against.

NOTE [Names in a corrected line]
A corrected line is offered only if each of its names is bound where it is to stand: in its function or those around it,
at the top of its file, or in Python itself. Optimizers and models are named as the line's own frame reaches them, by a
variable or an attribute of one (`self.optimizer`).
"""

import ast
import builtins
import linecache
from collections.abc import Iterator
from types import FrameType
from typing import Any

from backlight.lens.doctor.evidence import locals_of
from backlight.lens.doctor.places import users_frames
from backlight.lens.doctor.source import parsed
from backlight.lens.records.record import Place

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (*FUNCTIONS, ast.ClassDef)


def names_exist(text: str, place: Place) -> bool:
    """Return whether all names that a corrected line reads are bound at its place; True where the file is unknown."""
    tree = parsed(tuple(linecache.getlines(place.file)))
    try:
        line = ast.parse(text if not text.endswith(":") else f"{text} pass")
    except SyntaxError:
        line = ast.parse(f"{text}\ndef _(): pass") if text.startswith("@") else None
    if tree is None or line is None:
        return True
    own = set(_bound(line))
    return set(_read(line)) - own <= names_at(tree, place.line)


def names_at(tree: ast.Module, line: int) -> set[str]:
    """Return the names that are bound at a line of a file."""
    known = {*vars(builtins), "__name__", "__file__", *_bound(tree)}
    anywhere = {name for node in ast.walk(tree) if isinstance(node, (ast.Module, *SCOPES)) for name in _bound(node)}
    known.update(set(_read(tree)) - anywhere)  # from `import *`, or a cell of a notebook
    around = [node for node in ast.walk(tree) if isinstance(node, SCOPES) and node.lineno <= line <= node.end_lineno]
    innermost = max(around, key=lambda node: node.lineno, default=None)
    known.update(_read(tree if innermost is None else innermost))  # what runs there has found them
    for node in around:
        if not isinstance(node, ast.ClassDef) or node is innermost:
            known.update(_bound(node))
    return known


def _read(scope: ast.AST) -> Iterator[str]:
    """Give the names that a scope reads."""
    return (one.id for one in ast.walk(scope) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))


def _bound(scope: ast.AST) -> Iterator[str]:
    """Give the names that a scope itself binds."""
    arguments = getattr(scope, "args", None)
    if isinstance(arguments, ast.arguments):
        yield from (one.arg for one in ast.walk(arguments) if isinstance(one, ast.arg))
    body = getattr(scope, "body", [])
    stack = list(body) if isinstance(body, list) else [body]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, SCOPES):
            if not isinstance(node, ast.Lambda):
                yield node.name
            continue
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
        stack += ast.iter_child_nodes(node)


def reached_as(frame: FrameType | None, value: Any) -> str | None:
    """Return how the user's innermost function names a value: `optimizer`, `self.optimizer`, `self.trainer.optimizer`.

    Loop variables do not count: before their loop they are unbound, or the last of all.
    """
    user = next(users_frames(frame), None)
    if user is None:
        return None
    loops = _loop_variables(user)
    for space in (locals_of(user), user.f_globals):
        items = [(name, held) for name, held in dict(space).items() if name.isidentifier() and name not in loops]
        for name, held in items:
            if held is value:
                return name
        for name, held in items:
            path = _inside(name, held, value, depth=2)
            if path is not None:
                return path
    return None


def _inside(name: str, owner: Any, value: Any, depth: int) -> str | None:
    """Return the attribute, element or entry of an object that is a value, as code; no code of the program's is run."""
    kind = type(owner)
    if kind is dict or kind in (list, tuple):
        pairs = owner.items() if kind is dict else enumerate(owner)
        return next((f"{name}[{key!r}]" for key, held in list(pairs)[:64] if held is value), None)
    if kind.__module__ == "builtins" or isinstance(owner, type):
        return None
    attributes = getattr(owner, "__dict__", None)
    if not isinstance(attributes, dict):
        return None
    for key, held in list(attributes.items()):
        if held is value and key.isidentifier():
            return f"{name}.{key}"
    if depth > 1:
        for key, held in list(attributes.items()):
            if key.isidentifier() and not key.startswith("_"):
                path = _inside(f"{name}.{key}", held, value, depth - 1)
                if path is not None:
                    return path
    return None


def _loop_variables(frame: FrameType) -> set[str]:
    """Return the names that `for` binds in a frame's file, at and around its code."""
    tree = parsed(tuple(linecache.getlines(frame.f_code.co_filename)))
    names = set()
    for node in ast.walk(tree or ast.Module(body=[])):
        if isinstance(node, (ast.For, ast.comprehension)):
            names.update(one.id for one in ast.walk(node.target) if isinstance(one, ast.Name))
    return names

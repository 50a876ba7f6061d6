"""Programs in the shapes that programs have: the same statements at module level, in a function, a method, a generator.

Each shape takes the source of a program and returns one of which all names are local, and gone when it ends; its
statements stand one line further down.
"""

import ast
from textwrap import indent


def plain(source: str) -> str:
    """Leave the program as it is, a line further down."""
    return f"\n{source}"


def function(source: str) -> str:
    """`def main():`, the most usual shape of a script."""
    return f"def main():\n{_body(source)}\nmain()\n"


def method(source: str) -> str:
    """A method of a class."""
    return f"class Trainer:  # line 1\n{indent(_body_of('def train(self):', source), '    ')}\nTrainer().train()\n"


def closure(source: str) -> str:
    """A function that another one returns."""
    return f"def make():\n{indent(_body_of('def train():', source), '    ')}\n    return train\nmake()()\n"


def generator(source: str) -> str:
    """A function that yields when it is done."""
    return f"def steps():\n{_body(source)}\n    yield 1\nprint(list(steps()))\n"


def ends_by_exit(source: str) -> str:
    """A function that leaves the program."""
    return f"def main():\n{_body(source)}\n    raise SystemExit(0)\nmain()\n"


def ends_by_error(source: str) -> str:
    """A function that ends in an error which says nothing of gradients."""
    return f"def main():\n{_body(source)}\n    raise KeyError('config')\nmain()\n"


def caught_error(source: str) -> str:
    """A function that ends in an error, which its caller catches."""
    return ends_by_error(source).replace("\nmain()\n", "\ntry:\n    main()\nexcept KeyError:\n    pass\n")


def deleted(source: str) -> str:
    """Names of the module, all deleted at the end."""
    names = [one.id for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Name)]
    stored = {one.id for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Name) and _is_stored(one)}
    deletions = "".join(f"globals().pop({name!r}, None)\n" for name in dict.fromkeys(names) if name in stored)
    return f"\n{source}\n{deletions}"


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _body(source: str) -> str:
    return indent(source, "    ")


def _body_of(head: str, source: str) -> str:
    """Return a function whose first statement stands on the line of its head's next."""
    return f"{head}\n{_body(source)}"


SHAPES = (function, method, closure, generator, ends_by_exit, ends_by_error, caught_error, deleted)

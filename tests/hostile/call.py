"""One call, as text: so that it can be logged before it is made, sent to two processes, shown, and made again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

Tree = str | list  # Python source, or a list or tuple of such: ["(", tree, …] or ["[", tree, …]

THEIR_PREFIXES = {"data.": "utils.data.", "array_api.": ""}  # where PyTorch has a namespace under another name


@dataclass
class Call:
    """A public name, its arguments as source, and what the result is called with if it is a module.

    Attributes:
        target: the name below `torch`, or `.name` for a method of the first argument.
        args: source of the positional arguments.
        kwargs: source of the named ones.
        inputs: source of what the result is called with; None where it is not called.
    """

    target: str
    args: list[Tree]
    kwargs: dict[str, Tree] = field(default_factory=dict)
    inputs: list[Tree] | None = None

    def message(self) -> bytes:
        """Return what a worker is sent."""
        named = {name: source(tree) for name, tree in self.kwargs.items()}
        inputs = None if self.inputs is None else [source(tree) for tree in self.inputs]
        return json.dumps([self.target, [source(tree) for tree in self.args], named, inputs]).encode() + b"\n"

    def __str__(self) -> str:
        args = [source(tree) for tree in self.args]
        start = f"torch.{self.target}"
        if self.target.startswith("."):
            start = args.pop(0) + self.target
        text = f"{start}({', '.join(args + [f'{name}={source(tree)}' for name, tree in self.kwargs.items()])})"
        return text if self.inputs is None else f"{text}({', '.join(source(tree) for tree in self.inputs)})"


def source(tree: Tree) -> str:
    """Return the Python source of an argument."""
    if isinstance(tree, str):
        return tree
    opening, *parts = tree
    inner = ", ".join(source(part) for part in parts)
    if opening == "(":
        return f"({inner},)" if len(parts) == 1 else f"({inner})"
    return f"[{inner}]"


def their_name(target: str) -> str:
    """Return PyTorch's name for one of ours."""
    for ours, theirs in THEIR_PREFIXES.items():
        if target.startswith(ours):
            return theirs + target.removeprefix(ours)
    return target

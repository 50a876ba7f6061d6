"""Nested structures of tuples, lists and dicts, taken apart into leaves and put together again: PyTorch's pytrees."""

from collections import OrderedDict, defaultdict
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Spec:
    """The structure around leaves: its class, what it needs beside its children, and their structures."""

    kind: type | None
    context: object
    children: tuple

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return 1 if self.kind is None else sum(child.leaves for child in self.children)

    def __eq__(self, other) -> bool:
        same = isinstance(other, Spec) and self.kind is other.kind and self.context == other.context
        return same and self.children == other.children

    def __repr__(self) -> str:
        return self.shown(0)

    def shown(self, indent: int) -> str:
        """Return PyTorch's text for the structure."""
        if self.kind is None:
            return "*"
        start = f"TreeSpec({self.kind.__name__}, {self.context}, ["
        inner = indent + 2
        parts = [child.shown(inner) for child in self.children]
        return start + (",\n" + " " * inner).join(parts) + "])"


LEAF = Spec(None, None, ())


def flatten(tree) -> tuple[list, Spec]:
    """Return the leaves of a structure in order, and the structure."""
    leaves: list = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree, leaves: list) -> Spec:
    opened = _opened(tree)
    if opened is None:
        leaves.append(tree)
        return LEAF
    kind, context, children = opened
    return Spec(kind, context, tuple([_flatten(child, leaves) for child in children]))


def _opened(tree):
    """Return the class, the context and the children of a structure; None for a leaf."""
    kind = tree.__class__
    if kind is tuple or kind is list:
        return kind, None, tree
    if kind is dict or kind is OrderedDict:
        return kind, list(tree), list(tree.values())
    if kind is defaultdict:
        return kind, [tree.default_factory, list(tree)], list(tree.values())
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return kind, kind, tree
    return None


def unflatten(leaves, spec: Spec):
    """Return the structure with these leaves."""
    return _unflatten(iter(leaves), spec)


def _unflatten(leaves, spec: Spec):
    kind = spec.kind
    if kind is None:
        return next(leaves)
    children = [_unflatten(leaves, child) for child in spec.children]
    if kind is tuple or kind is list:
        return kind(children)
    if kind is dict or kind is OrderedDict:
        return kind(zip(spec.context, children))
    if kind is defaultdict:
        return defaultdict(spec.context[0], zip(spec.context[1], children))
    return kind(*children)


def leaves_of(tree) -> list:
    """Return the leaves of a structure in order."""
    return flatten(tree)[0]


def mapped(function, tree):
    """Return the structure with each leaf replaced by what a function gives for it."""
    leaves, spec = flatten(tree)
    return unflatten([function(leaf) for leaf in leaves], spec)


def broadcast_to(tree, spec: Spec) -> list | None:
    """Return one leaf of `tree`, whose structure may end earlier, for each leaf of `spec`; None if they do not fit."""
    opened = _opened(tree)
    if opened is None:
        return [tree] * spec.leaves
    kind, context, children = opened
    children = list(children)
    if kind is not spec.kind or context != spec.context or len(children) != len(spec.children):
        return None
    found: list = []
    for child, inner in zip(children, spec.children):
        part = broadcast_to(child, inner)
        if part is None:
            return None
        found += part
    return found

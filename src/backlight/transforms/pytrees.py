"""PyTorch's pytrees: flatten nested tuples, lists and dicts into leaves, and unflatten them."""

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Spec:
    """The structure around leaves: its class, its context (the keys of a dict, for one), and its children's specs."""

    kind: type | None
    context: object
    children: tuple

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return 1 if self.kind is None else sum(child.leaves for child in self.children)

    num_leaves = leaves

    @property
    def num_nodes(self) -> int:
        """How many nodes there are, leaves among them."""
        return 1 + sum(child.num_nodes for child in self.children)

    @property
    def num_children(self) -> int:
        """How many children there are."""
        return len(self.children)

    @property
    def type(self):
        """The class of the structure, None for a leaf."""
        return self.kind

    def is_leaf(self) -> bool:
        """Tell whether it is a leaf."""
        return self.kind is None

    def __hash__(self) -> int:
        return hash((self.kind, self.leaves))

    def __eq__(self, other: object) -> bool:
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

registered: dict[type, tuple[Callable, Callable]] = {}  # class -> (flatten function, unflatten function)


def flatten(tree: object, is_leaf: Callable | None = None) -> tuple[list, Spec]:
    """Return the leaves of a structure in order, and the structure.

    Args:
        is_leaf: a function that returns whether a structure counts as a leaf.
    """
    leaves: list = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: object, leaves: list, is_leaf: Callable | None) -> Spec:
    opened = None if is_leaf is not None and is_leaf(tree) else children_of(tree)
    if opened is None:
        leaves.append(tree)
        return LEAF
    kind, context, children = opened
    return Spec(kind, context, tuple([_flatten(child, leaves, is_leaf) for child in children]))


def children_of(tree: object):
    """Return the class, the context and the children of a structure; None for a leaf."""
    kind = tree.__class__
    if kind is tuple or kind is list:
        return kind, None, tree
    if kind is dict or kind is OrderedDict:
        return kind, list(tree), list(tree.values())
    if kind is defaultdict:
        return kind, [tree.default_factory, list(tree)], list(tree.values())
    if kind is deque:
        return kind, tree.maxlen, tree
    if kind in registered:
        children, context = registered[kind][0](tree)
        return kind, context, list(children)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return namedtuple, kind, tree
    return None


def unflatten(leaves: Iterable, spec: Spec):
    """Return the structure with these leaves."""
    return _unflatten(iter(leaves), spec)


def _unflatten(leaves: Iterable, spec: Spec):
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
    if kind is deque:
        return deque(children, maxlen=spec.context)
    if kind in registered:
        return registered[kind][1](children, spec.context)
    return spec.context(*children)


def leaves_of(tree: object) -> list:
    """Return the leaves of a structure in order."""
    return flatten(tree)[0]


def mapped(function: Callable, tree: object):
    """Return the structure with a function applied to each leaf."""
    leaves, spec = flatten(tree)
    return unflatten([function(leaf) for leaf in leaves], spec)


def broadcast_to(tree: object, spec: Spec) -> list | None:
    """Return one leaf of `tree`, whose structure may end earlier, for each leaf of `spec`; None if they do not fit."""
    opened = children_of(tree)
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

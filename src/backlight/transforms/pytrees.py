"""PyTorch's pytrees: flatten nested tuples, lists and dicts into leaves, and unflatten them."""

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
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

# class -> (children and context of a structure, structure of children and context); users register more
NODES: dict[type, tuple[Callable, Callable]] = {
    tuple: (lambda tree: (tree, None), lambda children, _: tuple(children)),
    list: (lambda tree: (tree, None), lambda children, _: list(children)),
    dict: (lambda tree: (tree.values(), list(tree)), lambda children, keys: dict(zip(keys, children))),
    OrderedDict: (lambda tree: (tree.values(), list(tree)), lambda children, keys: OrderedDict(zip(keys, children))),
    defaultdict: (
        lambda tree: (tree.values(), [tree.default_factory, list(tree)]),
        lambda children, context: defaultdict(context[0], zip(context[1], children)),
    ),
    deque: (lambda tree: (tree, tree.maxlen), lambda children, maxlen: deque(children, maxlen=maxlen)),
}


def tree_flatten(tree: object, is_leaf: Callable | None = None) -> tuple[list, Spec]:
    """Return the leaves of a structure in order, and the structure around them.

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


def children_of(tree: object) -> tuple[type, object, list] | None:
    """Return the class, the context and the children of a structure; None for a leaf."""
    kind = tree.__class__
    if kind in NODES:
        children, context = NODES[kind][0](tree)
        return kind, context, list(children)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return namedtuple, kind, list(tree)
    return None


def tree_unflatten(leaves: Iterable, spec: Spec) -> object:
    """Return the structure with these leaves."""
    return _unflatten(iter(leaves), spec)


def _unflatten(leaves: Iterator, spec: Spec) -> object:
    if spec.kind is None:
        return next(leaves)
    children = [_unflatten(leaves, child) for child in spec.children]
    if spec.kind in NODES:
        return NODES[spec.kind][1](children, spec.context)
    return spec.context(*children)


def tree_leaves(tree: object, is_leaf: Callable | None = None) -> list:
    """Return the leaves of a structure in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_map(function: Callable, tree: object) -> object:
    """Return the structure with a function applied to each leaf."""
    leaves, spec = tree_flatten(tree)
    return tree_unflatten([function(leaf) for leaf in leaves], spec)


def broadcast_to(tree: object, spec: Spec) -> list | None:
    """Return one leaf of `tree`, whose structure may end earlier, for each leaf of `spec`; None if they do not fit."""
    opened = children_of(tree)
    if opened is None:
        return [tree] * spec.leaves
    kind, context, children = opened
    if kind is not spec.kind or context != spec.context or len(children) != len(spec.children):
        return None
    parts = [broadcast_to(child, inner) for child, inner in zip(children, spec.children)]
    return None if None in parts else [leaf for part in parts for leaf in part]

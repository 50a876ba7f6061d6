"""Pytrees, nested tuples, lists and dicts, under the names of PyTorch's `torch.utils._pytree`.

A leaf is any object except a tuple, list, dict, deque, named tuple or instance of a registered class; None is a leaf.
"""

from collections import defaultdict, namedtuple
from collections.abc import Callable, Iterable, Iterator
from types import UnionType
from typing import Any, NamedTuple

from backlight.dispatch.arguments.checked import with_checks
from backlight.errors import ArgumentError, ValueProblem
from backlight.transforms.pytrees import LEAF, NODES, Spec, children_of, tree_flatten, tree_leaves
from backlight.transforms.pytrees import tree_unflatten as unflatten

__all__ = [
    "PyTree",
    "TreeSpec",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
]

PyTree = Any
Which = type | tuple | UnionType | Callable  # the leaves that are meant
TreeSpec = Spec


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> PyTree:
    """Return the structure with these leaves.

    Raises:
        TypeError: `treespec` is no structure.
        ValueError: the number of leaves does not match.
    """
    if not isinstance(treespec, TreeSpec):
        raise ArgumentError(
            f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}."
        )
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueProblem(
            f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds "
            f"{treespec.num_leaves} items ({treespec})."
        )
    return unflatten(leaves, treespec)


def tree_iter(tree: PyTree, is_leaf: Callable | None = None) -> Iterable:
    """Iterate over the leaves of a structure in order."""
    yield from tree_leaves(tree, is_leaf)


def tree_structure(tree: PyTree, is_leaf: Callable | None = None) -> TreeSpec:
    """Return the structure around the leaves."""
    return tree_flatten(tree, is_leaf)[1]


def tree_is_leaf(tree: PyTree, is_leaf: Callable | None = None) -> bool:
    """Tell whether something is a leaf."""
    return tree_flatten(tree, is_leaf)[1] is LEAF


def tree_map(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Callable | None = None) -> PyTree:
    """Return the structure with a function applied to each leaf.

    Args:
        rests: structures with `tree` as a prefix; the function gets their parts as further arguments.

    Raises:
        ValueError: the structure of one of them does not match.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [_parts(one, spec) for one in rests]
    return unflatten([func(*parts) for parts in zip(leaves, *others)], spec)


def tree_map_(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Callable | None = None) -> PyTree:
    """Call a function on each leaf, as `tree_map`, and return the structure unchanged."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(which: Which, /, func: Callable, tree: PyTree, is_leaf: Callable | None = None) -> PyTree:
    """Return the structure with a function applied to the leaves of some classes.

    Args:
        which: a class, a tuple or union of classes, or a function that returns whether to include a leaf.
    """
    meant = _test(which)
    return tree_map(lambda leaf: func(leaf) if meant(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(which: Which, /, func: Callable, tree: PyTree, is_leaf: Callable | None = None) -> PyTree:
    """Call a function on the leaves of some classes, as `tree_map_only`, and return the structure unchanged."""
    tree_map_only(which, func, tree, is_leaf)
    return tree


def tree_all(pred: Callable, tree: PyTree, is_leaf: Callable | None = None) -> bool:
    """Tell whether a test holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable, tree: PyTree, is_leaf: Callable | None = None) -> bool:
    """Tell whether a test holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(which: Which, /, pred: Callable, tree: PyTree, is_leaf: Callable | None = None) -> bool:
    """Tell whether a test holds for all leaves of some classes."""
    meant = _test(which)
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if meant(leaf))


def tree_any_only(which: Which, /, pred: Callable, tree: PyTree, is_leaf: Callable | None = None) -> bool:
    """Tell whether a test holds for a leaf of some classes."""
    meant = _test(which)
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if meant(leaf))


def register_pytree_node(cls: type, flatten_fn: Callable, unflatten_fn: Callable) -> None:
    """Register a class as a pytree node.

    Args:
        flatten_fn: maps an instance to (its children, a context).
        unflatten_fn: maps the children and the context to an instance.

    Raises:
        ValueError: the class is registered already.
    """
    if cls in NODES:
        raise ValueProblem(f"{cls} is already registered as pytree node.")
    NODES[cls] = (flatten_fn, unflatten_fn)


class SequenceKey(NamedTuple):
    """The place of a child in a tuple or list."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


class MappingKey(NamedTuple):
    """The key of a child in a dict."""

    key: object

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class GetAttrKey(NamedTuple):
    """The field of a child in a named tuple."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


def keystr(kp: Iterable) -> str:
    """Return a path to a leaf as a text, such as `[0]['weight']`."""
    return "".join(map(str, kp))


def tree_flatten_with_path(tree: PyTree, is_leaf: Callable | None = None) -> tuple[list[tuple], TreeSpec]:
    """Return pairs of path and leaf in order, and the structure around the leaves."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return list(zip(_paths(spec, ()), leaves)), spec


def tree_leaves_with_path(tree: PyTree, is_leaf: Callable | None = None) -> list[tuple]:
    """Return pairs of path and leaf in order."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Callable | None = None) -> PyTree:
    """Return the structure with `func(path, leaf, …)` for each leaf, with the leaves of other structures."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [_parts(rest, spec) for rest in rests]
    return unflatten([func(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others)], spec)


def _paths(spec: TreeSpec, above: tuple) -> Iterator[tuple]:
    """Yield the paths to the leaves of a structure in order."""
    if spec.is_leaf():
        yield above
        return
    for place, child in enumerate(spec.children):
        yield from _paths(child, (*above, _key(spec, place)))


def _key(spec: TreeSpec, place: int) -> SequenceKey | MappingKey | GetAttrKey:
    if spec.kind is namedtuple:
        return GetAttrKey(spec.context._fields[place])
    if isinstance(spec.kind, type) and issubclass(spec.kind, dict):
        return MappingKey((spec.context[1] if spec.kind is defaultdict else spec.context)[place])
    return SequenceKey(place)


def _test(which: Which) -> Callable:
    if isinstance(which, (type, tuple, UnionType)):
        return lambda leaf: isinstance(leaf, which)
    if not callable(which):
        raise ArgumentError(f"Argument must be a type, a tuple of types, or a callable. Got {which!r}")
    return which


def _parts(tree: object, spec: TreeSpec) -> list:
    """Return the parts of a structure at the leaves of another."""
    if spec.is_leaf():
        return [tree]
    opened = children_of(tree)
    kind = type(tree) if opened is None else opened[0]
    if kind is not spec.kind:
        raise ValueProblem(f"Node type mismatch; expected {spec.kind}, but got {kind}.")
    children = list(opened[2])
    if isinstance(tree, dict):
        keys = spec.context[1] if spec.kind is defaultdict else spec.context
        missing, extra = set(keys) - set(tree), set(tree) - set(keys)
        if missing or extra:
            mismatches = [f"missing key(s): {missing}"] * bool(missing) + [f"extra key(s): {extra}"] * bool(extra)
            raise ValueProblem(f"Node keys mismatch; {'; '.join(mismatches)}.")
        children = [tree[key] for key in keys]
    if len(children) != spec.num_children:
        raise ValueProblem(f"Node arity mismatch; expected {spec.num_children}, but got {len(children)}.")
    return [part for child, inner in zip(children, spec.children) for part in _parts(child, inner)]


globals().update(with_checks(globals(), __all__, __name__))

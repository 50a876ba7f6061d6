"""Nested structures are taken apart and put together as PyTorch's `torch.utils._pytree` does it."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
import torch
from torch.utils import _pytree as torch_trees

import backlight
from backlight.utils import _pytree as trees

Point = namedtuple("Point", "x y")
NESTED = {
    "b": 1,
    "a": [2, (3, None)],
    "deque": deque([1], maxlen=3),
    "ordered": OrderedDict(x=1),
    "default": defaultdict(int, {"z": 5}),
    "named": Point(1, [2]),
    "empty": (),
}


def even(x) -> bool:
    return isinstance(x, int) and x % 2 == 0


CALLS = {
    "leaves": lambda p: p.tree_leaves(NESTED),
    "structure": lambda p: repr(p.tree_structure(NESTED)),
    "sizes": lambda p: [
        getattr(p.tree_structure(NESTED), name) for name in ("num_leaves", "num_nodes", "num_children")
    ],
    "class": lambda p: (p.tree_structure(NESTED).type, p.tree_structure(3).is_leaf(), p.tree_is_leaf([])),
    "there and back": lambda p: p.tree_unflatten(*p.tree_flatten(NESTED)),
    "equal structures": lambda p: (
        p.tree_structure([1, (2,)]) == p.tree_structure([3, (4,)]) != p.tree_structure([3, 4])
    ),
    "map": lambda p: p.tree_map(str, NESTED),
    "map of two": lambda p: p.tree_map(lambda x, y: x + y, [1, (2,)], [3, (4,)]),
    "map of one that goes on": lambda p: p.tree_map(lambda x, y: (x, y), [1, 2], [3, (4,)]),
    "map of dicts in another order": lambda p: p.tree_map(lambda x, y: x - y, {"a": 1, "b": 2}, {"b": 5, "a": 7}),
    "map of default dicts": lambda p: p.tree_map(lambda x, y: x - y, defaultdict(int, a=1), defaultdict(int, a=3)),
    "map in place": lambda p: p.tree_map_(lambda x: x.append(1), [[]], is_leaf=lambda x: x == []),
    "map of some": lambda p: p.tree_map_only(int, lambda x: -x, [1, 2.5, "a"]),
    "map of what a test finds": lambda p: p.tree_map_only(even, lambda x: -x, [1, 2, "a"]),
    "map of some in place": lambda p: p.tree_map_only_(int, lambda x: -x, [1, 2.5]),
    "left whole": lambda p: p.tree_leaves([1, (2, 3)], is_leaf=lambda x: isinstance(x, tuple)),
    "iter": lambda p: list(p.tree_iter([1, (2, 3)])),
    "all": lambda p: p.tree_all(even, [2, (0,)]),
    "any": lambda p: p.tree_any(even, [1, (3,)]),
    "all of some": lambda p: p.tree_all_only(int, even, [2, "a"]),
    "any of some": lambda p: p.tree_any_only((int, float), even, ["a", 2]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_structure_is_treated_as_pytorch_does(name):
    assert CALLS[name](trees) == CALLS[name](torch_trees)


ERRORS = {
    "too few leaves": lambda p: p.tree_unflatten([1], p.tree_structure([1, 2])),
    "no structure": lambda p: p.tree_unflatten([1], 3),
    "another length": lambda p: p.tree_map(max, [1], [1, 2]),
    "another class": lambda p: p.tree_map(max, [1], (1,)),
    "a leaf": lambda p: p.tree_map(max, [1], 3),
    "other keys": lambda p: p.tree_map(max, {"a": 1}, {"b": 1}),
    "a class that is known": lambda p: p.register_pytree_node(list, None, None),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_structure_that_does_not_fit_is_refused_in_pytorchs_words(name):
    with pytest.raises(Exception) as theirs:
        ERRORS[name](torch_trees)
    with pytest.raises(theirs.type) as ours:
        ERRORS[name](trees)
    assert str(ours.value) == str(theirs.value)


def test_a_registered_class_is_taken_apart_in_transforms_too():
    class Pair:
        def __init__(self, first, second):
            self.parts = [first, second]

    trees.register_pytree_node(Pair, lambda pair: (pair.parts, None), lambda parts, _: Pair(*parts))
    with pytest.raises(ValueError, match="is already registered as pytree node"):
        trees.register_pytree_node(Pair, None, None)
    found = backlight.vmap(lambda pair: Pair(pair.parts[0] * pair.parts[1], pair.parts[0]))(
        Pair(backlight.arange(3), backlight.arange(3))
    )
    assert found.parts[0].tolist() == [0, 1, 4]
    slopes = backlight.func.grad(lambda pair: (pair.parts[0] ** 2 + pair.parts[1]).sum())(
        Pair(backlight.ones(2), backlight.ones(2))
    )
    assert [part.tolist() for part in slopes.parts] == [[2.0, 2.0], [1.0, 1.0]]


def test_what_ops_return_is_taken_apart():
    for module, tools in ((backlight, trees), (torch, torch_trees)):
        leaves, spec = tools.tree_flatten(module.max(module.ones(2, 2), 0))
        assert len(leaves) == 2
        assert tools.tree_unflatten(leaves, spec).indices.tolist() == [0, 0]

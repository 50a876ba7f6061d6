"""Pytrees under PyTorch's import path."""

from collections import OrderedDict, namedtuple

import torch.utils._pytree as pytree
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

Point = namedtuple("Point", "x y")
tree = {"a": [1, (2, 3)], "b": Point(4, OrderedDict(c=5)), "n": None}
leaves, spec = tree_flatten(tree)
print(leaves, tree_unflatten([leaf if leaf is None else leaf * 10 for leaf in leaves], spec))
print(tree_map(lambda leaf: leaf if leaf is None else leaf + 1, tree))
print(pytree.tree_leaves(tree), pytree.tree_any(lambda leaf: leaf == 5, tree), pytree.tree_all(lambda leaf: True, tree))
print(pytree.tree_map_only(int, lambda leaf: -leaf, tree))
print(spec.num_leaves, spec == pytree.tree_structure(tree), pytree.tree_map(lambda a, b: a + b, [1, 2], [3, 4]))
both, _ = pytree.tree_flatten_with_path([1, {"k": 2}])
print([(pytree.keystr(path), leaf) for path, leaf in both])


class Box:
    def __init__(self, value):
        self.value = value


pytree.register_pytree_node(Box, lambda box: ([box.value], None), lambda values, context: Box(*values))
print(tree_map(lambda leaf: leaf * 2, Box(3)).value, pytree.tree_map_(print, [1]) == [1])
print(pytree.tree_iter([1, 2]).__next__(), pytree.tree_map_only((int, float), str, [1, 2.0, None]))

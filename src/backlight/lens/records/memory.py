"""What a graph keeps for its backward: counted by memory, not by tensor, since several nodes may keep the same."""

from collections import Counter

from backlight.lens.records.nodes import LEAF, Node, SavedTensor

VIEWS = frozenset(  # ops whose result is a view of their input: what it shows is the input's memory
    ("Alias", "AsStrided", "Chunk", "Diagonal", "Expand", "Narrow", "Permute", "Select", "Slice", "Split", "Squeeze")
    + ("T", "Transpose", "Unbind", "Unfold", "Unsqueeze", "View")
)


class Memory:
    """Follows what is held from node to node.

    The memory of a leaf, also where a view of it was kept, is not counted: the user keeps it anyway.
    """

    def __init__(self, nodes: list[Node]):
        self.nodes = nodes
        self.keepers: Counter = Counter()  # how many nodes keep each memory
        self.sizes: dict[int, int] = {}
        self.keeping: set[int] = set()  # nodes that have something and have not dropped it
        self.held = 0  # bytes, now

    def keep(self, node: Node) -> bool:
        """Let a node keep what it saved; tell whether that is anything that counts."""
        counted = self._counted(node)
        for memory, size in counted.items():
            self.keepers[memory] += 1
            grown = max(0, size - self.sizes.get(memory, 0))
            self.sizes[memory] = self.sizes.get(memory, 0) + grown
            self.held += grown
        if counted:
            self.keeping.add(node.id)
        return bool(counted)

    def drop(self, node: Node) -> int | None:
        """Drop what a node saved; return how many bytes nothing keeps any more, None if it saved nothing."""
        if node.id not in self.keeping:
            return None
        self.keeping.discard(node.id)
        before = self.held
        for memory in self._counted(node):
            self.keepers[memory] -= 1
            if not self.keepers[memory]:
                self.held -= self.sizes.pop(memory)
        return before - self.held

    def _counted(self, node: Node) -> dict[int, int]:
        found: dict[int, int] = {}
        for kept in node.saved:
            if not self._is_of_leaf(kept):
                found[kept.memory] = max(kept.bytes, found.get(kept.memory, 0))
        return found

    def _is_of_leaf(self, kept: SavedTensor) -> bool:
        node = None if kept.of is None else self.nodes[kept.of]
        while node is not None and node.type.partition("Backward")[0] in VIEWS and node.edges[0] is not None:
            node = self.nodes[node.edges[0].to]
        return node is not None and node.kind == LEAF

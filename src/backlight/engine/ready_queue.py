"""The order in which PyTorch's engine writes leaves that get their last gradients together.

NOTE [Leaves that are ready together]
PyTorch keeps what can run in a `std::priority_queue` by sequence number. All leaves have the highest, so which of them
comes out first follows from where the heap has put them: of a stack of four leaves the first, the third, the second,
the fourth. Hooks see it. `ReadyQueue` moves its items as libstdc++ does (`__push_heap`, `__adjust_heap`).
"""

from collections.abc import Callable, Iterable

from backlight.engine.node import Edge, Node, node_and_number
from backlight.engine.tensor_state import TensorState

LEAF = float("inf")


class ReadyQueue:
    """Nodes and leaves that can run, the last made first."""

    def __init__(self):
        self._heap: list[tuple[float, Node | TensorState]] = []

    def __bool__(self) -> bool:
        return bool(self._heap)

    def push(self, item: Node | TensorState) -> None:
        """Add a node or leaf."""
        entry = (LEAF if item.is_leaf_edge else item.sequence, item)
        self._heap.append(entry)
        self._rise(len(self._heap) - 1, entry)

    def pop(self) -> Node | TensorState:
        """Remove and return what runs next."""
        heap = self._heap
        first, last = heap[0][1], heap.pop()
        count = len(heap)
        if not count:
            return first
        hole = child = 0
        while child < (count - 1) // 2:
            child = 2 * child + 2
            if heap[child][0] < heap[child - 1][0]:
                child -= 1
            heap[hole], hole = heap[child], child
        if count % 2 == 0 and child == (count - 2) // 2:
            child = 2 * child + 1
            heap[hole], hole = heap[child], child
        self._rise(hole, last)
        return first

    def _rise(self, hole: int, entry: tuple) -> None:
        heap = self._heap
        while hole and heap[(hole - 1) // 2][0] < entry[0]:
            heap[hole], hole = heap[(hole - 1) // 2], (hole - 1) // 2
        heap[hole] = entry


def leaves_as_queued(
    roots: Iterable[Edge], nodes: Iterable[Node], edges_of: Callable[[Node], Iterable[Edge | None]]
) -> dict[Node | None, list[TensorState]]:
    """Return the leaves whose last gradient comes from each node, from the roots for None, as PyTorch orders them."""
    waiting: dict[Node | TensorState, int] = {}
    ends = {node: [node_and_number(edge)[0] for edge in edges_of(node) if edge is not None] for node in nodes}
    for end in (end for own in ends.values() for end in own):
        waiting[end] = waiting.get(end, 0) + 1
    queue, complete, node = ReadyQueue(), {}, None
    for end in dict.fromkeys(node_and_number(edge)[0] for edge in roots):
        if not waiting.get(end):
            queue.push(end)
    while queue:
        item = queue.pop()
        if item.is_leaf_edge:
            complete.setdefault(node, []).append(item)
            continue
        node = item
        for end in ends.get(node, ()):
            waiting[end] -= 1
            if not waiting[end]:
                queue.push(end)
    return complete

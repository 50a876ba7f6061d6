"""Steps that look at the graph."""

from fuzzing.machine import Impossible, step

BROADCAST = (  # what PyTorch's matmul does to the batch dims before a BmmBackward0: expand, reshape
    ("ViewBackward0", "ExpandBackward0"),
    ("ReshapeAliasBackward0", "ExpandBackward0"),
    ("UnsafeViewBackward0", "CloneBackward0", "ExpandBackward0"),
)


def shape_of_graph(tensor, most: int = 40) -> list:
    """Return the nodes behind a tensor in the order in which they are found, each with its name and where it leads.

    A TBackward0 is passed over, since our `linear` has none between the product and its weight; so is the broadcasting
    before a BmmBackward0, since our bmm broadcasts batch dims by itself.
    """
    seen, found, stack = set(), [], [tensor.grad_fn]
    while stack and len(found) < most:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.name().endswith("NotImplemented"):  # PyTorch's has no edges for numbers
            found.append(node.name())
            continue
        stacks = node.name() == "BmmBackward0"
        skipped = node.name() == "SparseAddmmBackward0" and len(node.next_functions) == 3  # PyTorch adds zeros to it
        edges = [past(*(past_broadcast(edge) if stacks else edge)) for edge in node.next_functions[skipped:]]
        found.append((node.name(), *[(None if one is None else one.name(), number) for one, number in edges]))
        stack += [one for one, _ in reversed(edges) if one is not None]
    return found


def past(node, number: int) -> tuple:
    """Return an edge, or where it leads past transposed weights at its end, and past what `x.real` is a part of."""
    while node is not None and node.name() in ("TBackward0", "ViewAsRealBackward0"):
        node, number = node.next_functions[0]
    return node, number


def past_broadcast(edge: tuple) -> tuple:
    """Return an edge, or where it leads past BROADCAST, as often as it comes."""
    for names in BROADCAST:
        end = edge
        for name in names:
            if end is not None:
                end = end[0].next_functions[0] if end[0] is not None and end[0].name() == name else None
        if end is not None:
            return past_broadcast(end)
    return edge


@step("graph", 3)
def graph(m, a, b, k):
    if m.twice:  # derivatives are composed of other nodes than PyTorch's
        raise Impossible
    m.note("graph", *shape_of_graph(m.computed(a)))


@step("edges", 1)
def edges(m, a, b, k):
    x = m.differentiable(a)
    if x.is_leaf and (x.is_inference() or m.t.is_inference_mode_enabled()):  # PyTorch's fails with an AttributeError
        raise Impossible
    edge = m.t.autograd.graph.get_gradient_edge(x)
    m.note("edge", edge.node.name(), edge.output_nr)
    root = m.computed(b)
    grad = None if root.numel() == 1 else m.t.ones_like(root.detach())
    (found,) = m.t.autograd.grad(root, [edge], grad, retain_graph=True, allow_unused=True)
    m.note("found", m.gradient(found))


@step("increment version", 1)
def increment(m, a, b, k):
    if k % 4 == 0:
        m.t.autograd.graph.increment_version(m.floating(a))  # of indices our nodes keep copies

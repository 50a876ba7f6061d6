"""Records made by hand, for tests of pictures: of any graph, of an expression, of a deep model."""

from collections.abc import Sequence

from backlight.lens.records.nodes import LEAF, OP, Backward, Edge, Node, Place, SavedTensor, Step, Summary
from backlight.lens.records.record import Record


def value(number: float) -> Summary:
    """Return the summary of a number."""
    return Summary((), "float32", number, number, number, abs(number), 0, 0, int(number == 0), number)


def tensor(*shape: int, norm: float | None = None) -> Summary:
    """Return the summary of a tensor that is too large to be kept whole."""
    return Summary(shape, "float32", norm=norm, nans=0, infs=0, zeros=0)


def op(number: int, inputs: Sequence[int | None], kind: str = "MulBackward0", label: str = "×", **more) -> Node:
    """Return a node that reads others."""
    edges = [None if one is None else Edge(one) for one in inputs]
    return Node(number, OP, kind, label, edges=edges, **({"outputs": [tensor(8, 8)]} | more))


def leaf(number: int, name: str, **more) -> Node:
    """Return a leaf."""
    return Node(number, LEAF, "AccumulateGrad", name, name, **({"outputs": [tensor(8, 8)]} | more))


def graph(inputs: Sequence[Sequence[int]], modules: Sequence[str] = ()) -> Record:
    """Return a record of nodes that read those before them: `graph([[], [], [0, 1]])`; the last one is the root."""
    nodes = [op(number, some) if some else leaf(number, f"w{number}") for number, some in enumerate(inputs)]
    for node, module in zip(nodes, modules):
        node.module = module if node.kind == OP else ""
    if nodes:
        nodes[-1].root = True
    return Record("backlight", nodes)


def expression() -> Record:
    """Return the record of e = (a + b) · (b · 2) for a = 2, b = 1, after its backward."""
    nodes = [
        leaf(0, "a", outputs=[value(2.0)]),
        leaf(1, "b", outputs=[value(1.0)]),
        op(2, [0, 1], "AddBackward0", "+", name="c", outputs=[value(3.0)]),
        op(3, [1, None], "MulBackward0", "×", name="d", outputs=[value(2.0)]),
        op(4, [2, 3], "MulBackward0", "×", name="e", outputs=[value(6.0)], root=True),
    ]
    arrived = {4: 1.0, 3: 3.0, 2: 2.0, 0: 2.0, 1: 8.0}
    steps = [Step(node, [value(grad)]) for node, grad in arrived.items()]
    return Record("backlight", nodes, [Backward([4], steps)], title="e = (a + b) · (b · 2)")


def stack(layers: int, width: int = 64, *, modules: bool = True) -> Record:
    """Return the record of a model of so many blocks: two linear layers with transposed weights, a tanh and a sum."""
    nodes = [leaf(0, "x", outputs=[tensor(4, width)])]

    def add(kind: str, label: str, inputs: Sequence[int], module: str, line: int) -> int:
        place = Place("model.py", line, "forward", f"step_{line}(x)")
        saved = [SavedTensor("result", tensor(4, width), 16 * width, len(nodes))] if label == "tanh" else []
        nodes.append(op(len(nodes), inputs, kind, label, place=place, saved=saved, outputs=[tensor(4, width)]))
        nodes[-1].module = module if modules else ""
        return len(nodes) - 1

    def parameter(name: str, *shape: int) -> int:
        nodes.append(leaf(len(nodes), name, parameter=True, outputs=[tensor(*shape)]))
        return len(nodes) - 1

    last = 0
    for number in range(layers):
        block, states = f"blocks.{number}", last
        for name, line in (("up", 3), ("down", 5)):
            weight = parameter(f"{block}.{name}.weight", width, width)
            bias = parameter(f"{block}.{name}.bias", width)
            flipped = add("TBackward0", "T", [weight], f"{block}.{name}", line)
            states = add("AddmmBackward0", "addmm", [bias, states, flipped], f"{block}.{name}", line)
            if name == "up":
                states = add("TanhBackward0", "tanh", [states], block, 4)
        last = add("AddBackward0", "+", [last, states], block, 6)
    nodes.append(op(len(nodes), [last], "SumBackward0", "sum", name="loss", root=True, outputs=[tensor()]))
    classes = {"": "Model"}
    for number in range(layers):
        block = f"blocks.{number}"
        classes |= {block: "Block", f"{block}.up": "Linear", f"{block}.down": "Linear"}
    return Record("torch", nodes, modules=classes if modules else {})

"""Records written by hand: what the lens does with them must not depend on what records them."""

from backlight.lens.records.nodes import LEAF, OP, Backward, Edge, HookChange, Node, Place, SavedTensor, Step, Summary
from backlight.lens.records.record import Record


def scalar(value: float) -> Summary:
    return Summary((), "float32", values=value)


def line(number: int, text: str) -> Place:
    return Place("/lesson.py", number, "<module>", text)


def leaf(id: int, name: str, value: float) -> Node:
    return Node(id, LEAF, "AccumulateGrad", name, name, outputs=[scalar(value)])


def seed_nodes() -> list[Node]:
    """e = (a + b) · (b · 2) with a = 2, b = 3."""
    a, b = leaf(0, "a", 2.0), leaf(1, "b", 3.0)
    c = Node(2, OP, "AddBackward0", "+", "c", edges=[Edge(0, 0, "input", "grad"), Edge(1, 0, "other", "alpha · grad")])
    d = Node(3, OP, "MulBackward0", "×", "d", edges=[Edge(1, 0, "input", "grad · other"), None])
    e = Node(
        4,
        OP,
        "MulBackward0",
        "×",
        "e",
        edges=[Edge(2, 0, "input", "grad · other"), Edge(3, 0, "other", "grad · input")],
    )
    c.outputs, d.outputs, e.outputs = [scalar(5.0)], [scalar(6.0)], [scalar(30.0)]
    c.place, d.place, e.place = line(4, "c = a + b"), line(5, "d = b * 2"), line(6, "e = c * d")
    c.options = {"alpha": 1}
    d.saved = [SavedTensor("other", scalar(2.0), 4, 1)]
    e.saved = [SavedTensor("self", scalar(5.0), 4, 2, of=2), SavedTensor("other", scalar(6.0), 4, 3, of=3)]
    e.root = True
    return [a, b, c, d, e]


def seed_backward(before: float | None = None, **options) -> Backward:
    """e.backward(), where `.grad` of a was `before`."""
    steps = [
        Step(4, [scalar(1.0)], [scalar(6.0), scalar(5.0)], freed=8),
        Step(3, [scalar(5.0)], [scalar(10.0), None], freed=4),
        Step(2, [scalar(6.0)], [scalar(6.0), scalar(6.0)]),
        Step(1, [scalar(16.0)], grad_after=scalar(16.0)),
        Step(0, [scalar(6.0)], grad_after=scalar(6.0 + (before or 0.0))),
    ]
    steps[-1].grad_before = None if before is None else scalar(before)
    return Backward([4], steps, place=line(7, "e.backward()"), **options)


def seed_record(**options) -> Record:
    return Record("backlight", seed_nodes(), [seed_backward(**options)], title="seed")


def hooked_record() -> Record:
    """The same, with a hook that doubles the gradient of b."""
    record = seed_record()
    step = record.backwards[0].steps[3]
    step.changes = [HookChange("double", 0, scalar(16.0), scalar(32.0))]
    step.incoming, step.grad_after = [scalar(32.0)], scalar(32.0)
    return record

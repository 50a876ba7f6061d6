"""Turns an engine's nodes into a record's: numbered, with edges, formulas, saved tensors.

NOTE [What a builder holds]
While a record is open its builder holds the leaves, so that it knows them again, and no other node or tensor of the
engine: nodes are known by `engine.key_of`. When the record is closed it holds nothing.
"""

from dataclasses import dataclass
from types import CodeType
from typing import NamedTuple

from backlight.dispatch.observers import OF_LEAF
from backlight.kernels.native import core
from backlight.lens.engines import Engine
from backlight.lens.pictures.labels import label_of
from backlight.lens.records.fingerprints import fingerprint_of
from backlight.lens.records.nodes import (
    GIVEN,
    LEAF,
    OP,
    Edge,
    Node,
    SavedTensor,
    Summary,
    named_options,
    options_of,
)
from backlight.lens.records.record import Record
from backlight.lens.records.summaries import dtype_name, shape_of, summary_of, unread
from backlight.training.engine_types import AnyNode, AnyTensor, Gradients

Spot = tuple[CodeType, int]  # an instruction
NOT_RECORDED = -1
CONTAINERS = ("ids", "leaves", "memories", "written", "holders", "keys", "made_in", "pinned")  # of a builder


@dataclass(frozen=True)
class Options:
    """What a record is to hold; see `watch`."""

    values: str = "summary"
    small: int = 64
    limit: int = 20_000
    names: bool = True
    title: str = ""


class Builder:
    """A record of one engine's graph, as it grows."""

    def __init__(self, engine: Engine, options: Options):
        self.engine = engine
        self.leaf_class = engine.leaf_class
        self.options = options
        self.shapes_only = options.values == "none"
        self.fingerprints = options.values == "hash"
        self.updates = options.values in ("hash", "full")
        self.small = options.small if options.values != "full" else float("inf")
        self.closed = self.finished = False
        self.record = Record(engine.name, title=options.title)
        self.ids: dict[int, int] = {}  # key of an engine's node -> id
        self.leaves: dict[int, tuple] = {}  # id of a leaf -> (the leaf, id)
        self.spots: dict[int, tuple[Spot, list[Spot]]] = {}  # id -> the user's line, and outer ones, nearest first
        self.memories: dict[int, int] = {}  # key of memory -> its number in the record
        self.written: list[int] = []  # by number of memory: its version, as far as it is known
        self.holders: list[int] = []  # by number of memory: how many nodes keep it
        self.keys: list[int] = []  # by number of memory: its key
        self.made_in: dict[int, int] = {}  # number of memory -> the node whose output lies there
        self.pinned: set[int] = set()  # numbers of memory that belongs to leaves
        self.compiled = None if core is None else self._compiled()  # see NOTE [The builder in C]
        if self.compiled is not None:  # called for each node that ran
            self.id_of, self.unread_all = self.compiled.id_of, self.compiled.unread

    def _compiled(self):
        """Return what does a part of this in C, on the same containers (csrc/core/record_builder.c)."""
        engine, options = self.engine, self.options
        named = {
            **{name: getattr(self, name) for name in CONTAINERS},
            "nodes": self.record.nodes,
            "kinds": engine.kinds_in_records,
            "kind_of": self._compiled_kind_of,
            "summary": self.summary,
            "unread": unread,
            "kept_by": engine.kept_by,
            "memory_of": engine.memory_of,
            "options_of": options_of,
            "leaf_class": self.leaf_class,
            **engine.reads_in_c,
        }
        return core.RecordBuilder((Node, Edge, SavedTensor, Summary), options.limit, self.shapes_only, named)

    def _compiled_kind_of(self, node: AnyNode) -> tuple | None:
        """Return what all nodes of a class have in common, for the compiled builder; None if they share a class."""
        kind = _kind_of(node, self.engine)
        if node.__class__ not in _kinds:
            return None
        found = (*kind, named_options(node.__class__), tuple(self.engine.saves_as(node.__class__)))
        self.engine.kinds_in_records[node.__class__] = found
        return found

    @property
    def full(self) -> bool:
        """Whether no more nodes are recorded."""
        return len(self.record.nodes) >= self.options.limit

    def id_of(self, node: AnyNode) -> int | None:
        """Return the number of a node, None if it is not in the record."""
        if node.__class__ is self.leaf_class:
            known = self.leaves.get(id(node.variable))
            return None if known is None else known[1]
        return self.ids.get(self.engine.key_of(node))

    def known_tensor(self, tensor: AnyTensor) -> int | None:
        """Return the number of the node that a tensor is the first output of, None if it is not in the record."""
        edge = self.engine.made_by(tensor)
        if edge is None:
            known = self.leaves.get(id(tensor))
            return None if known is None else known[1]
        node, number = edge
        return self.ids.get(self.engine.key_of(node)) if number == 0 else None

    def add_graph(self, roots: list) -> list[tuple[Node, object]]:
        """Add all nodes that the roots reach and that are not in the record yet; return them, first made first."""
        if len(roots) == 1 and roots[0] is not None and not self.full:
            if self._has(roots[0]):
                return []
            added = None if self.compiled is None else self.compiled.add(roots[0])
            if added is not None:
                return added
            given = self.engine.inputs_of(roots[0])
            known = self._known(given)
            if NOT_RECORDED not in known:
                return [(self._add(roots[0], given, known), roots[0])]
        return [(self._add(node, given), node) for node, given in self._missing(roots)]

    def _has(self, node: AnyNode) -> bool:
        return node.__class__ is self.leaf_class or self.engine.key_of(node) in self.ids

    def _missing(self, roots: list) -> list[tuple[object, list]]:
        """Return the nodes that the roots reach and that are to be added, with their inputs, first made first."""
        found: dict[object, list] = {}
        stack = [root for root in roots if root is not None]
        while stack:
            node = stack.pop()
            if node not in found and not self._has(node):
                found[node] = given = self.engine.inputs_of(node)
                stack += [inner for inner, number in given if inner is not None and number != OF_LEAF]
        first_made = sorted(found, key=lambda node: node._sequence_nr())
        ordered = _inputs_first(first_made, found) if len(found) > 1 else first_made
        room = max(self.options.limit - len(self.record.nodes), 0)
        if len(ordered) > room:  # what is nearest to the root stays
            self.record.left_out += len(ordered) - room
            ordered = ordered[len(ordered) - room :]
        return [(node, found[node]) for node in ordered]

    def _known(self, given: list) -> list[int | None]:
        """Return the numbers of a node's inputs: None for none and for a leaf, NOT_RECORDED for one without."""
        key_of, ids = self.engine.key_of, self.ids
        return [
            None if inner is None or number == OF_LEAF else ids.get(key_of(inner), NOT_RECORDED)
            for inner, number in given
        ]

    def _add(self, node: AnyNode, given: list, known: list[int | None] | None = None) -> Node:
        """Add one op; its inputs are in the record already, but for leaves and for what was left out."""
        kind = _kinds.get(node.__class__) or _kind_of(node, self.engine)
        formulas = kind.formulas
        if len(formulas) != len(given):
            formulas = formulas * len(given) if len(formulas) == 1 else [_NO_FORMULA] * len(given)
        edges: list[Edge | None] = []
        for (inner, number), to, (name, formula) in zip(given, known or self._known(given), formulas):
            if inner is None:
                edges.append(None)
                continue
            if to is None:
                to, number = self.leaf(inner), 0
            edges.append(Edge(self._cut_end() if to == NOT_RECORDED else to, number, name, formula))
        nodes = self.record.nodes
        number = self.ids[self.engine.key_of(node)] = len(nodes)
        made = Node(number, OP if given else GIVEN, kind.type, kind.label, None, False, edges)
        nodes.append(made)
        made.options = options_of(node)
        self._add_saved(made, node)
        return made

    def _new(self, kind: str, node_type: str, label: str) -> Node:
        made = Node(len(self.record.nodes), kind, node_type, label)
        self.record.nodes.append(made)
        return made

    def _cut_end(self) -> int:
        if NOT_RECORDED not in self.ids:
            made = self._new(GIVEN, "left out", "…")
            self.ids[NOT_RECORDED] = made.id
        return self.ids[NOT_RECORDED]

    def leaf(self, tensor: AnyTensor) -> int:
        """Return the number of a leaf's node, which is added when it is first met."""
        if self.compiled is not None:
            return self.compiled.leaf(tensor)
        known = self.leaves.get(id(tensor))
        if known is not None:
            return known[1]
        made = self._new(LEAF, "AccumulateGrad", "leaf")
        self.leaves[id(tensor)] = (tensor, made.id)
        made.version = self.engine.version_of(tensor)
        made.outputs = [self.summary(tensor)]
        number = self._memory_of(tensor, made.version)[0]
        self.pinned.add(number)
        self.made_in.setdefault(number, made.id)
        return made.id

    def set_output(self, made: Node, number: int, tensor: AnyTensor) -> None:
        """Note an output of a node, as it is now."""
        if self.compiled is not None and self.compiled.set_output(made, number, tensor):
            return
        tensor = self.engine.in_graph(tensor)
        outputs, summary = made.outputs, self.summary(tensor)
        while len(outputs) <= number:
            outputs.append(summary if len(outputs) == number else self.unread(tensor))
        outputs[number] = summary
        made.version = version = self.engine.version_of(tensor)
        self.made_in[self._memory_of(tensor, version)[0]] = made.id

    def learn_shapes(self, added: list[tuple[Node, object]]) -> None:
        """Note the outputs' shapes of nodes whose outputs were not reported, as far as the engine knows them."""
        for made, node in added:
            if not made.outputs:
                known = getattr(node, "_input_metadata", ())
                made.outputs = [shape_of(one) for one in known]

    def unread(self, tensor: AnyTensor) -> Summary:
        """Return a tensor's shape and dtype."""
        return unread(*self.engine.shape_and_dtype(tensor))

    def unread_all(self, tensors: Gradients) -> list[Summary | None]:
        """Return the shapes and dtypes of tensors, None for None."""
        return [None if one is None else self.unread(one) for one in tensors]

    def summary(self, tensor: AnyTensor) -> Summary:
        """Return a tensor's summary, as detailed as requested."""
        shape, dtype = self.engine.shape_and_dtype(tensor)
        if self.shapes_only:
            return unread(shape, dtype)
        try:
            array = self.engine.array(tensor)
        except (RuntimeError, TypeError, NotImplementedError):  # it has no values: batched by vmap, on "meta", fake
            why = self.engine.why_unread(tensor)
            self.record.unread[why] = self.record.unread.get(why, 0) + 1
            return unread(shape, dtype)
        made = summary_of(array, dtype_name(dtype), self.small)
        made.shape = tuple(shape)
        if self.fingerprints:
            made.fingerprint = fingerprint_of(array)
        return made

    def _memory_of(self, tensor: AnyTensor, version: int) -> tuple[int, int]:
        """Return the number of a tensor's memory, which its views have too, and its size."""
        if self.compiled is not None:
            return self.compiled.memory_number(tensor, version)
        key, size = self.engine.memory_of(tensor)
        number = self.memories.get(key)
        if number is None:
            number = self.memories[key] = len(self.written)
            self.written.append(version)
            self.holders.append(0)
            self.keys.append(key)
        return number, size

    def _add_saved(self, made: Node, node: AnyNode) -> None:
        engine = self.engine
        for name, tensor in engine.kept_by(node):
            version = engine.version_of(tensor)
            number, size = self._memory_of(tensor, version)
            of, output = self._maker_of(tensor) if engine.requires_grad(tensor) else (None, 0)
            summary = self._summary_of_saved(tensor, version, of, output)
            made.saved.append(SavedTensor(name, summary, size, number, of, version, version))
            if version > self.written[number]:
                self.written[number] = version
            self.holders[number] += 1

    def _maker_of(self, tensor: AnyTensor) -> tuple[int | None, int]:
        """Return the node that made a tensor that requires grad, and as which output."""
        edge = self.engine.made_by(tensor)
        if edge is None:
            return self.leaves.get(id(tensor), (None, None))[1], 0
        node, output = edge
        return self.ids.get(self.engine.key_of(node)), output

    def _summary_of_saved(self, tensor: AnyTensor, version: int, of: int | None, output: int) -> Summary:
        """Return the known summary of the values if they were not written to since, else a new one."""
        if of is not None and self.record.nodes[of].version == version:
            outputs = self.record.nodes[of].outputs
            if output < len(outputs) and outputs[output].shape == self.engine.shape_and_dtype(tensor)[0]:
                return outputs[output]
        return self.summary(tensor)

    def free(self, made: Node) -> int:
        """Note that a node dropped what it had saved; return the bytes that nothing else in the record keeps."""
        freed = {}
        for saved in made.saved:
            self.holders[saved.memory] -= 1
            if self.holders[saved.memory] == 0 and saved.memory not in self.pinned:
                freed[saved.memory] = saved.bytes
                self.memories.pop(self.keys[saved.memory], None)  # other memory may come to lie at its address
        return sum(freed.values())

    def fill(self) -> None:
        """Write down what leaves have at the end: hooks, gradients, values that were written to."""
        for tensor, number in self.leaves.values():
            made = self.record.nodes[number]
            made.hooks = self.engine.hooks_of(tensor)
            made.grad = None if tensor.grad is None else self.summary(tensor.grad)
            if self.updates and self.engine.version_of(tensor) > made.version:
                made.updated = self.summary(tensor)

    def finish(self) -> None:
        """Write down how often saved tensors were written to; if the record is closed, for good."""
        for made in self.record.nodes:
            for saved in made.saved:
                saved.written = max(saved.version, self.written[saved.memory])
        self.finished = self.closed

    def release_tensors(self) -> None:
        """Hold nothing of the engine's any longer."""
        self.leaves, self.closed = {}, True
        if self.compiled is not None:
            self.compiled = None
            del self.id_of, self.unread_all


def _inputs_first(ordered: list, given: dict[object, list]) -> list:
    """Return nodes so that each comes after its inputs: PyTorch makes those of a view that was written to late."""
    waiting, placed = dict.fromkeys(ordered), []
    for node in ordered:
        stack = [node] if node in waiting else []
        while stack:
            last = stack[-1]
            before = [inner for inner, _ in given[last] if inner in waiting and inner is not last]
            if before:
                stack += before
            else:
                stack.pop()
                if last in waiting:
                    del waiting[last]
                    placed.append(last)
    return placed


class _Kind(NamedTuple):
    """What all nodes of a class have in common."""

    type: str
    label: str
    formulas: list[tuple[str, str]]


_kinds: dict[type, _Kind] = {}
_NO_FORMULA = "", ""


def _kind_of(node: AnyNode, engine: Engine) -> _Kind:
    kind = _kinds.get(node.__class__)
    if kind is None:
        name = node.name()
        kind = _Kind(name.rpartition("::")[2], label_of(name), list(engine.formulas_of(node).items()))
        if node.__class__.__name__ == kind.type:  # nodes that PyTorch has no class for share one
            _kinds[node.__class__] = kind
    return kind

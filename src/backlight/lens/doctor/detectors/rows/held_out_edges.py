"""Edges of a graph that are to be predicted, and that the model is shown: they are in the adjacency that it reads.

NOTE [Edges that are shown]
A model that passes messages along edges, by a product with an adjacency or by adding up what was gathered, learns from
pairs of nodes, and is evaluated by other pairs. Those of them that are edges of the very graph that it reads while it
learns, and that no loss was computed of, were held out and shown all the same. To be sure of it: there are ten or more
of them, a third of the pairs or more, other pairs are no edges, and all edges that the training uses have been seen:
the last step used no new one. Pairs of which hardly any is an edge are drawn as negatives, and may hit one by chance.
"""

import sys
from dataclasses import dataclass, field

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import locals_of
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of, users_frames
from backlight.lens.doctor.source import assignments, spot_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

GATHERS = {"getitem", "__getitem__", "index_select", "index"}
ADDS = {"index_add", "scatter_add", "scatter_reduce", "index_reduce", "index_put"}
PRODUCTS = {"matmul", "mm"}
PAIRS = {"mul", "cat", "sub", "cosine_similarity", "concat", "pairwise_distance"}
KEEPS = {"mul", "cat", "unsqueeze", "div", "sub"}
LEAST, NODES, MOST_NODES, MOST, SETS, SHARE = 10, 16, 3000, 400_000, 6, 0.3
CHANCE, MOST_BY_CHANCE = 0.05, 0.85
DIMS = 2


@dataclass(slots=True)
class Edges:
    """The graph that a model reads while it learns: numbers `from * nodes + to`, sorted."""

    line: Instruction
    made: Place | None
    nodes: int
    codes: np.ndarray
    density: float = 0.0  # how many of all pairs are edges, in one direction or the other

    @property
    def shown(self) -> np.ndarray:
        """The edges, in both directions."""
        return np.union1d(self.codes, turned(self.codes, self.nodes))


@dataclass(slots=True)
class Evaluated:
    """Pairs of nodes that were scored without gradients."""

    line: Instruction
    codes: np.ndarray


@dataclass(slots=True)
class Trained:
    """Edges that losses were computed of, and those since the last backward."""

    codes: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    new: list[np.ndarray] = field(default_factory=list)
    last: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # those that the last step added


class HeldOutEdges(Detector):
    """Finds them (see NOTE [Edges that are shown])."""

    calls = frozenset({*GATHERS, *ADDS, *PRODUCTS, *PAIRS, *KEEPS})

    def __init__(self, watch):
        super().__init__(watch)
        self.graph: Edges | None = None
        self.known: WeakIdDict[None] = WeakIdDict()  # adjacencies and lists of sources that were looked at
        self.several = False  # whether there is more than one graph
        self.gathered: WeakIdDict[tuple[int, np.ndarray]] = WeakIdDict()  # rows of nodes -> of how many, which
        self.trained = Trained()
        self.evaluated: dict[tuple[int, int], Evaluated] = {}  # by the first pair and their number

    def called(self, call: Call) -> None:
        """Note the graph, and the pairs."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if self.several or len(inputs) < DIMS or not self.engine.is_tensor(out):
            return
        if name in PRODUCTS and out.requires_grad and not inputs[0].requires_grad:
            self._adjacency(call, inputs[0], inputs[1])
        elif name in GATHERS:
            self._gather(call, inputs, out)
        elif len(self.gathered):
            known = [found for one in inputs if (found := self.gathered.get(one)) is not None]
            if name in ADDS:
                self._passes(call, known, inputs, out)
            elif known:
                if len(known) == DIMS and len(known[0][1]) == len(known[1][1]) and known[0][0] == known[1][0]:
                    self._pairs(Instruction(call.code, call.lasti), *known, out)
                if name in KEEPS and out.dim() and out.shape[0] == len(known[0][1]):
                    self.gathered[out] = known[0]

    def _adjacency(self, call: Call, matrix: Tensor, features: Tensor) -> None:
        if matrix.dim() != DIMS or matrix.shape[0] != matrix.shape[1] or matrix in self.known:
            return
        nodes = matrix.shape[0]
        if not NODES <= nodes <= MOST_NODES or features.dim() != DIMS or self.watch.flow.of(matrix).leaves:
            return
        self.known[matrix] = None
        values = self.values(matrix)
        if values is not None:
            self._read(Instruction(call.code, call.lasti), matrix, nodes, np.flatnonzero(values))

    def _read(self, line: Instruction, tensor: Tensor, nodes: int, codes: np.ndarray) -> None:
        """Note the edges of a graph."""
        codes = np.unique(codes[codes // nodes != codes % nodes]).astype(np.int64)
        if not len(codes) or len(codes) > min(MOST, nodes * (nodes - 1) // 2):
            return
        if self.graph is None:
            self.graph = Edges(line, _made_at(tensor), nodes, codes)
            self.graph.density = len(self.graph.shown) / nodes**2
        elif self.graph.nodes != nodes or not np.array_equal(self.graph.codes, codes):
            self.several = True

    def _gather(self, call: Call, inputs: list, out: Tensor) -> None:
        nodes = inputs[0]
        if nodes.dim() != DIMS or not nodes.shape[0] >= NODES or not self.watch.flow.of(nodes).leaves:
            return
        if len(inputs) == DIMS and inputs[1].dim() == 1 and out.shape[:1] == inputs[1].shape:
            rows = self._indices(inputs[1])
            if rows is not None and out.dim() == DIMS:
                self.gathered[out] = nodes.shape[0], rows
        elif len(inputs) == DIMS + 1 and nodes.shape[0] == nodes.shape[1] and out.dim() == 1:
            one, other = self._indices(inputs[1]), self._indices(inputs[2])
            if one is not None and other is not None and len(one) == len(other) == len(out):
                count = nodes.shape[0]
                self._pairs(Instruction(call.code, call.lasti), (count, one), (count, other), out)

    def _indices(self, index: Tensor) -> np.ndarray | None:
        values = None if index.dtype.is_floating_point or index.dim() != 1 else self.values(index)
        return None if values is None or values.dtype.kind != "i" else values.astype(np.int64)

    def _passes(self, call: Call, known: list, inputs: list, out: Tensor) -> None:
        """Note the edges along which messages are added up."""
        index = next((one for one in inputs if not one.dtype.is_floating_point), None)
        if not known or index is None or not out.requires_grad or index in self.known:
            return
        self.known[index] = None
        values = self.values(index)
        (nodes, sources), *_ = known
        if values is None or not values.ndim or len(values) != len(sources):
            return
        targets = values.reshape(len(values), -1)[:, 0].astype(np.int64)
        if targets.max(initial=0) < nodes:
            self._read(Instruction(call.code, call.lasti), index, nodes, sources * nodes + targets)

    def _pairs(self, line: Instruction, one: tuple, other: tuple, out: Tensor) -> None:
        if self.graph is None or one[0] != self.graph.nodes or len(one[1]) < LEAST:
            return
        codes = one[1] * one[0] + other[1]
        if out.requires_grad:
            edges = np.isin(codes, self.graph.codes) | np.isin(turned(codes, one[0]), self.graph.codes)
            by_chance = min(1.5 * self.graph.density, MOST_BY_CHANCE)
            if edges.mean() > CHANCE + by_chance:
                self.trained.new.append(codes[edges])
        elif len(self.evaluated) < SETS:
            self.evaluated[int(codes[0]), len(codes)] = Evaluated(line, codes)

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Note which pairs are new to the training."""
        if self.trained.new:
            codes = np.unique(np.concatenate(self.trained.new))
            self.trained.last = np.setdiff1d(codes, self.trained.codes, assume_unique=True)
            self.trained.codes = np.union1d(self.trained.codes, codes)[:MOST]
            self.trained.new.clear()

    def end(self, problem: BaseException | None) -> None:
        """Report edges that were held out and shown."""
        graph = self.graph
        if graph is None or self.several or not len(self.trained.codes):
            return
        shown = graph.shown
        learned = np.union1d(self.trained.codes, turned(self.trained.codes, graph.nodes))
        if len(learned) < LEAST or len(self.trained.last):
            return
        others = sum(int((~np.isin(one.codes, shown)).sum()) for one in self.evaluated.values())
        for one in self.evaluated.values():
            held = np.isin(one.codes, shown) & ~np.isin(one.codes, learned)
            if held.sum() >= max(LEAST, SHARE * len(held)) and others >= LEAST:
                self.report(
                    "held-out-edges-shown",
                    graph.made or place_of(graph.line),
                    f"Of the {len(held)} pairs that {brief_at(one.line)} scores without gradients, {int(held.sum())} "
                    "are in no loss.",
                    f"These are edges of the graph that the model reads at {brief_at(graph.line)}"
                    + ("." if graph.made is None else f", made at {brief(graph.made)}."),
                )
                return


def turned(codes: np.ndarray, nodes: int) -> np.ndarray:
    """Return edges in the other direction."""
    return codes % nodes * nodes + codes // nodes


def _made_at(tensor: Tensor) -> Place | None:
    """Return the line that assigned a tensor to the variable that holds it in the outermost function."""
    found = None
    for frame in users_frames(sys._getframe(1)):
        names = locals_of(frame)
        name = next((key for key, value in names.items() if value is tensor and key.isidentifier()), None)
        if name is not None:
            spot = spot_of(Instruction(frame.f_code, frame.f_lasti), frame)
            made = [one for one in assignments(spot.scope, name) if one.lineno < spot.line] if spot.tree else []
            found = spot.at(made[-1]).place if made else found
    return found

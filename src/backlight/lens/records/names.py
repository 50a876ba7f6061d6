"""What the nodes of a record are called: the user's variables, parameters' dotted names, modules' paths.

NOTE [Where names come from]
* A parameter's: from the modules that ran, that were given, or that a variable holds. If several of them, none inside
  another, have a part in the record, each one's variable (else its class) stands in front.
* A variable's: from the frame in which a backward was called, and the one in which the record was closed; of what died
  before, from the instruction after the call that made it, if that stores into a local variable.
"""

import dis
import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType

from backlight.dispatch.observers import line_at
from backlight.lens.engines import Engine
from backlight.lens.records.building import Builder, Spot
from backlight.lens.records.nodes import LEAF, Node, Place, Summary
from backlight.lens.records.record import Record
from backlight.training.engine_types import AnyModule

# A function's f_locals is a dict that its frame, a local of ours and the count itself hold. If more do, the program
# called locals(); from Python 3.13 on it is no copy, and only two hold it.
HELD_BY_ITS_FRAME = 3
STORES = {"STORE_FAST", "STORE_NAME", "STORE_DEREF", "STORE_GLOBAL"}


class Naming:
    """Collects names while a record grows."""

    def __init__(self, engine: Engine, models: tuple):
        self.engine = engine
        self.module_class = engine.module.nn.Module
        self.modules: list = list(models)  # those that may hold parameters: given, outermost, found in frames
        self.variables: dict[int, str] = {}  # id of a module -> its variable
        self.roots: list = []  # the outermost modules that ran
        self.kinds: dict[tuple[int, str], str] = {}  # (place in `roots`, path) -> class of a module that ran
        self.ran_in: dict[int, tuple[int, str]] = {}  # node -> (place in `roots`, path in that)
        self.made_at: dict[int, tuple[CodeType, int]] = {}
        self.names: dict[int, str] = {}

    def outermost(self, module: AnyModule) -> int:
        """Note an outermost module that runs; return its number."""
        for number, known in enumerate(self.roots):
            if known is module:
                return number
        self.roots.append(module)
        return len(self.roots) - 1

    def ran(self, outermost: AnyModule, path: str, kind: str) -> int:
        """Note that a module runs; return the number of the outermost one."""
        root = self.outermost(outermost)
        self.kinds[root, path] = kind
        return root

    def like(self, node: int, other: int) -> None:
        """Note that a node belongs to the module that another one belongs to."""
        if other in self.ran_in:
            self.ran_in[node] = self.ran_in[other]

    def made(self, node: int, code: CodeType, lasti: int) -> None:
        """Note which call returned a node's output."""
        self.made_at[node] = code, lasti

    def read_frame(self, frame: FrameType | None, builder: Builder, *, globals_too: bool = False) -> None:
        """Note which variables hold tensors of the record, or modules."""
        if frame is None:
            return
        space = frame.f_locals
        self._read_space(space, builder)
        if globals_too and frame.f_globals is not space:
            self._read_space(frame.f_globals, builder)
        if frame.f_code.co_flags & CO_OPTIMIZED and sys.getrefcount(space) == HELD_BY_ITS_FRAME:
            space.clear()  # a copy that the frame would keep, and with it tensors that the program lets go of

    def _read_space(self, space: Mapping[str, object], builder: Builder) -> None:
        is_tensor, module_class = self.engine.is_tensor, self.module_class
        for name, value in list(space.items()):
            if name.startswith("_"):
                continue
            if is_tensor(value):
                known = builder.known_tensor(value)
                if known is not None:
                    self.names.setdefault(known, name)
            elif isinstance(value, module_class) and id(value) not in self.variables:
                self.variables[id(value)] = name
                self.modules.append(value)

    def fill(self, record: Record, builder: Builder) -> None:
        """Write into the record what modules and parameters are called."""
        tops = self._tops(builder)
        paths: dict[int, str] = {}
        for prefix, inner in tops:
            paths |= {id(module): _joined(prefix, path) for path, module in inner}
            self._name_parameters(prefix, inner, record, builder)
        self._name_roots(record, paths)
        for tensor, number in builder.leaves.values():
            made = record.nodes[number]
            made.parameter = made.parameter or type(tensor).__name__ == "Parameter"

    def finish(self, record: Record) -> None:
        """Write into the record what variables are called."""
        # the variables that results went into: of several ops that one call is made of, the last one's
        latest = list(self.made_at.items())
        following = [*(spot for _, spot in latest[1:]), None]
        kept = ((node, spot) for (node, spot), after in zip(latest, following) if spot != after)
        stored = {node: name for node, spot in kept if (name := _stores(spot[0]).get(spot[1])) is not None}
        for made in record.nodes:
            if made.name is None:
                made.name = self.names.get(made.id) or stored.get(made.id)
            if made.kind == LEAF:
                made.label = made.name or "leaf"

    def _tops(self, builder: Builder) -> list[tuple[str, list]]:
        """Return of the modules with a part in the record that are in no other: a prefix, all inside with its path."""
        trees = {id(module): list(module.named_modules()) for module in (*self.modules, *self.roots)}
        inner = {id(one) for tree in trees.values() for _, one in tree[1:]}
        running = {id(root) for root in self.roots}
        tops = [
            tree
            for key, tree in trees.items()
            if key not in inner and (key in running or any(id(one) in builder.leaves for one in _parameters(tree)))
        ]
        with_parameters = [tree for tree in tops if any(True for _ in _parameters(tree))]
        if len(with_parameters) == 1:
            return [("" if tree in with_parameters else self._called(tree[0][1]), tree) for tree in tops]
        return [(self._called(tree[0][1]), tree) for tree in tops]

    def _called(self, module: AnyModule) -> str:
        return self.variables.get(id(module)) or type(module).__name__

    def _name_parameters(self, prefix: str, inner: list, record: Record, builder: Builder) -> None:
        for path, module in inner:
            for name, parameter in module._parameters.items():
                known = builder.leaves.get(id(parameter))
                if known is not None and record.nodes[known[1]].name is None:
                    made = record.nodes[known[1]]
                    made.name, made.parameter = _joined(prefix, path, name), True

    def _name_roots(self, record: Record, paths: dict[int, str]) -> None:
        """Put before the paths of nodes where the outermost module that ran stands."""
        roots = [paths.get(id(root), "") for root in self.roots]
        for node, (root, path) in self.ran_in.items():
            above = roots[root]
            record.nodes[node].module = f"{above}.{path}" if above and path else above or path
        record.modules = {_joined(roots[root], path): kind for (root, path), kind in self.kinds.items()}

    def release_tensors(self) -> None:
        """Hold no module any longer."""
        self.modules, self.roots = [], []


def _parameters(tree: list) -> Iterator:
    for _, module in tree:
        for parameter in module._parameters.values():
            if parameter is not None:
                yield parameter


def _joined(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def cached_by_code(function: Callable) -> Callable:
    """Cache a function of code and numbers by the id of the code, which the cache holds: hashing code is slow."""
    known = {}

    @functools.wraps(function)
    def cached(code: CodeType, *numbers: int):
        found = known.get((id(code), *numbers))
        if found is None:
            found = known[id(code), *numbers] = code, function(code, *numbers)
        return found[1]

    return cached


@cached_by_code
def _stores(code: CodeType) -> dict[int, str]:
    """Return for each instruction that is followed by a store the name of the variable."""
    return dict(_pairs(code))


def _pairs(code: CodeType) -> Iterator[tuple[int, str]]:
    before = None
    for instruction in dis.get_instructions(code):
        if instruction.opname in STORES and before is not None and not instruction.argval.startswith("_"):
            yield before, instruction.argval
        before = instruction.offset


def finish(builder: Builder, naming: Naming) -> Record:
    """Write into a record what needs nothing of the engine any longer: lines, names, writes to saved tensors."""
    nodes, outside = builder.record.nodes, {}
    if builder.finished:
        return builder.record
    for number, (spot, outer) in builder.spots.items():
        made = nodes[number]
        if made.place is None:
            places = outside.get(id(outer))
            if places is None:
                places = outside[id(outer)] = [place_at(one) for one in outer]
            made.place, made.stack = place_at(spot), places.copy()
    naming.finish(builder.record)
    builder.finish()
    for saved in (saved for node in nodes for saved in node.saved):
        if saved.of is not None and saved.version == saved.written:
            _learn_output(nodes[saved.of], saved.summary)
    return builder.record


def _learn_output(made: Node, summary: Summary) -> None:
    """Note an output that was not seen but is kept by some node."""
    if made.kind != LEAF and len(made.outputs) <= 1:
        known = made.outputs[0] if made.outputs else None
        if known is None or (known.shape == summary.shape and known.nans is None):
            made.outputs[:] = [summary]


def place_at(spot: Spot) -> Place:
    """Return an instruction's line."""
    return _place_at(*spot)


@cached_by_code
def _place_at(code: CodeType, lasti: int) -> Place:
    return Place(*line_at(code, lasti))

"""What each tensor was computed from, across detach, no_grad and NumPy too; where the flow of gradients is cut.

NOTE [Flow]
Each leaf that requires grad gets a number when an op first uses it. A tensor's `leaves` is the set of those that its
*values* depend on (bits of an int), also where its graph was cut; `cuts` is the set of the cuts on the way. A cut is an
op some input of which requires grad and whose output does not. Sets are joined at each op by one `|`.
"""

import sys
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from backlight.dispatch.observers import Call, Run
from backlight.engine.provenance import frame_of
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import name_in
from backlight.lens.doctor.graph import (
    Module,
    Node,
    Optimizer,
    Tensor,
    is_computed,
    is_parameter,
    nodes_behind,
    root_nodes,
)
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict, keep_newest
from backlight.lens.records.record import Place

MAKERS = {"tensor", "as_tensor", "asarray", "from_numpy", "full", "new_tensor", "new_full", "Tensor", "FloatTensor"}
LEAVING = {"item", "tolist", "numpy", "__array__", "__float__"}
QUIET = {"grad", "__repr__", "__format__", "__len__", "backward", "register_hook", "data=", "grad="}
MANY = 64  # numbers that leave by one tolist() and are remembered
MOST_NUMBERS = 4096
MOST_LEAVES = 4000  # that are tracked one by one
TRIES = 3  # uses of a leaf at which its name is looked for
NO_NEWS = {0.0, 1.0, -1.0, 2.0, 0.5}  # numbers that a program has anyway


@dataclass(slots=True, eq=False)
class Leaf:
    """A tensor that requires grad and that no op made.

    Args:
        bit: its place in sets; 0 if there were too many before it.
        tensor: a weak reference.
        shape: the tensor's.
        name: the user's variable, once it is found; a parameter's dotted name is known to `Flow.name_of`.
        code, lasti: the first line that was seen to have it.
        used: the first recorded op that used it.
        upstream, cuts: what its values came from, if it was made of a detached tensor or of numbers.
        recorded: whether an op that was recorded used it.
        reached: whether a gradient got to it.
        tries: how often its name was looked for.
    """

    bit: int
    tensor: weakref.ref
    shape: tuple
    name: str | None
    code: CodeType | None
    lasti: int
    upstream: int = 0
    cuts: int = 0
    recorded: bool = False
    used: Instruction | None = None
    reached: bool = False
    tries: int = 0


@dataclass(slots=True)
class FlowCut:
    """Where gradients stop: an op, its line, the leaves behind it, and whether recording was on."""

    name: str
    code: CodeType
    lasti: int
    leaves: int
    recording: bool

    @property
    def call(self) -> str:
        """The op as a program writes it."""
        return ".data" if self.name == "data" else f"{self.name}()"

    @property
    def line(self) -> str:
        """The line as evidence names it."""
        return brief_at(self)


class Info:
    """What is known of one tensor (see NOTE [Flow]), and the name of the op that made it."""

    __slots__ = ("cuts", "leaf", "leaves", "name", "reference")

    def __init__(self, reference: weakref.ref, leaves: int, cuts: int, leaf: Leaf | None = None):
        self.reference, self.leaves, self.cuts, self.leaf = reference, leaves, cuts, leaf
        self.name = ""


class Flow(Detector):
    """Follows values from op to op (see NOTE [Flow])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.infos: dict[int, Info] = {}
        self.leaves: list[Leaf] = []
        self.cuts: list[FlowCut] = []
        self.root_cuts = 0  # of all tensors that a backward started from
        self.recent_cuts = 0  # of those since the last step of an optimizer
        self._stepped = False
        self.backwards = 0
        self.first_backward: Place | None = None
        self.numbers: dict[float, tuple[int, int]] = {}  # values that left -> (leaves, cuts)
        self.arrays: WeakIdDict[tuple[int, int]] = WeakIdDict()  # NumPy arrays of tensors -> (leaves, cuts)
        self.constants: WeakIdDict[Instruction] = WeakIdDict()  # next to what requires grad -> line
        self.modules: WeakIdDict[None] = WeakIdDict()  # outermost ones that ran
        self.names: WeakIdDict[str] = WeakIdDict()  # parameters -> dotted name
        self._cut_at: dict[tuple, int] = {}
        self._root = None

    def known(self, tensor: Tensor) -> Info | None:
        """Return what is known of a tensor."""
        info = self.infos.get(id(tensor))
        return info if info is not None and info.reference() is tensor else None

    def leaf_of(self, tensor: Tensor) -> Leaf | None:
        """Return what is known of a tensor as a leaf; None if no op that was seen used it, or one made it."""
        info = self.known(tensor)
        return None if info is None else info.leaf

    def of(self, tensor: Tensor, call: Call | None = None) -> Info:
        """Return what is known of a tensor, after finding it out."""
        info = self.known(tensor)
        if info is None:
            info = self._new(tensor)
            if is_computed(tensor):
                found = 0
                for leaf in self.leaves_of([self.engine.node_of(tensor)[0]]):
                    found |= self.of(leaf).leaf.bit
                info.leaves = found
        if info.leaf is None and is_parameter(tensor):
            self._make_leaf(tensor, info, call)
        return info

    def _new(self, tensor: Tensor, leaves: int = 0, cuts: int = 0) -> Info:
        key, infos = id(tensor), self.infos

        def forget(reference: weakref.ref):
            present = infos.get(key)
            if present is not None and present.reference is reference:
                del infos[key]

        info = infos[key] = Info(weakref.ref(tensor, forget), leaves, cuts)
        return info

    def _make_leaf(self, tensor: Tensor, info: Info, call: Call | None) -> None:
        code, lasti = (None, 0) if call is None else (call.code, call.lasti)
        bit = 1 << len(self.leaves) if len(self.leaves) < MOST_LEAVES else 0
        leaf = Leaf(bit, weakref.ref(tensor), tuple(tensor.shape), None, code, lasti, info.leaves, info.cuts)
        if bit:
            self.leaves.append(leaf)
        info.leaf, info.leaves = leaf, info.leaves | bit

    def leaves_of(self, nodes: Iterable[Node]) -> list:
        """Return the leaf tensors that the graph behind some nodes ends in."""
        found = []
        for node in nodes_behind(nodes):
            variable = getattr(node, "variable", None)
            if variable is not None and not node.next_functions and self.watch.is_plain(variable):
                found.append(variable)
        return found

    def called(self, call: Call) -> None:
        """Join the sets of an op's inputs, and note a cut."""
        if call.name in QUIET:
            return
        inputs, outs = self.watch.inputs, self.watch.outs
        if not inputs and not outs:
            return
        leaves = cuts = 0
        wanted = False
        infos = [self.of(tensor, call) for tensor in inputs]
        for tensor, info in zip(inputs, infos):
            leaves |= info.leaves
            cuts |= info.cuts
            wanted = wanted or tensor.requires_grad
        if call.name in LEAVING:
            self._left(call, leaves, cuts, wanted)
            return
        if call.name in MAKERS:
            leaves, cuts = self._returned_to_graph(call, leaves, cuts)
        recorded = any(is_computed(out) for out in outs)
        wanted = wanted or (call.name == "detach_" and leaves != 0)
        new = outs if call.name == "detach_" else [out for out in outs if all(out is not one for one in inputs)]
        if wanted and new and not any(out.requires_grad for out in new):
            cuts |= 1 << self.cut(call, leaves)
        if recorded:
            self._recorded(call, inputs, infos)
        for out in outs:
            self._made(call, out, leaves, cuts)

    def _recorded(self, call: Call, inputs: list, infos: list[Info]) -> None:
        """Note the leaves that a recorded op used, and the constants next to them."""
        for tensor, info in zip(inputs, infos):
            if info.leaf is not None:
                self._used(info.leaf, tensor, call)
            elif not tensor.requires_grad and tensor not in self.constants:
                self.constants[tensor] = Instruction(call.code, call.lasti)

    def _used(self, leaf: Leaf, tensor: Tensor, call: Call) -> None:
        """Note where a recorded op first used a leaf, and what the user calls it."""
        if leaf.recorded and leaf.name is not None:
            return
        if not leaf.recorded:
            leaf.recorded, leaf.used = True, Instruction(call.code, call.lasti)
        if leaf.name is None and tensor not in self.names and leaf.tries < TRIES:
            leaf.tries += 1
            leaf.name = name_in(frame_of(call.code), tensor)

    def _made(self, call: Call, out: Any, leaves: int, cuts: int) -> None:
        info = self.known(out)
        if info is None:
            info = self._new(out, leaves, cuts)
        elif info.leaf is None:
            info.leaves |= leaves
            info.cuts |= cuts
        if call.name != "requires_grad_":
            info.name = call.name
        if info.leaf is None and is_parameter(out):
            self._make_leaf(out, info, call)

    def cut(self, call: Call, leaves: int) -> int:
        """Note a cut, and return its number: that of its line and op, if there is one already."""
        key = call.code, call.lasti, call.name
        number = self._cut_at.get(key)
        if number is None:
            number = self._cut_at[key] = len(self.cuts)
            recording = self.engine.module.is_grad_enabled()
            self.cuts.append(FlowCut(call.name, call.code, call.lasti, leaves, recording))
        else:
            self.cuts[number].leaves |= leaves
        return number

    def _left(self, call: Call, leaves: int, cuts: int, wanted: bool) -> None:
        """Remember numbers and arrays that leave the graph."""
        if not leaves:
            return
        cuts |= 1 << self.cut(call, leaves)
        if isinstance(call.out, np.ndarray):
            self.arrays[call.out] = leaves, cuts
            return
        for number in _numbers_in(call.out):
            if number not in NO_NEWS:
                before = self.numbers.get(number, (0, 0))
                self.numbers[number] = before[0] | leaves, before[1] | cuts
        keep_newest(self.numbers, MOST_NUMBERS)

    def _returned_to_graph(self, call: Call, leaves: int, cuts: int) -> tuple[int, int]:
        """Return the sets of what a tensor is made from, if it is made of numbers or arrays that left."""
        source = call.args[-1] if call.name in ("full", "new_full") and len(call.args) > 1 else None
        source = call.args[0] if source is None and call.args else source
        array = source
        while isinstance(array, np.ndarray):
            found = self.arrays.get(array)
            if found is not None:
                return leaves | found[0], cuts | found[1]
            array = array.base
        for number in _numbers_in(source):
            found = self.numbers.get(number)
            if found is not None:
                leaves, cuts = leaves | found[0], cuts | found[1]
        return leaves, cuts

    def compiled(self, name: str, out: Any) -> None:
        """Learn from the graph which leaves compiled code used."""
        for tensor in self.watch.tensors_in(out):
            if is_computed(tensor):
                info = self.of(tensor)
                for leaf in self.leaves_of([self.engine.node_of(tensor)[0]]):
                    known = self.of(leaf).leaf
                    known.recorded = True
                    info.leaves |= known.bit

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Note what a backward starts from."""
        self._root = self.of(tensor)

    def started(self, run: Run) -> None:
        """Note what the root was computed from; find the leaves that will be reached, where no event reports them."""
        self.backwards += 1
        if self.first_backward is None:
            self.first_backward = place_of(run)
        roots = [self._root] if self._root is not None else self._infos_of(root_nodes(run))
        self._root = None
        if self._stepped:
            self._stepped, self.recent_cuts = False, 0
        for info in roots:
            self.root_cuts |= info.cuts
            self.recent_cuts |= info.cuts
        if run.inputs is not None:
            for leaf in self.leaves_of(root_nodes(run)):
                self.of(leaf).leaf.reached = True

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Note that the next backward is of another step."""
        self._stepped = True

    def _infos_of(self, nodes: list) -> list[Info]:
        """Return what is known of the tensors that nodes made."""
        keys = {id(node) for node in nodes}
        found = []
        for info in list(self.infos.values()):
            tensor = info.reference()
            if tensor is not None and tensor.requires_grad and id(tensor.grad_fn) in keys:
                found.append(info)
        return found

    def accumulated(self, run: Run, tensor: Tensor, arrived: Tensor, before: Tensor | None) -> None:
        """Note that a leaf was reached."""
        if self.watch.is_plain(tensor):
            info = self.of(tensor)
            if info.leaf is not None:
                info.leaf.reached = True

    def name_of(self, tensor: Tensor) -> str:
        """Return what to call a leaf: a parameter's dotted name, the user's variable, or its shape."""
        leaf = self.leaf_of(tensor)
        name = self.names.get(tensor) or (leaf.name if leaf is not None else None)
        return name or name_in(sys._getframe(1), tensor) or f"a tensor of shape {tuple(tensor.shape)}"

    def entered(self, module: Module, path: str) -> None:
        """Learn the names of an outermost module's parameters, when it first runs."""
        if path or module in self.modules:
            return
        self.modules[module] = None
        alone = next(module.children(), None) is None  # a single layer: `head.weight`, and not just `weight`
        variable = name_in(sys._getframe(1), module)
        for name, parameter in module.named_parameters():
            if parameter not in self.names:
                self.names[parameter] = f"{variable}.{name}" if variable and (alone or name[0].isdigit()) else name

    def leaves_in(self, bits: int) -> list[Leaf]:
        """Return the leaves of a set."""
        return [leaf for leaf in self.leaves if bits & leaf.bit]

    def cuts_in(self, bits: int) -> list[FlowCut]:
        """Return the cuts of a set."""
        return [cut for number, cut in enumerate(self.cuts) if bits >> number & 1]

    def cuts_before(self, leaf: Leaf, within: int) -> list[FlowCut]:
        """Return the cuts of a set that lie between a leaf and what was computed from it."""
        return [cut for cut in self.cuts_in(within) if cut.leaves & leaf.bit]


def _numbers_in(value: Any) -> list[float]:
    """Return the floats in a number or in nested lists of them; none if they are too many."""
    if isinstance(value, float):
        return [value]
    if not isinstance(value, (list, tuple)):
        return []
    found = []
    for one in value:
        found += _numbers_in(one)
        if len(found) > MANY:
            return []
    return found

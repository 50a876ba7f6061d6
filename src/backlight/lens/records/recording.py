"""Records what an engine reports to a watcher (NOTE [Watching] in dispatch/observers.py)."""

import sys
import traceback
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from backlight.dispatch.observers import Call, Run, Watcher, line_at
from backlight.engine.provenance import PACKAGE, frame_of
from backlight.lens.answers.cutting import Cutting
from backlight.lens.engines import Engine
from backlight.lens.records.building import Builder, Options, Spot
from backlight.lens.records.names import Naming, finish, place_at
from backlight.lens.records.nodes import Node, Place, Write
from backlight.lens.records.record import Record
from backlight.lens.records.runs import RunRecording
from backlight.training.engine_types import AnyModule, AnyNode, AnyTensor, Gradients

DROPPING = {"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"}  # else `×`
STACK = 6  # of so many outer lines a node's `stack` consists at most


@dataclass(slots=True)
class Running:
    """A module whose forward runs.

    Args:
        root: the number of the outermost module, which its `path` begins in.
        of_library: its code is the engine's own.
        frame: the identity of the frame in which the engine calls it.
        outside: the user's lines outside of that frame, once they were needed.
        caller: the user's instruction that called it, if only library modules run inside it, and the lines outside of
            that: ops inside it are made by the same instruction.
    """

    module: Any
    outermost: Any
    root: int
    path: str
    kind: str
    of_library: bool
    frame: int
    outside: list[Spot] | None = None
    caller: tuple[CodeType, int, list[Spot]] | None = None


class Recording(Watcher):
    """A record of one engine that grows by events."""

    only_nodes = True

    def __init__(self, engine: Engine, options: Options, models: tuple = (), keep: int | None = None):
        self.engine = engine
        self.options = options
        self.models = models
        self.splits = keep is not None
        self.closed: deque[tuple[Builder, Naming]] = deque(maxlen=keep)
        self.modules: list[Running] = []  # those that run, the outermost first
        self.watches = True  # until it is closed
        self.begin()

    def begin(self) -> None:
        """Begin a new record."""
        self.builder = Builder(self.engine, self.options)
        self.record: Record = self.builder.record
        self.naming = Naming(self.engine, self.models)
        self.cutting = Cutting(self.engine, self.builder)
        self.runs: dict[int, RunRecording] = {}
        self.ended_order = 0  # of the last backward, if it was itself recorded
        self.latest: tuple = None, None  # the tensor that was noted last, weakly, and the number of its node
        self.settled = 0  # so many nodes belong to their modules
        self.over = False  # a backward ended, after which, when splitting, a new record begins

    def split(self, frame: FrameType | None) -> None:
        """Close the record and begin another."""
        modules = self.modules
        self.close(frame)
        self.closed.append((self.builder, self.naming))
        self.modules, self.watches = modules, True
        self.begin()
        for running in modules:
            running.root = self.naming.outermost(running.outermost)

    def called(self, call: Call) -> None:
        """Add the nodes that an op made, and what they gave."""
        if call.name == "register_hook":
            self._note_hooks(call.args[0])
            return
        returned = self.ended_order if call.name == "grad" else 0
        out = call.out
        tensors = [out] if self.engine.is_tensor(out) else self._tensors(out)
        without_graph = True
        for tensor in tensors:
            edge = self.engine.made_by(tensor)
            if edge is not None:
                without_graph = False
                self._note_output(edge, tensor, call, returned)
                if self.cutting.cut_off:
                    self.cutting.fed(call, self.builder.id_of(edge[0]))
            elif self.engine.requires_grad(tensor):
                without_graph = False
        if without_graph:
            self.cutting.called(call, tensors)
            self.only_nodes = not self.cutting.cut_off  # what is computed from them must be followed

    def _note_hooks(self, tensor: AnyTensor) -> None:
        edge = self.engine.made_by(tensor)
        known = None if edge is None else self.builder.id_of(edge[0])
        if known is not None:
            self.record.nodes[known].hooks = self.engine.hooks_of(tensor)

    def _tensors(self, out: object) -> list:
        if self.engine.is_tensor(out):
            return [out]
        if isinstance(out, dict):
            out = out.values()
        elif not isinstance(out, (tuple, list)):
            return []
        return [one for inner in out for one in self._tensors(inner)]

    def _note_output(self, edge: tuple, tensor: AnyTensor, call: Call, order: int) -> None:
        """Note what an op returned; `order` is above 0 for what a recorded backward did."""
        node, number = edge
        builder, added = self.builder, []
        known = builder.id_of(node)
        if known is None:
            if self.over:
                self.split(frame_of(call.code))
                builder = self.builder
            if builder.full:
                self.record.left_out += 1
                return
            added = builder.add_graph([node])
            self._place(added, call.code, call.lasti, order + 1)
            known = added[-1][0].id
            if call.name in DROPPING or (self.modules and self.modules[-1].kind == "Dropout"):
                added[-1][0].label = "dropout"
            if tensor is call.out and not (self.modules and self.modules[-1].of_library):
                self.naming.made(known, call.code, call.lasti)
        outputs = self.record.nodes[known].outputs
        if not added and number < len(outputs) and (self.options.values == "none" or outputs[number].nans is not None):
            return  # it was handed through
        builder.set_output(self.record.nodes[known], number, tensor)
        builder.learn_shapes(added)
        if number == 0:
            self.latest = weakref.ref(tensor), known

    def _place(self, added: list[tuple[Node, object]], code: CodeType, lasti: int, order: int) -> None:
        """Describe which line and which module made nodes."""
        if not added:
            return
        lines = (code, lasti), self._outer_lines(code, lasti)
        order = max(order, self._order()) if self.runs else order
        for made, _ in added:
            self.builder.spots[made.id] = lines
            made.order = order
        if self.modules:
            running = self.modules[-1]
            for made, _ in added:
                made.module_type = running.kind
                self.naming.ran_in[made.id] = running.root, running.path

    def _outer_lines(self, code: CodeType, lasti: int) -> list[Spot]:
        """Return the user's lines outside of the frame that runs `code`; those outside of a module are read once."""
        modules, calls_modules = self.modules, self.engine.calls_modules
        libraries = 0  # so many of the innermost modules are a library's
        for running in reversed(modules):
            if not running.of_library:
                break
            libraries += 1
            if running.caller is not None and running.caller[0] is code and running.caller[1] == lasti:
                return running.caller[2]
        frame, inside = sys._getframe(1), len(modules)
        while frame is not None and frame.f_code is not code:
            if frame.f_code is calls_modules and inside and id(frame) == modules[inside - 1].frame:
                inside -= 1
            frame = frame.f_back
        lines = [] if frame is None else self._lines_from(frame.f_back, inside)
        if frame is not None and len(modules) - libraries <= inside < len(modules):
            modules[inside].caller = code, lasti, lines
        return lines

    def _lines_from(self, frame: FrameType | None, inside: int) -> list[Spot]:
        """Return the user's lines from a frame outwards, around which so many modules run."""
        calls_modules, found = self.engine.calls_modules, []
        while frame is not None and len(found) < STACK:
            code = frame.f_code
            if code is calls_modules and inside and id(frame) == self.modules[inside - 1].frame:
                running = self.modules[inside - 1]
                if running.outside is None:
                    running.outside = self._lines_from(frame.f_back, inside - 1)
                return [*found, *running.outside][:STACK] if found else running.outside
            if _is_users(code.co_filename):
                found.append((code, frame.f_lasti))
            frame = frame.f_back
        return found

    def wrote(self, tensor: AnyTensor, name: str, code: CodeType, lasti: int) -> None:
        """Note an in-place write to memory that the record knows."""
        builder = self.builder
        number = builder.memories.get(self.engine.memory_of(tensor)[0])
        if number is None:
            return
        version = self.engine.version_of(tensor)
        builder.written[number] = max(builder.written[number], version)
        if len(self.record.writes) < self.options.limit:
            place = place_at((code, lasti))
            self.record.writes.append(Write(builder.made_in.get(number), name, version, place))

    def entered(self, module: AnyModule, path: str) -> None:
        """Note which module runs."""
        outermost = self.modules[-1].outermost if self.modules else module
        kind = type(module).__name__
        frame = id(frame_of(self.engine.calls_modules))
        root = self.naming.ran(outermost, path, kind)
        of_library = type(module).__module__.startswith(("torch.", "backlight."))
        self.modules.append(Running(module, outermost, root, path, kind, of_library, frame))

    def left(self, module: AnyModule, path: str, out: object) -> None:
        """Note that it does no longer."""
        ended = None
        while self.modules and (ended is None or ended.module is not module):
            ended = self.modules.pop()
        called_by_user = ended is not None and ended.of_library and not (self.modules and self.modules[-1].of_library)
        if self.options.names and called_by_user:
            # note where the user's call of a library's module put its result
            reference, known = self.latest
            if reference is None or reference() is not out:
                known = None
            if known is None and self.engine.is_tensor(out) and self.engine.requires_grad(out):
                known = self.builder.known_tensor(out)
            spots = self.builder.spots.get(known)
            if spots:
                self.naming.made(known, *spots[0])

    def started(self, run: Run) -> None:
        """Begin a backward; what it runs through is added if it is not known yet."""
        builder = self.builder
        self._add_reported([node for node, _ in run.roots if not builder.full])
        roots = [self._root(node) for node, _ in run.roots]
        if all(root is None for root in roots):
            return
        begun = self.runs[run.number] = RunRecording(builder, run, [root for root in roots if root is not None])
        begun.backward.place = Place(*line_at(run.code, run.lasti))
        self.record.backwards.append(begun.backward)
        if self.options.names:
            self.naming.read_frame(frame_of(run.code), builder)

    def _add_reported(self, roots: list) -> None:
        """Add a graph that was not seen being made; our engine knows its lines, PyTorch those of an earlier block."""
        added = self.builder.add_graph(roots)
        for made, node in added:
            line = self.engine.line_of(node)
            made.place = None if line is None else Place(*line)
        self.builder.learn_shapes(added)

    def _root(self, node: AnyNode) -> int | None:
        known = self.builder.id_of(node)
        if known is None and type(node).__name__ == "AccumulateGrad":
            known = self.builder.leaf(node.variable)
        if known is not None:
            self.record.nodes[known].root = True
        return known

    def ran(self, run: Run, node: AnyNode, grad_outputs: Gradients, grad_inputs: Gradients) -> None:
        """Note that a node fired; with create_graph, add the nodes that this made."""
        begun, known = self.runs.get(run.number), self.builder.id_of(node)
        if begun is not None and known is not None:
            begun.ran(known, grad_outputs, grad_inputs)
            if run.create_graph:
                self._note_second_order(self.record.nodes[known], run, grad_inputs)

    def _note_second_order(self, ran: Node, run: Run, grads: Gradients) -> None:
        """Add what a node's own derivative was made of; it belongs to the module of that node."""
        for grad in grads:
            edge = None if grad is None else self.engine.made_by(grad)
            if edge is None or self.builder.full:
                continue
            added = self.builder.add_graph([edge[0]])
            for made, _ in added:
                self.builder.spots[made.id] = self._spots_of(run)
                made.order = self._order()
            self.builder.learn_shapes(added[:-1])
            self.builder.set_output(self.record.nodes[self.builder.id_of(edge[0])], edge[1], grad)
        for made in self.record.nodes[self.settled :]:
            if made.order > 1:
                made.module_type = ran.module_type
                self.naming.like(made.id, ran.id)
        self.settled = len(self.record.nodes)

    def _spots_of(self, run: Run) -> tuple[Spot, list[Spot]]:
        return (run.code, run.lasti), self._outer_lines(run.code, run.lasti)

    def _order(self) -> int:
        """Return which forward this is: 1, or more inside a backward that is itself recorded."""
        if not self.runs:
            return 1
        return 1 + max((run.order for run in self.runs.values() if run.backward.create_graph), default=0)

    def _note_sum(self, begun: RunRecording, run: Run, grad: AnyTensor | None) -> None:
        """Add what a gradient that is itself recorded was summed with; it belongs to no module."""
        edge = None if grad is None else self.engine.made_by(grad)
        if edge is not None and not self.builder.full:
            for made, _ in self.builder.add_graph([edge[0]]):
                self.builder.spots[made.id] = self._spots_of(run)
                made.order = begun.order + 1
            self.settled = len(self.record.nodes)

    def accumulated(self, run: Run, tensor: AnyTensor, arrived: AnyTensor, before: AnyTensor | None) -> None:
        """Note what was added to a `.grad`."""
        begun, builder = self.runs.get(run.number), self.builder
        edge = self.engine.made_by(tensor)
        known = builder.known_tensor(tensor) if edge is None else builder.id_of(edge[0])
        if begun is not None and known is not None:
            begun.accumulated(known, before, tensor.grad)
            if run.create_graph:
                self._note_sum(begun, run, tensor.grad)

    def changed(
        self, run: Run, node: AnyNode, number: int, hook: Callable, before: AnyTensor | None, after: AnyTensor | None
    ) -> None:
        """Note what a hook changed."""
        begun, known = self.runs.get(run.number), self.builder.id_of(node)
        if begun is not None and known is not None:
            begun.changed(known, number, getattr(hook, "__name__", type(hook).__name__), before, after)

    def freed(self, run: Run, node: AnyNode) -> None:
        """Note that memory was dropped."""
        begun, known = self.runs.get(run.number), self.builder.id_of(node)
        if begun is not None and known is not None:
            begun.freed(known)

    def ended(self, run: Run) -> None:
        """Note how a backward ended."""
        begun = self.runs.pop(run.number, None)
        if begun is not None:
            begun.end(run.problem)
            self.ended_order = begun.order if run.create_graph else 0
            self.over = self.splits and run.accumulate_grad and not run.retain_graph

    def fill(self, frame: FrameType | None = None) -> Record:
        """Write into the record what is worked out late: lines, names, versions."""
        if self.watches:
            self._gather(frame)
        return finish(self.builder, self.naming)

    def records(self) -> list[Record]:
        """Return the records that were closed, and the one that grows."""
        return [*(finish(builder, naming) for builder, naming in self.closed), self.fill()]

    def _gather(self, frame: FrameType | None) -> None:
        """Ask the engine, and the program's variables, for all that is only known at the end."""
        if frame is not None and self.options.names:
            self.naming.read_frame(frame, self.builder, globals_too=True)
        self.naming.fill(self.record, self.builder)
        self.record.cuts = self.cutting.cuts()
        self.builder.fill()
        self.record.versions = {self.engine.name: self.engine.module.__version__}

    def close(self, frame: FrameType | None = None) -> None:
        """Collect what is left and release all objects of the engine; the record is finished when it is first read."""
        self._gather(frame)
        self._release_tensors()

    def _release_tensors(self) -> None:
        self.builder.release_tensors()
        self.naming.release_tensors()
        self.cutting.release_tensors()
        self.runs, self.modules, self.watches = {}, [], False

    def end(self, frame: FrameType | None) -> None:
        """Close the record when the block ends; a mistake made here leaves the program alone, too."""
        try:
            self.close(frame)
        except Exception as problem:
            self.give_up(problem)
            self._release_tensors()

    def give_up(self, problem: Exception) -> None:
        """Say in the record why it is incomplete."""
        last = traceback.extract_tb(problem.__traceback__)[-1]
        where = f"in {last.name} ({Path(last.filename).name}:{last.lineno})"
        self.record.problem = f"{type(problem).__name__}: {problem}, a mistake of the lens, not of the program, {where}"

    def capture(self, edges: list[tuple], outputs: list) -> None:
        """Add a graph that was not watched."""
        self._add_reported([node for node, _ in edges])
        for (node, number), tensor in zip(edges, outputs):
            root = self._root(node)
            if root is not None and not tensor.is_leaf:
                self.builder.set_output(self.record.nodes[root], number, tensor)
                self._note_hooks(tensor)


@cache
def _is_users(filename: str) -> bool:
    """Return whether a file is a program's: not ours, not a library's that calls it."""
    library = f"{sys.prefix}/" in filename or "/site-packages/" in filename or filename.startswith("<frozen")
    return not library and not filename.startswith(PACKAGE)

"""`lens.why(tensor)`: why its gradient is None, 0, NaN or huge, or what it is made of; `lens.path(loss, tensor)`."""

import dataclasses
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

from backlight.autograd.paths import UNRELATED
from backlight.autograd.paths import path as path_in_graph
from backlight.errors import InputError
from backlight.lens.answers.answer import Answer
from backlight.lens.answers.answering import answer_to, unreachable
from backlight.lens.answers.case import UNNAMED, Case, Loss, case_in, described, locate, named_node
from backlight.lens.engines import Engine, engine_of
from backlight.lens.native import NATIVE
from backlight.lens.records.building import Options
from backlight.lens.records.nodes import Place
from backlight.lens.records.record import Record
from backlight.lens.records.recording import Recording
from backlight.lens.records.summaries import dtype_name, summary_of
from backlight.lens.records.watching import Watch
from backlight.training.engine_types import AnyNode, AnyTensor


def why(
    tensor: AnyTensor | str | int, loss: AnyTensor | None = None, *, record: Watch | Record | None = None
) -> Answer:
    """Explain why the gradient of a tensor is None, 0, NaN or huge; if nothing is wrong with it, list its parts.

        with lens.watch():
            loss = criterion(model(images), labels)
            loss.backward()
            print(lens.why(model.encoder.weight))

    Inside `lens.watch()` the record is used: the op that made the tensor, where the graph was cut, the gradients that
    arrived at each node. Outside, the live tensors are read: `requires_grad`, the graph if `loss` is given, the values.

    Args:
        tensor: a tensor of backlight or of PyTorch.
        loss: the tensor on which backward is, or was, called.
        record: a `Watch` or a `Record` to read instead of the open watch; a record finds tensors only by name.
    """
    if record is not None and isinstance(tensor, (str, int)):
        return answer_to(case_in(record if isinstance(record, Record) else record.record, tensor))
    return answer_to(case_of(tensor, loss, record, sys._getframe(1)))


@dataclass(frozen=True)
class Path:
    """The path from a loss to a tensor; falsy if there is none.

    Args:
        found: whether the graph of the loss reaches the tensor.
        steps: its nodes from the loss, one line each.
        reason: why there is no path; "" if there is one.
    """

    found: bool
    steps: tuple[str, ...]
    reason: str = ""

    def __bool__(self) -> bool:
        return self.found

    def __str__(self) -> str:
        lines = [f"{'  ' * min(depth, 20)}{step}" for depth, step in enumerate(self.steps)]
        return "\n".join([*lines, self.reason] if self.reason else lines)


def path(loss: AnyTensor | None, tensor: AnyTensor) -> Path:
    """Return the path of nodes from a loss to a tensor, or where the graph ends and why.

    Args:
        loss, tensor: tensors of the same engine, backlight or PyTorch.
    """
    if engine_of(loss) is not engine_of(tensor):
        raise InputError(
            "loss and tensor must belong to the same engine, got one of each: pass two tensors of the same library"
        )
    case = case_of(tensor, loss, None, sys._getframe(1))
    if case.paths is not None and case.paths.path():
        return Path(True, tuple(described(node) for node in case.paths.path()))
    if case.again:
        return Path(True, case.again)
    return Path(False, (), unreachable(case))


Given = Watch | Record | None
SMALL = 64  # tensors of up to this many elements are read in full


def case_of(tensor: AnyTensor, loss: AnyTensor | None, record: Given, frame: FrameType) -> Case:
    """Gather what is known of a live tensor."""
    engine = engine_of(tensor)
    if not engine.is_tensor(tensor):
        raise InputError(
            f"tensor must be a tensor, got {type(tensor).__name__}: pass a parameter or the result of an op"
        )
    if loss is not None and not engine.is_tensor(loss):
        raise InputError(
            f"loss must be a tensor of the same engine, got {type(loss).__name__}: pass the tensor on which "
            f"backward() is called"
        )
    with engine.unobserved():
        return _gathered(engine, tensor, loss, record, frame)


def _gathered(engine: Engine, tensor: AnyTensor, loss: AnyTensor | None, record: Given, frame: FrameType) -> Case:
    case = _facts(engine, tensor, name_in(frame, tensor))
    if loss is not None:
        node = None if loss.is_leaf else engine.node_of(loss)[0]
        case.loss = Loss(name_in(frame, loss) or "the loss", loss.requires_grad, loss.is_leaf, _is_freed(engine, node))
    recording = _open_recording(engine, record)
    if recording is not None:
        _from_recording(case, recording, tensor, loss, frame)
    elif record is not None:
        record = record.record if isinstance(record, Watch) else record
        locate(case, record, named_node(record, case.name).id, None)
    elif case.loss is not None and case.loss.requires_grad:
        _captured(case, engine, tensor, loss, frame)
    if engine is NATIVE and loss is not None and loss.requires_grad and tensor.requires_grad:
        found = path_in_graph(loss, tensor)
        case.cut_text = "" if found.cut is None or found.cut.kind == UNRELATED else str(found.cut)
        if found.found and (case.paths is None or not case.paths.path()):
            case.again = tuple(map(str, found.steps))
        case.cuts = [] if found.unknown or case.again else case.cuts
    return case


def _facts(engine: Engine, tensor: AnyTensor, name: str | None) -> Case:
    grad = grad_of(tensor)
    edge = None if tensor.is_leaf else engine.node_of(tensor)
    line = None if edge is None else engine.line_of(edge[0])
    return Case(
        name=name or UNNAMED,
        requires_grad=tensor.requires_grad,
        is_leaf=tensor.is_leaf,
        retains_grad=bool(tensor.retains_grad),
        parameter=isinstance(tensor, engine.module.nn.Parameter),
        floats=tensor.is_floating_point(),
        dtype=dtype_name(tensor.dtype),
        grad=None if grad is None else summary_of(engine.array(grad), dtype_name(grad.dtype), SMALL),
        made="" if edge is None else edge[0].name().rpartition("::")[2],
        place=None if line is None else Place(*line),
    )


def grad_of(tensor: AnyTensor):
    """Return `.grad`, without the warning that reading it of a tensor that is no leaf gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tensor.grad


def name_in(frame: FrameType, tensor: AnyTensor) -> str | None:
    """Return what the caller calls a tensor: a variable, or a parameter of a module that a variable holds."""
    for space in (frame.f_locals, frame.f_globals):
        for name, value in list(space.items()):
            if value is tensor and not name.startswith("_"):
                return name
    return next((name for parameter, name in _parameters_in(frame) if parameter is tensor), None)


def _parameters_in(frame: FrameType) -> Iterator[tuple[object, str]]:
    """Yield the parameters of all modules that variables hold, with their names: `net.b.weight`."""
    for space in (frame.f_locals, frame.f_globals):
        for name, value in list(space.items()):
            if not name.startswith("_") and hasattr(value, "named_parameters") and not isinstance(value, type):
                yield from ((parameter, f"{name}.{path}") for path, parameter in value.named_parameters())


def _called_as_here(record: Record, leaves: list[tuple], frame: FrameType) -> Record:
    """Return a record whose parameters have the names that the caller gives them, as the question does: `net.b.weight`.

    A record leaves the variable of a model away where there is one model only.
    """
    names: dict[int, str] = {}
    for parameter, name in _parameters_in(frame):
        names.setdefault(id(parameter), name)
    nodes = list(record.nodes)
    for tensor, number in leaves:
        if nodes[number].parameter and id(tensor) in names:
            name = names[id(tensor)]
            nodes[number] = dataclasses.replace(nodes[number], name=name, label=name)
    return dataclasses.replace(record, nodes=nodes)


def _is_freed(engine: Engine, root: AnyNode | None) -> bool:
    """Return whether a backward has freed what the nodes nearest to a root saved."""
    stack, seen = [root] if root is not None else [], set()
    while stack and len(seen) < 1000:
        node = stack.pop()
        if node in seen or engine.is_leaf_node(node):
            continue
        seen.add(node)
        kept = engine.saved_by(node)
        if kept:
            return any(one.problem is not None and "second time" in one.problem for one in kept)
        stack.extend(inner for inner, _ in node.next_functions if inner is not None)
    return False


def _open_recording(engine: Engine, record: Given) -> Recording | None:
    """Return what is being recorded of an engine: by the watch that was given, or by the innermost one that watches."""
    watches = [record] if isinstance(record, Watch) else list(reversed(Watch.open)) if record is None else []
    for watch in watches:
        for one in watch.recordings:
            if one.engine is engine and one.watches:
                return one
    return None


def _from_recording(
    case: Case, recording: Recording, tensor: AnyTensor, loss: AnyTensor | None, frame: FrameType
) -> None:
    builder = recording.builder
    record = recording.fill(frame)
    known = builder.known_tensor(tensor) if tensor.requires_grad else None
    root = builder.known_tensor(loss) if loss is not None and loss.requires_grad else None
    case.cut = None if tensor.requires_grad else recording.cutting.that_made(tensor)
    case.cuts = recording.cutting.of_leaf(tensor)
    if case.loss is not None:
        case.loss.cut = recording.cutting.that_made(loss)
    record = _called_as_here(record, list(builder.leaves.values()), frame)
    locate(case, record, known, None if loss is None else [root] if root is not None else [])


def _captured(case: Case, engine: Engine, tensor: AnyTensor, loss: AnyTensor | None, frame: FrameType) -> None:
    recording = Recording(engine, Options(small=SMALL))
    recording.capture([engine.node_of(loss)], [loss])
    known = recording.builder.known_tensor(tensor) if tensor.requires_grad else None
    root = recording.builder.known_tensor(loss)
    leaves = list(recording.builder.leaves.values())
    recording.close(frame)
    locate(case, _called_as_here(recording.fill(), leaves, frame), known, [root])

"""The error of anomaly mode for a NaN or an infinity: its text and its fields, summaries of arrays, paths to nodes."""

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backlight.dispatch.anomaly_mode import anomaly
from backlight.dispatch.numerical_hazards import Cause, cause_of, op_name_of
from backlight.dispatch.observers import Line, line_at
from backlight.engine.node import Node, node_and_number
from backlight.engine.provenance import user_frame
from backlight.engine.tensor_state import TensorState, plain
from backlight.errors import AnomalyError
from backlight.kernels.reduction.summaries import INFINITE, NAN, nonfinite_kinds, numbers_in_short

SHOWN_OF_A_WAY = 12
# They only move numbers, or place given ones: NaN in their results was there before.
_PLACING = """
masked_fill where fill pad cat stack copy clone gather index_select index put take scatter masked_scatter index_fill
index_copy constant_pad_nd flip roll tile repeat repeat_interleave sort contiguous tril triu diag_embed masked_select
nonzero embedding select_scatter slice_scatter diagonal_scatter getitem
"""
PLACING = frozenset(_PLACING.split())
# They give no gradient to elements that they do not choose.
_CHOOSING = """
where masked_fill masked_scatter masked_select clamp clamp_min clamp_max maximum minimum max min amax amin index
index_fill relu threshold nan_to_num gather
"""
CHOOSING = frozenset(_CHOOSING.split())
HANDED = Cause(
    "it was passed to backward(), a hook made it, or infinite gradients of opposite sign were added",
    "check the hooks between here and the loss, and the argument of backward()",
)
OWN_FORMULA = Cause(
    "the backward of this autograd.Function computed it from finite numbers",
    "check its formula for a division by 0, a logarithm or a root of 0, or 0 · inf, and for values that ctx keeps as "
    "attributes",
)
NAMES = {NAN: "nan", INFINITE: "inf"}


# --- the values around an anomaly -------------------------------------------------------------------------------------

SHOWN = 6  # up to so many numbers are listed


@dataclass(frozen=True)
class Numbers:
    """An array in short.

    Args:
        least: of the finite numbers; None if there are none.
        most: likewise.
        first: the index of the first NaN, or of the first infinity if there is no NaN; None if all is finite.
        few: all numbers, if there are only few.
        origin: which node made it, on which line; "" if that is not known.
    """

    shape: tuple[int, ...]
    dtype: str
    least: float | None
    most: float | None
    nans: int
    infs: int
    first: tuple[int, ...] | None
    few: list | None
    origin: str = ""

    def __str__(self) -> str:
        """Return `float32 [7] from 0 to 4, 1 nan (the first at [2])`."""
        shown = f"{self.dtype} {list(self.shape)}"
        if self.few is not None:
            shown += f" {self.few}"
        elif self.least is not None:
            shown += f" from {self.least:.4g} to {self.most:.4g}"
        odd = [f"{count} {name}" for count, name in ((self.nans, "nan"), (self.infs, "inf")) if count]
        if odd:
            shown += f", {' and '.join(odd)}" + (f" (the first at {list(self.first)})" if self.shape else "")
        return shown + (f", from {self.origin}" if self.origin else "")


def numbers_of(data: np.ndarray | np.generic, origin: str = "") -> Numbers:
    """Summarise an array or a NumPy scalar."""
    array = np.asarray(data)
    dtype, shape = str(array.dtype), array.shape
    if array.dtype.kind not in "fV" or not array.size:
        few = array.tolist() if array.size <= SHOWN else None
        return Numbers(shape, dtype, None, None, 0, 0, None, few, origin)
    wide = np.ascontiguousarray(array if array.dtype.itemsize > 2 else array.astype(np.float32))
    least, most, *_, nans, infs, _ = numbers_in_short(wide)
    first = None
    if nans or infs:
        bad = (np.isnan(wide) if nans else np.isinf(wide)).reshape(shape)
        first = tuple(int(one) for one in np.argwhere(bad)[0])
    few = _short(wide.reshape(shape).tolist()) if array.size <= SHOWN else None
    finite = nans + infs < array.size
    return Numbers(shape, dtype, least if finite else None, most if finite else None, nans, infs, first, few, origin)


def _short(values):
    return [_short(one) for one in values] if isinstance(values, list) else float(f"{values:.4g}")


def saved_by(node: Node) -> Iterator[tuple[str, object, object]]:
    """Yield the saved values of a node: (name, data, the tensor if it is one)."""
    for slot in node.freed_slots:
        value = node.ctx._saved if hasattr(node, "ctx") else getattr(node, slot, None)  # neither unpacked nor refused
        name = "result" if slot == "out" else slot
        several = isinstance(value, (list, tuple))
        for number, one in enumerate(value if several else (value,)):
            if isinstance(one, (np.ndarray, np.generic)):
                tensor, data = None, one
            else:  # a custom Function keeps wrappers of tensors
                tensor = one if isinstance(one, TensorState) else getattr(one, "tensor", None)
                data = getattr(one, "data", None) if tensor is None else tensor._data
            if isinstance(data, (np.ndarray, np.generic)):
                yield f"{name}[{number}]" if several else name, data, tensor


def origin_of(tensor: TensorState | None) -> str:
    """Return the text of the node that made a tensor, with its line."""
    edge = None if tensor is None else tensor._edge
    if edge is None:
        return "no recorded op" if tensor is not None else ""
    node, _ = node_and_number(edge)
    return node_text(node) if isinstance(node, Node) else "a leaf"


def node_text(node: Node) -> str:
    """Return `SqrtBackward0 (train.py:7)`."""
    if node.code is None:
        return "a leaf"
    filename, number = node.line
    return f"{node.name()} ({Path(filename).name}:{number})"


def first_nonfinite_node(node: Node) -> Node:
    """Return the node whose forward first made the NaN or infinity that a node saved, as far as nodes saved values."""
    for _ in range(10_000):
        further = next(_nonfinite_inputs(node), None)
        if further is None:
            return node
        node = further
    return node


def _nonfinite_inputs(node: Node) -> Iterator[Node]:
    for _, data, tensor in saved_by(node):
        if tensor is not None and nonfinite_kinds(data) and tensor._edge is not None:
            before = node_and_number(tensor._edge)[0]
            if isinstance(before, Node) and before is not node:
                yield before
    for edge in node.edges:
        before = None if edge is None else node_and_number(edge)[0]
        if isinstance(before, Node) and any(
            name == "result" and nonfinite_kinds(data) for name, data, _ in saved_by(before)
        ):
            yield before


def path_to(node: Node, roots: Sequence) -> tuple[Node, ...]:
    """Return the nodes on the shortest path of gradients from the roots to a node."""
    starts = [node_and_number(edge)[0] for edge in roots]
    came = dict.fromkeys(starts)
    waiting = deque(starts)
    while waiting and node not in came:
        here = waiting.popleft()
        for edge in () if here.is_leaf_edge else here.edges:
            following = None if edge is None else node_and_number(edge)[0]
            if following is not None and following not in came:
                came[following] = here
                waiting.append(following)
    way, here = [], node if node in came else None
    while here is not None:
        way.append(here)
        here = came[here]
    return tuple(reversed(way))


def path_from(node: Node | None) -> tuple[Node, ...]:
    """Return a node and those before it, along first inputs, up to a leaf."""
    way = []
    while isinstance(node, Node) and len(way) < 10_000:
        way.append(node)
        node = next((node_and_number(edge)[0] for edge in node.edges if edge is not None), None)
    return tuple(way)


# --- the error --------------------------------------------------------------------------------------------------------


def nonfinite_node(roots: Sequence, node: Node, grad, grads: Sequence, first_infinite: Node | None) -> None:
    """Raise, since a node returned NaN or infinity.

    Args:
        roots: where the backward began.
        grad: what arrived at the node: an array or a tensor, or a list of them.
        grads: what it returned, one for each edge, likewise.
        first_infinite: the node that first made an infinity of finite gradients, if one did.

    Raises:
        AnomalyError: always.
    """
    arrived = [None if one is None else plain(one) for one in (grad if isinstance(grad, (list, tuple)) else (grad,))]
    returned = [None if one is None else plain(one) for one in grads]
    found = [0 if one is None else nonfinite_kinds(one) & anomaly.wanted for one in returned]
    number = next((place for place, odd in enumerate(found) if odd & NAN), None)
    number = next(place for place, odd in enumerate(found) if odd) if number is None else number
    kind = NAMES[NAN if found[number] & NAN else INFINITE]
    saved = list(saved_by(node))
    values: dict[str, Numbers] = {}
    for place, one in enumerate(arrived):
        if one is not None:
            values["grad_output" if len(arrived) == 1 else f"grad_output {place}"] = numbers_of(one)
    for name, data, tensor in saved:
        values[f"saved {name}"] = numbers_of(data, origin_of(tensor))
    for place, one in enumerate(returned):
        if one is not None:
            values[f"grad_input {place}"] = numbers_of(one)
    path = path_to(node, roots)
    nonfinite_before = any(one is not None and nonfinite_kinds(one) for one in arrived)
    inside = [f"saved {name}" for name, data, _ in saved if nonfinite_kinds(data)]
    cause, story = _why(node, arrived, returned[number], nonfinite_before, inside, path, first_infinite)
    facts = {
        "phase": "backward",
        "kind": kind,
        "op": op_name(node),
        "node": node,
        "number": number,
        "line": line_at(node.code, node.lasti),
        "path": path,
        "values": values,
        "made_here": not nonfinite_before and not inside,
    }
    head = f"Function '{node.name()}' returned {kind} values in its {number}th output.\n  It was made at {node.where}"
    raise _error(head, facts, cause, story, f"the loss: {_path_text(path)}")


def _why(node, arrived, returned, nonfinite_before, inside, path, first_infinite) -> tuple[Cause, str]:
    """Return the cause of a gradient that is not finite, and a sentence on where it began."""
    if inside:
        first = first_nonfinite_node(node)
        read, out = _inputs_and_result(first)
        nan = any(nonfinite_kinds(data) & NAN for _, data, _ in saved_by(first))
        return cause_of(op_name(first), read, "nan" if nan else "inf", out=out), (
            f"A saved tensor was already not finite: {' and '.join(inside)}; the first node that saved one is "
            f"{node_text(first)}. detect_anomaly(forward=True) stops at the op that makes it"
        )
    if nonfinite_before and first_infinite is not None:
        read, out = _inputs_and_result(first_infinite)
        return cause_of(op_name(first_infinite), read, "derivative", out=out), (
            f"The incoming gradient was already not finite: {node_text(first_infinite)} made the first such gradient"
        )
    if nonfinite_before:
        return HANDED, "The incoming gradient was already not finite, but no node had returned it"
    made_here = "The incoming gradient and the saved tensors are finite: this node made it"
    chooser = _discarding_node(arrived, returned, path)
    if chooser is None and hasattr(node, "ctx"):
        return OWN_FORMULA, made_here
    read, out = _inputs_and_result(node)
    cause = cause_of(op_name(node), read, "derivative", chooser is not None, out)
    if chooser is not None:
        cause = cause._replace(seen=f"{node_text(chooser)} discarded the value.")
    return cause, made_here


def _inputs_and_result(node: Node) -> tuple[list, np.ndarray | None]:
    """Return the inputs of a node's op in order, None if not saved, and its result."""
    known = {name: data for name, data, _ in saved_by(node)}
    op = getattr(node, "op", None)
    if op is None:
        return list(known.values()), None
    return _in_order(op, {param.name: known.get(param.name, getattr(node, param.name, None)) for param in op.params}), (
        known.get("result")
    )


def _in_order(op, inputs: dict) -> list:
    """Return an op's inputs in the order of the table of hazards: for a power the base first."""
    values = [plain(one) if isinstance(one, TensorState) else one for one in inputs.values()]
    return values[::-1] if op.name == "pow_of_number" else values


def _discarding_node(arrived: list, returned: np.ndarray, path: Sequence[Node]) -> Node | None:
    """Return the node that discarded a value whose gradient is not finite: the incoming gradient was 0 there."""
    grad = arrived[0] if len(arrived) == 1 else None
    if grad is None or grad.shape != returned.shape:
        return None
    bad = ~np.isfinite(returned)
    if np.any(grad[bad] != 0):
        return None
    return next((one for one in reversed(path[:-1]) if op_name(one) in CHOOSING), None)


def nonfinite_op(op, args: tuple, kwargs: dict, out) -> None:
    """Raise if what an op returned is an anomaly: a NaN, or an infinity made of finite numbers."""
    if op.view or op.name in PLACING or _in_backward():
        return
    parts = [one for one in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(one, TensorState)]
    found = [nonfinite_kinds(one._data) & anomaly.wanted_of_ops for one in parts]
    number = next((place for place, odd in enumerate(found) if odd & NAN), None)
    number = next((place for place, odd in enumerate(found) if odd), None) if number is None else number
    if number is None:
        return
    kind = NAN if found[number] & NAN else INFINITE
    inputs = {**dict(zip((param.name for param in op.params), args)), **kwargs}
    if any(isinstance(one, float) and not np.isfinite(one) for one in inputs.values()):
        return
    given = {name: one for name, one in inputs.items() if isinstance(one, TensorState)}
    odd = [name for name, one in given.items() if nonfinite_kinds(one._data)]
    if kind == INFINITE and odd:
        return
    _raise_of_op(op, inputs, given, odd, parts, number, NAMES[kind])


def _raise_of_op(op, inputs: dict, given: dict, odd: list[str], parts: list, number: int, kind: str) -> None:
    out = parts[number]
    node = None if out._edge is None else node_and_number(out._edge)[0]
    values = {name: numbers_of(one._data, origin_of(one)) for name, one in given.items()}
    values |= {f"output {place}": numbers_of(one._data) for place, one in enumerate(parts)}
    cause = cause_of(op_name(op), _in_order(op, inputs), kind, out=plain(out))
    frame = user_frame(sys._getframe(2))
    line = line_at(frame.f_code, frame.f_lasti)
    sources = [one for name, one in given.items() if name in odd] or list(given.values())
    path = path_from(next((node_and_number(one._edge)[0] for one in sources if one._edge is not None), None))
    story = f"This op made it: {' and '.join(given) or 'nothing'} {'is' if len(given) == 1 else 'are'} finite"
    if odd:
        nan = any(nonfinite_kinds(given[name]._data) & NAN for name in odd)
        story = f"{' and '.join(odd)} already contained {'nan' if nan else 'inf'}" + (
            ": from the program's data, or from code that was not checked" if nan else ""
        )
    facts = {
        "phase": "forward",
        "kind": kind,
        "op": op_name(op),
        "node": node if isinstance(node, Node) else None,
        "number": number,
        "line": line,
        "path": path,
        "values": values,
        "made_here": not odd,
    }
    head = f"Function '{op_name(op)}' returned {kind} values in its {number}th output, in the forward."
    head += f"\n  It was called at {_line_text(line)}"
    raise _error(head, facts, cause, story, f"its input: {_path_text(path)}" if path else "")


def _error(head: str, facts: dict, cause: Cause, story: str, way: str) -> AnomalyError:
    width = max(map(len, facts["values"]), default=0)
    lines = [head, *(f"  {name:{width}}  {numbers}" for name, numbers in facts["values"].items())]
    lines += [f"  {story}", f"  Likely cause: {cause.cause}" + (f" ({cause.seen.rstrip('.')})" if cause.seen else "")]
    lines += [f"  Try: {cause.cure}"]
    lines += [f"  From {way}"] if way else []
    return AnomalyError("\n".join(lines), {**facts, "cause": cause.cause, "cure": cause.cure, "seen": cause.seen})


def _in_backward() -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is anomaly.backward:
            return True
        frame = frame.f_back
    return False


def op_name(of) -> str:
    """Return the name of an op or of a node's op, as PyTorch names its node: `div` for true_divide."""
    op = getattr(of, "op", of)
    return op_name_of(op.name() if isinstance(op, Node) else op.node_name)


def _path_text(path: Sequence[Node]) -> str:
    shown = [node_text(one) if isinstance(one, Node) else "a leaf" for one in path]
    if len(shown) > SHOWN_OF_A_WAY:
        left_out = len(shown) - SHOWN_OF_A_WAY
        shown[SHOWN_OF_A_WAY // 2 : -SHOWN_OF_A_WAY // 2] = [f"… {left_out} more …"]
    return " → ".join(shown)


def _line_text(line: Line | None) -> str:
    if line is None:
        return "an unknown line"
    return f"{line.file}:{line.line}" + (f": {line.text}" if line.text else "")

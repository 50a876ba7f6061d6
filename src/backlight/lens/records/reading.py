"""Reads records back from JSON: strictly, against the schema that their classes are, and only if all fits together.

NOTE [A consistent record]
A node's id is its place in the list, and its edges point to nodes before it, so there is no cycle. What is named by a
number is there: nodes, outputs, backwards' roots. In a backward a node fires once and after all that use its result,
with a gradient for each output and one for each edge. A summary's counts, figures and values agree with its shape and
with each other. Whatever passes can be drawn, replayed, compared and queried.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from backlight.errors import InputError
from backlight.formats.strict_json import LARGEST, parse_json
from backlight.lens.records.fingerprints import BUCKETS, HASH_BYTES
from backlight.lens.records.nodes import LEAF, OP, Backward, Fingerprint, Node, Step, Summary
from backlight.lens.records.record import FORMAT, Record
from backlight.system.lazy_import import function_later

validated = function_later("backlight.formats.schema", "validated")


def read_record(source: Path | str) -> Record:
    """Read a record from a file, or from the JSON itself.

    Raises:
        InputError: there is no such file, this version cannot read it as a record, or its parts contradict each other;
            the message has the JSON path and the violated rule.
    """
    inline = isinstance(source, str) and source.lstrip().startswith("{")
    name = str(source)[:80]
    content = source if inline else _content_of(Path(source))
    try:
        plain = parse_json(content)
    except ValueError as problem:
        raise InputError(f"record must be JSON, got {name}: {problem}") from problem
    said = plain.pop("format", None) if isinstance(plain, dict) else None
    if type(said) is not int or said != FORMAT:
        raise InputError(f"record must be of format {FORMAT}, got {name}: write it with Record.save() of this version")
    record = validated(Record, plain, f"the record {name} is damaged")
    for node in record.nodes:
        node.options = {
            option: float(value) if isinstance(value, str) else value for option, value in node.options.items()
        }
    try:
        check_record(record)
    except InputError as problem:
        raise InputError(f"the record {name} is damaged: {problem}") from None
    return record


def _content_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as problem:  # a path with a NUL in it
        reason = getattr(problem, "strerror", None) or problem
        raise InputError(f"record must be a file that can be read, got {path}: {reason}") from problem


NOT_FINITE = {"nan", "inf", "-inf"}
MOST_DIMS = 64
LARGEST_FLOAT = sys.float_info.max
FIGURES = ("least", "mean", "most", "norm")
ROUNDING = 1e-3  # how far a figure may be from what other figures say: float16 and sums in float32 are that rough
TINY = 1e-15  # what squares of float32 lose


def check_record(record: Record) -> None:
    """Raise unless the parts of a record are consistent (see NOTE [A consistent record]).

    Raises:
        InputError: two parts contradict each other; the message has the JSON path.
    """
    for number, node in enumerate(record.nodes):
        _check_node(node, number, record.nodes)
    for number, backward in enumerate(record.backwards):
        _check_backward(backward, f"$.backwards[{number}]", record.nodes)
    count = len(record.nodes)
    for number, write in enumerate(record.writes):
        _require(write.node is None or write.node < count, f"$.writes[{number}].node", f"be below {count}", write.node)
    for number, cut in enumerate(record.cuts):
        _require(cut.node < count, f"$.cuts[{number}].node", f"be one of {count} nodes", cut.node)
        _require(cut.into is None or cut.into < count, f"$.cuts[{number}].into", f"be below {count}", cut.into)


def _require(holds: bool, where: str, rule: str, got: object) -> None:
    if not holds:
        raise InputError(f"{where} must {rule}, got {str(got)[:60]}")


def _check_node(node: Node, number: int, nodes: Sequence[Node]) -> None:
    here = f"$.nodes[{number}]"
    _require(node.id == number, f"{here}.id", f"be its place {number}", node.id)
    if node.kind == LEAF:
        _require(not node.edges, f"{here}.edges", "be empty for a leaf", f"{len(node.edges)} edges")
        _require(len(node.outputs) == 1, f"{here}.outputs", "be one for a leaf", len(node.outputs))
    for place, edge in enumerate(node.edges):
        if edge is not None:
            _require(edge.to < number, f"{here}.edges[{place}].to", f"be a node before {number}", edge.to)
            _require(edge.output < 2**16, f"{here}.edges[{place}].output", f"be below {2**16}", edge.output)
    for place, saved in enumerate(node.saved):
        there = f"{here}.saved[{place}]"
        _require(saved.of is None or saved.of <= number, f"{there}.of", f"be a node up to {number}", saved.of)
        _require(saved.written >= saved.version, f"{there}.written", f"be {saved.version} or more", saved.written)
    for where, summary in _summaries_of(node, here):
        check_summary(summary, where)


def _summaries_of(node: Node, here: str) -> Iterator[tuple[str, Summary]]:
    for place, output in enumerate(node.outputs):
        yield f"{here}.outputs[{place}]", output
    for place, saved in enumerate(node.saved):
        yield f"{here}.saved[{place}].summary", saved.summary
    if node.grad is not None:
        yield f"{here}.grad", node.grad
    if node.updated is not None:
        yield f"{here}.updated", node.updated


def _check_backward(backward: Backward, here: str, nodes: Sequence[Node]) -> None:
    count = len(nodes)
    for place, root in enumerate(backward.roots):
        _require(root < count, f"{here}.roots[{place}]", f"be one of {count} nodes", root)
    firing = {}
    for place, step in enumerate(backward.steps):
        where = f"{here}.steps[{place}]"
        _require(step.node < count, f"{where}.node", f"be one of {count} nodes", step.node)
        _require(step.node not in firing, f"{where}.node", "fire once in a backward", f"{step.node} again")
        firing[step.node] = place
    for place, step in enumerate(backward.steps):
        for number in nodes[step.node].inputs:
            late = firing.get(number, count) <= place
            _require(not late, f"{here}.steps[{place}].node", f"fire before {number}, which it reads", step.node)
        _check_step(step, f"{here}.steps[{place}]", nodes[step.node], stopped=backward.problem is not None)


def _check_step(step: Step, here: str, node: Node, *, stopped: bool) -> None:
    given, known, outgoing = len(step.incoming), len(node.outputs), len(step.outgoing)
    _require(given >= known, f"{here}.incoming", f"be one for each of {known} outputs", given)
    complete = outgoing == len(node.edges) or (outgoing == 0 and (stopped or node.kind != OP))
    _require(complete, f"{here}.outgoing", f"be one for each of {len(node.edges)} edges", outgoing)
    for place, (gradient, output) in enumerate(zip(step.incoming, node.outputs)):
        if gradient is not None:
            fits = gradient.shape == output.shape
            _require(fits, f"{here}.incoming[{place}].shape", f"be the output's {output.shape}", gradient.shape)
    before, after = step.grad_before, step.grad_after
    _require(after is not None or before is None, f"{here}.grad_after", "be there where grad_before is", None)
    if before is not None and after is not None:
        _require(before.shape == after.shape, f"{here}.grad_before.shape", f"be {after.shape}", before.shape)
    if after is not None and step.incoming and step.incoming[0] is not None:
        first = step.incoming[0].shape
        _require(after.shape == first, f"{here}.grad_after.shape", f"be {first}", after.shape)
    for place, change in enumerate(step.changes):
        _require(change.output < given, f"{here}.changes[{place}].output", f"be below {given}", change.output)
    for where, summary in _summaries_in(step, here):
        check_summary(summary, where)


def _summaries_in(step: Step, here: str) -> Iterator[tuple[str, Summary]]:
    found = [(f"incoming[{place}]", one) for place, one in enumerate(step.incoming)]
    found += [(f"outgoing[{place}]", one) for place, one in enumerate(step.outgoing)]
    found += [("grad_before", step.grad_before), ("grad_after", step.grad_after)]
    for place, change in enumerate(step.changes):
        found += [(f"changes[{place}].before", change.before), (f"changes[{place}].after", change.after)]
    return ((f"{here}.{name}", one) for name, one in found if one is not None)


def check_summary(summary: Summary, here: str) -> None:
    """Raise unless a summary's counts, figures and values agree with its shape and with each other."""
    size = summary.size
    small = len(summary.shape) <= MOST_DIMS and size <= LARGEST
    _require(small, f"{here}.shape", f"have at most {MOST_DIMS} dims and {LARGEST} elements", summary.shape)
    counts = [summary.nans, summary.infs, summary.zeros]
    known = [count for count in counts if count is not None]
    _require(len(known) in (0, 3), f"{here}.zeros", "be known where nans and infs are", counts)
    _require(sum(known) <= size, f"{here}.nans", f"be, with infs and zeros, at most {size}", known)
    _check_figures(summary, here, size)
    if summary.fingerprint is not None:
        _check_fingerprint(summary.fingerprint, f"{here}.fingerprint")
    if summary.values is not None:
        elements = _elements(summary, here)
        if known:
            _check_values(summary, here, elements)


def _check_fingerprint(fingerprint: Fingerprint, here: str) -> None:
    digits = set(fingerprint.hash) <= set("0123456789abcdef") and len(fingerprint.hash) == 2 * HASH_BYTES
    _require(digits, f"{here}.hash", f"be {2 * HASH_BYTES} hexadecimal digits", fingerprint.hash)
    count = len(fingerprint.sketch)
    _require(count in (0, BUCKETS), f"{here}.sketch", f"be of {BUCKETS} numbers, or empty", count)


def _check_figures(summary: Summary, here: str, size: int) -> None:
    """Check least ≤ mean ≤ most, and the norm: from the largest element to √size times that."""
    least, mean, most, norm = figures = [getattr(summary, name) for name in FIGURES]
    there = [name for name, figure in zip(FIGURES, figures) if figure is not None]
    _require(len(there) in (0, 1, 4), here, "state least, mean, most and norm, or none", f"only {', '.join(there)}")
    if len(there) != 4:
        return
    _require(size > 0, f"{here}.least", "be null where there is no element", least)
    largest = max(abs(least), abs(most))
    slack = ROUNDING * largest + TINY
    _require(least - slack <= mean <= most + slack, f"{here}.mean", f"be from {least} to {most}", mean)
    _require(least <= most, f"{here}.least", f"be at most {most}", least)
    high = largest * (1 + ROUNDING) * math.sqrt(size) + TINY
    _require(largest * (1 - ROUNDING) - TINY <= norm <= high, f"{here}.norm", f"be from {largest} to {high}", norm)


def _elements(summary: Summary, here: str) -> list:
    """Return the values that are kept, in one list; raise unless they have the shape and are of the dtype."""
    level = [summary.values]
    for dim, size in enumerate(summary.shape):
        complete = all(type(one) is list and len(one) == size for one in level)
        _require(complete, f"{here}.values", f"have the shape {summary.shape}", f"another in dim {dim}")
        level = [inner for one in level for inner in one]
    is_element = _test_of(summary.dtype)
    for one in level:
        _require(is_element(one), f"{here}.values", f"be of {summary.dtype}", repr(one))
    return level


def _test_of(dtype: str) -> Callable[[object], bool]:
    if dtype == "bool":
        return lambda one: type(one) is bool
    if dtype.startswith(("int", "uint")):
        return lambda one: type(one) is int and -LARGEST - 1 <= one <= 2 * LARGEST + 1
    if dtype.startswith("complex"):
        return _is_complex
    return _is_float


def _is_float(one: object) -> bool:
    return type(one) is float or (one in NOT_FINITE if type(one) is str else type(one) is int and abs(one) <= 2**1023)


def _is_complex(one: object) -> bool:
    try:
        complex(one)
    except (TypeError, ValueError):
        return False
    return type(one) is str


def _check_values(summary: Summary, here: str, elements: Sequence) -> None:
    """Check counts and figures against the values themselves."""
    if summary.dtype.startswith("complex") or not elements:
        return
    numbers = [float(one) for one in elements]
    finite = [one for one in numbers if math.isfinite(one)]
    nans = sum(map(math.isnan, numbers))
    counted = {"nans": nans, "infs": len(numbers) - len(finite) - nans, "zeros": numbers.count(0.0)}
    for name, count in counted.items():
        said = getattr(summary, name)
        _require(said == count, f"{here}.{name}", f"be {count}, as its values say", said)
    if not finite or summary.least is None:
        return
    least, most = min(finite), max(finite)
    largest = max(abs(least), abs(most))
    scaled = [one / largest for one in finite] if largest else finite
    mean, norm = sum(scaled) / len(scaled) * largest, math.hypot(*scaled) * largest
    for name, expected in zip(FIGURES, (least, mean, most, norm)):
        near = abs(getattr(summary, name) - min(expected, LARGEST_FLOAT)) <= ROUNDING * largest + TINY
        _require(near, f"{here}.{name}", f"be {expected}, as its values say", getattr(summary, name))

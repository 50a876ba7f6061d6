"""Where the values of two runs diverge, in words: one sentence, a table of modules, JSON, HTML."""

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass

from backlight.lens.differences.comparing import PRODUCED, Change
from backlight.lens.differences.difftext import module_of
from backlight.lens.differences.divergence import BACKWARD, FORWARD, STEP, Divergence, Point
from backlight.lens.records.nodes import LEAF, Node

MOST_ROWS = 40
TELLING = ("options", "constant", "hooks", "line")  # changes of a node that can be why its values are off
RANDOM = {"dropout", "rand", "randn", "bernoulli", "multinomial", "normal", "randint", "randperm"}
WORDS = {FORWARD: "forward", BACKWARD: "gradient", STEP: "after the step"}


@dataclass
class Row:
    """A module, and the largest deviation in it of each phase, None where nothing was compared."""

    module: str
    kind: str
    worst: dict[str, Point]
    jumps: int
    parts: bool = False  # whether the runs diverge here


def sentences_of(found) -> Iterator[str]:
    """Yield the verdict: whether and where the values diverge, and what is known about the reason.

    Args:
        found: a `Diff`.
    """
    values: Divergence = found.values
    if values.status == "unknown":
        yield f"the values cannot be compared: {_why_unknown(found)}"
        return
    compared = f"{len({point.after for point in values.points}):,} nodes compared"
    if values.status == "same":
        yield f"the two runs are the same bit for bit: {compared}"
        return
    first = values.first
    if values.status == "close":
        worst = _worst(values)
        most = f"at most {_amount(worst)} at {place_of(found, worst)}"
        yield f"the two runs agree within {_tolerance(values)}: {compared}, {most}"
        if first is not None:
            yield f"yet this is more than rounding: {_parting(found, first)}"
    elif first.jump:
        yield f"the two runs diverge at {_parting(found, first)}"
    else:
        beyond = f"the first beyond {_tolerance(values)} is {_parting(found, first)}"
        yield f"the two runs drift apart, by rounding that grows: {beyond}"
    if first is not None:
        yield from _reasons(found, first)
        yield from _before(found, first)


def _parting(found, point: Point) -> str:
    return f"{place_of(found, point)}, {_phase(point)}by {_amount(point)}"


def _phase(point: Point) -> str:
    return {FORWARD: "", BACKWARD: "in the backward, ", STEP: "in the optimizer's step, "}[point.phase]


def place_of(found, point: Point) -> str:
    """Return where a point is: module, op, line."""
    node = found.after.nodes[point.after if point.by is None else point.by]
    module, line = module_of(node), f" ({node.place.where})" if node.place else ""
    if node.kind == LEAF:
        return f"{'parameter' if node.parameter else 'leaf'} {node.name or node.label}"
    name = f"{node.name} = {node.label}" if node.name and node.name != node.label else node.label or node.type
    return f"{module}: {name}{line}" if module else f"{name}{line}"


def _amount(point: Point) -> str:
    off = point.deviation
    if math.isinf(off.relative):
        return "something that is not comparable: another size, NaN or infinity, or nothing on one side"
    largest = "" if off.largest is None else f", largest {off.largest:.2g}"
    return f"{off.relative:.1e} of its size ({_units(off.units)} eps; absolute {off.absolute:.2g}{largest})"


def _units(units: float) -> str:
    return f"{units:.1f}" if units < 1000 else f"{units:.1e}"


def _tolerance(values: Divergence) -> str:
    return "the tolerance of the dtype" if values.tolerance is None else f"a tolerance of {values.tolerance:g}"


def _worst(values: Divergence) -> Point:
    worst = [point for point in map(values.worst, (FORWARD, BACKWARD, STEP)) if point is not None]
    return max(worst or values.points, key=lambda point: point.deviation.relative)


def _why_unknown(found) -> str:
    for side, record in (("the first", found.before), ("the second", found.after)):
        if not record.nodes:
            return f"{side} run computed nothing that requires grad"
        if all(output.nans is None for node in record.nodes for output in node.outputs):
            return f"{side} record holds shapes only: record it with values='hash'"
    return "no op of one is in the other"


def _reasons(found, point: Point) -> Iterator[str]:
    """Yield what is known about why a point is off."""
    node = found.after.nodes[point.after]
    was = found.before.nodes[point.before]
    ids = {point.after, point.by}
    for one in found.changed:
        if one.after in ids:
            kept = (change for change in one.changes if change.what in TELLING and not _produced(change))
            yield from (f"its {change.what}: {change.before} → {change.after}" for change in kept)
    if point.deviation.reordered:
        yield "the same numbers in another order: transposed, or permuted"
    between = _unmatched_inputs(found, point)
    if between:
        yield f"between it and its inputs: {', '.join(between)}"
    derived = None if point.by is None else found.after.nodes[point.by]
    yield from _reasons_of_kind(point, was, node, derived)


def _produced(change: Change) -> bool:
    """Return whether all constants that changed are what the op itself computed."""
    return change.what == "constant" and change.before.startswith(PRODUCED)


def _reasons_of_kind(point: Point, was: Node, node: Node, derived: Node | None) -> Iterator[str]:
    if node.kind == LEAF and point.phase == FORWARD:
        updated, start = was.updated, node.outputs[0]
        prints = [one and one.fingerprint and one.fingerprint.hash for one in (updated, start)]
        if prints[0] is not None and prints[0] == prints[1]:
            yield "the first run left it so, by a step of its optimizer: make the model inside of what is compared"
        else:
            yield "it begins with other values"
    if any(one is not None and one.label in RANDOM for one in (node, derived)):
        yield "random numbers were drawn: with one seed for both runs they are the same"


def _unmatched_inputs(found, point: Point) -> list[str]:
    """Return the nodes that only one run has, right before a point, or in the backward right after it."""
    texts = []
    sides = (
        (found.before, point.before, set(found.gone), "only before"),
        (found.after, point.after, set(found.added), "only after"),
    )
    for record, start, unmatched, side in sides:
        waiting, seen = list(record.nodes[start].inputs) if point.phase == FORWARD else [], set()
        while waiting:
            number = waiting.pop()
            if number in unmatched and number not in seen:
                seen.add(number)
                waiting += record.nodes[number].inputs
        texts += [f"{_short(record.nodes[number])} {side}" for number in sorted(seen)][:4]
    return texts


def _short(node: Node) -> str:
    line = f" ({node.place.where})" if node.place else ""
    return f"{node.name if node.kind == LEAF and node.name else node.label or node.type}{line}"


def _before(found, first: Point) -> Iterator[str]:
    """Yield how far the runs agree before they diverge, and whether they diverge elsewhere, too."""
    values: Divergence = found.values
    earlier = values.points[: values.points.index(first)]
    if earlier:
        most = max(earlier, key=lambda point: point.deviation.relative)
        exact = all(point.deviation.exact for point in earlier)
        amount = "bit for bit" if exact else f"up to {_units(most.deviation.units)} eps"
        yield f"what was computed before it agrees {amount}: {len(earlier):,} comparisons"
    others = [point for point in values.jumps if point is not first and point.phase == first.phase]
    if others:
        listed = ", ".join(dict.fromkeys(place_of(found, point) for point in others[:4]))
        yield f"{len(others):,} more places where they diverge independently: {listed}{' …' if len(others) > 4 else ''}"


def rows_of(found) -> list[Row]:
    """Return the modules in the order of the forward, with their largest deviations."""
    rows: dict[str, Row] = {}
    nodes = found.after.nodes
    for point in sorted(found.values.points, key=lambda point: point.after):
        module = module_of(nodes[point.after])
        kind = found.after.modules.get(module, nodes[point.after].module_type)
        row = rows.setdefault(module, Row(module, kind, {}, 0))
        known = row.worst.get(point.phase)
        if known is None or (not point.cancelled, point.deviation.relative) > (
            not known.cancelled,
            known.deviation.relative,
        ):
            row.worst[point.phase] = point
        row.jumps += point.jump
    first = found.values.first
    if first is not None:
        rows[module_of(nodes[first.after if first.by is None else first.by])].parts = True
    return list(rows.values())


def table_of(found) -> Iterator[str]:
    """Yield the table of modules as lines: relative deviations of each phase, in eps, and where something jumps."""
    rows = rows_of(found)
    if not rows or found.values.status == "same":
        return
    phases = [phase for phase in (FORWARD, BACKWARD, STEP) if any(phase in row.worst for row in rows)]
    width = max(len(_title(row)) for row in rows[:MOST_ROWS])
    yield f"{'module':{width}}" + "".join(f"  {WORDS[phase]:>20}" for phase in phases)
    for row in rows[:MOST_ROWS]:
        cells = "".join(f"  {_cell(row.worst.get(phase)):>20}" for phase in phases)
        yield f"{_title(row):{width}}{cells}{_mark(row)}"
    if len(rows) > MOST_ROWS:
        yield f"and {len(rows) - MOST_ROWS} more modules"


def _title(row: Row) -> str:
    return f"{row.module} {row.kind}".strip() or "outside of modules"


def _cell(point: Point | None) -> str:
    if point is None:
        return "–"
    if point.cancelled:
        return "cancels"
    if point.deviation.relative == 0:
        return "same" if point.deviation.exact else "0"
    return f"{point.deviation.relative:.1e} ({_units(point.deviation.units)} eps)"


def _mark(row: Row) -> str:
    return "  ← parts here" if row.parts else "  ← jump" if row.jumps else ""


def as_html(found) -> str:
    """Return the verdict and the table for a notebook."""
    lead = "".join(f"<div>{html.escape(line)}</div>" for line in sentences_of(found))
    table = "\n".join(html.escape(line) for line in table_of(found))
    return f"{lead}<pre>{table}</pre>" if table else lead


def as_plain(found) -> dict:
    """Return the verdict as JSON takes it."""
    values: Divergence = found.values
    return {
        "status": values.status,
        "tolerance": values.tolerance,
        "verdict": list(sentences_of(found)),
        "first": None if values.first is None else _point(found, values.first),
        "jumps": [_point(found, point) for point in values.jumps],
        "modules": [_row(row) for row in rows_of(found)],
    }


def _point(found, point: Point) -> dict:
    node = found.after.nodes[point.after if point.by is None else point.by]
    return {
        "phase": point.phase,
        "before": point.before,
        "after": point.after,
        "op": node.label or node.type,
        "name": node.name,
        "module": module_of(node),
        "line": node.place.where if node.place else None,
        **_numbers(point),
    }


def _row(row: Row) -> dict:
    worst = {phase: _numbers(point) for phase, point in row.worst.items()}
    return {"module": row.module, "kind": row.kind, "jumps": row.jumps, "parts": row.parts, **worst}


def _numbers(point: Point) -> dict:
    off = point.deviation
    known = {"relative": off.relative, "absolute": off.absolute, "eps": off.eps, "largest": off.largest}
    finite = {name: value if value is None or math.isfinite(value) else str(value) for name, value in known.items()}
    return {**finite, "exact": off.exact, "cancelled": point.cancelled}

"""Finishes a record when it is first read: work that needs nothing from the engine is postponed until then."""

from types import CodeType

from backlight.dispatch.observers import line_at
from backlight.lens.records.building import Builder, Spot
from backlight.lens.records.names import Naming
from backlight.lens.records.nodes import LEAF, Node, Place
from backlight.lens.records.record import Record


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
    _learn_outputs(nodes)
    return builder.record


def _learn_outputs(nodes: list[Node]) -> None:
    """Note outputs that were not seen but are kept by some node."""
    for made in nodes:
        for saved in made.saved:
            if saved.of is not None and saved.version == saved.written:
                _learn_output(nodes[saved.of], saved.summary)


def _learn_output(made: Node, summary) -> None:
    if made.kind != LEAF and len(made.outputs) <= 1:
        known = made.outputs[0] if made.outputs else None
        if known is None or (known.shape == summary.shape and known.nans is None):
            made.outputs[:] = [summary]


_places: dict[tuple[int, int], tuple[CodeType, Place]] = {}  # by (id of code, instruction): to hash code is slow


def place_at(spot: Spot) -> Place:
    """Return an instruction's line."""
    known = _places.get((id(spot[0]), spot[1]))
    if known is None:
        known = _places[id(spot[0]), spot[1]] = spot[0], Place(*line_at(*spot))
    return known[1]

"""Results that an engine does not expose, computed from what is recorded of their inputs.

NOTE [Worked out]
What PyTorch's own backward computes on its way, in a backward that is recorded itself, no watcher sees: of x³ the
derivative is 3 · x², and only the product is passed on. Where a result is one of a few plain ops and its inputs are
known, small ones, the replay works it out, and says so.
"""

from collections.abc import Mapping

import numpy as np

from backlight.lens.records.nodes import Node, Summary
from backlight.lens.replays.arithmetic import Arithmetic
from backlight.lens.replays.filled import Given
from backlight.lens.replays.formulas import Prose, read
from backlight.lens.replays.wording import is_written_out

PLAIN = {
    "Add": "input + alpha · other",
    "Cos": "cos(input)",
    "Div": "input / other",
    "Exp": "exp(input)",
    "Mul": "input · other",
    "Neg": "−input",
    "Pow": "input^exponent",
    "Reciprocal": "1 / input",
    "Sin": "sin(input)",
    "Sqrt": "√input",
    "Sub": "input − alpha · other",
    "Tanh": "tanh(input)",
}
EXPRESSIONS = {stem: read(text).expression for stem, text in PLAIN.items()}
FLOATS = ("float32", "float64")


def is_unknown(node: Node) -> bool:
    """Return whether nothing but the shape was recorded of a node's one result."""
    return len(node.outputs) == 1 and node.outputs[0].values is None and node.outputs[0].nans is None


def worked_out(node: Node, stem: str, values: Mapping[str, Given]) -> Summary | None:
    """Return what a node computed (see NOTE [Worked out]); None where that is unknown."""
    shown = node.outputs[0]
    if stem not in EXPRESSIONS or shown.dtype not in FLOATS:
        return None
    known = {name: given.array for name, given in values.items() if given.array is not None}
    try:
        found = np.asarray(Arithmetic(known).of(EXPRESSIONS[stem]), shown.dtype)
    except Prose:
        return None
    if found.shape != tuple(shown.shape) or not np.isfinite(found).all():
        return None
    made = Summary(shown.shape, shown.dtype, values=found.tolist())
    return made if is_written_out(made) else None

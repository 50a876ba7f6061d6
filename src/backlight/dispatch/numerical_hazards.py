"""Why ops give NaN and infinity, and what to do, for anomaly mode, the doctor and the answers.

The table is `HAZARDS` in `dispatch/hazard_table.py` (NOTE [Numerical hazards]).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from backlight.dispatch.hazard_table import HAZARDS, SLOPE, VALUE, Condition
from backlight.kernels.state_blocks import silent_floats


class Cause(NamedTuple):
    """The cause, the cure, and a sentence of evidence ("" if there is none)."""

    cause: str
    cure: str
    seen: str = ""


WHERE = Cause(
    "where() chooses the value away, not its derivative: the slope of the branch not taken is infinite, and 0 · inf "
    "is NaN",
    "make the input safe before the op: safe = torch.where(x > 0, x, 1.0), and torch.log(safe) in the where() after it",
)
NAN_WENT_IN = Cause("a NaN went in: what comes after it is NaN, too", "look where it comes from: torch.isnan(x).any()")
MET = Cause(
    "an infinity met 0 or another infinity: 0 · inf, inf - inf and inf / inf are NaN",
    "look where the infinity comes from, and keep the numbers finite there",
)
OVERFLOW = Cause(
    "numbers became too large for their dtype",
    "a smaller learning rate, clipped gradients or normalised inputs keep them finite; bfloat16 has float32's range, "
    "float16 ends at 65504",
)
OTHERWISE = Cause(
    "numbers became too large for their dtype, or an infinity met 0 or another infinity",
    "look at the values that went in: a smaller learning rate, clipped gradients or normalised inputs keep them finite",
)


def cause_of(name: str, values: Sequence, kind: str, chosen_away: bool = False, out: np.ndarray | None = None) -> Cause:
    """Return why an op made NaN or infinity.

    Args:
        name: the forward op's.
        values: the inputs: arrays, numbers, None for unknown ones.
        kind: "nan" or "inf" (in any case) for values, "slope" for a gradient.
        chosen_away: of a gradient: the incoming one was 0 there, since a later op discarded the value.
        out: the op's result, if known.
    """
    if kind == SLOPE and chosen_away:
        return WHERE
    known = {"x": _array(values, 0), "y": _array(values, 1), "out": None if out is None else np.asarray(out)}
    possible = None
    for row in HAZARDS:
        if name not in row.when.ops or row.when.of not in ("", SLOPE if kind == SLOPE else VALUE):
            continue
        if not row.when.conditions:
            return Cause(row.cause, row.cure)
        looked = [_seen(condition, known) for condition in row.when.conditions]
        seen = next(filter(None, looked), None)
        if seen is not None:
            return Cause(row.cause, row.cure, seen.strip())
        if possible is None and None in looked:
            possible = Cause(row.cause, row.cure)
    return possible or _in_general([one for one in values if _array([one], 0) is not None], kind)


def hazard_of(name: str, slope: bool) -> Cause:
    """Return the likeliest cause for an op of which no numbers are known."""
    return cause_of(name, (), SLOPE if slope else "nan")


def _array(values: Sequence, place: int) -> np.ndarray | None:
    if place >= len(values) or not isinstance(values[place], (np.ndarray, np.generic, int, float)):
        return None
    return np.asarray(values[place])


def _seen(condition: Condition, known: dict) -> str | None:
    """Return `sqrt of 0 at [3] (2 of 7 values are such).`, "" if it is not so, None if it cannot be seen."""
    code = condition.holds.__code__
    values = [known[one] for one in code.co_varnames[: code.co_argcount]]
    if any(one is None for one in values):
        return None
    try:
        with silent_floats():
            bad = np.asarray(condition.holds(*values))
    except ValueError:  # the shapes of a product's factors do not broadcast
        return None
    number = int(np.count_nonzero(bad))
    if not number:
        return ""
    value = values[0] if values[0].shape == bad.shape else np.broadcast_to(values[0], bad.shape)
    if not value.size or not condition.words:
        return " "
    if value.ndim == 0:
        return f"{condition.words} {float(value):g}."
    place = tuple(int(one) for one in np.argwhere(bad)[0])
    such = f"{number} of {value.size} values {'is' if number == 1 else 'are'} such"
    return f"{condition.words} {float(value[place]):g} at {list(place)} ({such})."


def _in_general(values: list, kind: str) -> Cause:
    """Return what may be said of any op."""
    if kind == SLOPE or not values:
        return OTHERWISE
    if any(np.isnan(one).any() for one in values):
        return NAN_WENT_IN
    if any(np.isinf(one).any() for one in values):
        return MET._replace(seen="an infinity went in.")
    return OVERFLOW


def op_name_of(node: str) -> str:
    """Return the op of a node in lower case: `max_pool2d_with_indices` for MaxPool2DWithIndicesBackward0."""
    name, _, _ = node.rpartition("::")[2].partition("Backward")
    made = ""
    for before, letter in zip(" " + name, name):
        starts = letter.isupper() and made and not before.isdigit() and before != "_"
        made += "_" + letter.lower() if starts else letter.lower()
    return made

"""Why ops give NaN and infinity, and what to do, for anomaly mode, the doctor and the answers.

NOTE [Numerical hazards]
A row of the table is about some ops, and about their values or their derivatives. Its conditions are on the
numbers: `x` and `y` are an op's first two inputs, `out` is its result. Values that were not saved cannot be tested.
The first row whose condition holds is the answer; else the first whose condition could not be tested.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from backlight.kernels.state_blocks import silent_floats

# --- the table --------------------------------------------------------------------------------------------------------

VALUE, DERIVATIVE = "value", "derivative"
LARGE = 1e18  # the square of more overflows float32


class Condition(NamedTuple):
    """A condition: `holds` returns for which elements of its first parameter it holds; `words` describe them."""

    words: str
    holds: Callable


class When(NamedTuple):
    """What a row is about: ops, their values or derivatives or both (""), and conditions on the numbers."""

    ops: tuple[str, ...]
    of: str
    conditions: tuple[Condition, ...]


class Hazard(NamedTuple):
    """A row (NOTE [Numerical hazards])."""

    when: When
    cause: str
    cure: str


def when(ops: str, of: str, *conditions: Condition) -> When:
    """Return what a row is about; `ops` are names with spaces between them."""
    return When(tuple(ops.split()), of, conditions)


AWAY_FROM_0 = "add a small number inside: torch.sqrt(x + 1e-12), or clamp x from below"
LOGS = "clamp the input from below (x.clamp_min(1e-12)), or use log_softmax, logsumexp, or a loss that takes logits"
DIVISOR = "keep the divisor away from 0: x / (y + 1e-12), or y.clamp_min(1e-12)"
BASE = "keep the base away from 0 (x.clamp_min(1e-12))"
EXPONENTS = "subtract the maximum first, or use log_softmax, logsumexp, softplus, which do"
FACTOR = "see where the other factor comes from, and keep it finite: inf · 0 is NaN"
UNMASKED = "leave at least one score of each row unmasked, or zero such rows with torch.where before the softmax"
SOFTMAXES = "softmax log_softmax safe_softmax scaled_dot_product_attention logsumexp"
MASKED = "every score of a row is -inf: 0 / 0"

HAZARDS = (
    Hazard(
        when("sqrt", VALUE, Condition("sqrt of", lambda x: x < 0)),
        "the square root of a negative number is NaN",
        "clamp x from below: torch.sqrt(x.clamp_min(0))",
    ),
    Hazard(
        when(
            "sqrt", DERIVATIVE, Condition("sqrt of", lambda x: x == 0), Condition("the root is", lambda out: out == 0)
        ),
        "the square root of 0 has an infinite slope, and 0 · inf is NaN",
        AWAY_FROM_0,
    ),
    Hazard(
        when(
            "rsqrt", "", Condition("rsqrt of", lambda x: x <= 0), Condition("rsqrt is", lambda out: ~np.isfinite(out))
        ),
        "1 / sqrt(x) is infinite at 0 and NaN below",
        "add a small number inside: torch.rsqrt(x + 1e-12)",
    ),
    Hazard(
        when("log log2 log10", VALUE, Condition("log of", lambda x: x <= 0)),
        "the logarithm of 0 is -inf, and of a negative number NaN",
        LOGS,
    ),
    Hazard(
        when(
            "log log2 log10",
            DERIVATIVE,
            Condition("log of", lambda x: x == 0),
            Condition("log of", lambda x: ~np.isfinite(x)),
        ),
        "the slope of a logarithm, 1/x, is infinite at 0, and 0 · inf is NaN",
        LOGS,
    ),
    Hazard(
        when("log1p", "", Condition("log1p of", lambda x: x <= -1)),
        "log1p is -inf at -1, where its slope is infinite, and NaN below",
        "clamp its input above -1",
    ),
    Hazard(
        when("xlogy", "", Condition("xlogy with y", lambda y: y <= 0)),
        "the slope of x · log(y) is infinite where y is 0",
        "clamp y from below (y.clamp_min(1e-12))",
    ),
    Hazard(when("div true_divide", VALUE, Condition("division by", lambda y: y == 0)), "a division by 0", DIVISOR),
    Hazard(
        when("div true_divide", DERIVATIVE, Condition("division by", lambda y: y == 0)),
        "a division by 0: the derivatives 1/y and -x/y² are infinite there",
        DIVISOR,
    ),
    Hazard(
        when(
            "reciprocal",
            "",
            Condition("division by", lambda x: x == 0),
            Condition("reciprocal is", lambda out: np.isinf(out)),
        ),
        "a division by 0",
        "keep x away from 0: 1 / (x + 1e-12), or x.clamp_min(1e-12)",
    ),
    Hazard(
        when("fmod remainder", "", Condition("remainder by", lambda y: y == 0)),
        "the remainder of a division by 0 is NaN",
        "keep the divisor away from 0",
    ),
    Hazard(
        when("pow", VALUE, Condition("base of pow:", lambda x, y: (x < 0) & (y != np.floor(y)))),
        "a negative number has no real power with such an exponent",
        "clamp the base from below",
    ),
    Hazard(
        when("pow", VALUE, Condition("base of pow:", lambda x, y: (x == 0) & (y < 0))),
        "a negative power of 0 is infinite",
        BASE,
    ),
    Hazard(
        when("pow", DERIVATIVE, Condition("base of pow:", lambda x, y: (x == 0) & (y < 1))),
        "a power with an exponent below 1 has an infinite slope at 0, and 0 · inf is NaN",
        BASE,
    ),
    Hazard(
        when("pow", DERIVATIVE, Condition("base of pow:", lambda x, y: (x < 0) & (y != np.floor(y)))),
        "a negative number has no real power with such an exponent",
        "clamp the base from below",
    ),
    Hazard(
        when(
            "pow",
            "",
            Condition("base of pow:", lambda x: x <= 0),
            Condition("base of pow:", lambda x: np.abs(x) > LARGE),
        ),
        "a power with an infinite slope at 0 (an exponent below 1), of a negative base, or too large for the dtype",
        f"{BASE}, or the exponent small",
    ),
    Hazard(
        when(
            "norm linalg_vector_norm vector_norm renorm", DERIVATIVE, Condition("the length is", lambda out: out == 0)
        ),
        "the norm of a zero vector has no derivative: it is 0 / 0 there",
        "use torch.sqrt((x ** 2).sum() + 1e-12), or the squared length",
    ),
    Hazard(
        when("cdist pairwise_distance dist", DERIVATIVE, Condition("the distance is", lambda out: out == 0)),
        "the distance of equal points has no derivative",
        "add a small number, or use squared distances",
    ),
    Hazard(
        when(
            "exp exp2 expm1 sinh cosh",
            "",
            Condition("exp of", lambda x, out: np.isinf(out)),
            Condition("exp is", lambda out: np.isinf(out)),
            Condition("exp of", lambda x: x > 88),
        ),
        "exp overflows: above about 88 in float32, 709 in float64, 11 in float16",
        EXPONENTS,
    ),
    Hazard(
        when("acos asin arccos arcsin", VALUE, Condition("arccos or arcsin of", lambda x: np.abs(x) > 1)),
        "arccos and arcsin are NaN outside [-1, 1]",
        "clamp the input to [-1 + 1e-6, 1 - 1e-6]",
    ),
    Hazard(
        when("acos asin arccos arcsin", DERIVATIVE, Condition("arccos or arcsin of", lambda x: np.abs(x) >= 1)),
        "arccos and arcsin have an infinite slope at ±1, and are NaN outside",
        "clamp the input to [-1 + 1e-6, 1 - 1e-6]",
    ),
    Hazard(
        when("acosh", "", Condition("acosh of", lambda x: x <= 1)),
        "acosh is NaN below 1, and its slope is infinite at 1",
        "clamp the input above 1",
    ),
    Hazard(
        when(
            "atanh logit",
            "",
            Condition("it read", lambda x: np.abs(2 * x - 1) >= 1),
            Condition("it read", lambda x: np.abs(x) >= 1),
        ),
        "it is infinite at the ends of its range and NaN outside",
        "clamp the input inside, by 1e-6",
    ),
    Hazard(
        when(
            "atan2 hypot",
            DERIVATIVE,
            Condition("both arguments are", lambda x, y: (x == 0) & (y == 0)),
            Condition("the result is", lambda out: out == 0),
        ),
        "at (0, 0) it has no derivative: 0 / 0",
        "keep the two arguments from being 0 at once",
    ),
    Hazard(
        when("std", DERIVATIVE, Condition("the standard deviation is", lambda out: out == 0)),
        "the standard deviation of equal numbers has an infinite slope",
        "use sqrt(var + 1e-12)",
    ),
    Hazard(
        when("std var", VALUE, Condition("it read", lambda x: np.abs(x) > LARGE)),
        "the squares of the numbers are too large for their dtype",
        "normalise the numbers before",
    ),
    Hazard(
        when("std var std_mean var_mean", VALUE),
        "a standard deviation or variance divides by the number of values minus the correction (1 by default), and "
        "the correction is not smaller than that number",
        "use correction=0 (unbiased=False), or use more values",
    ),
    Hazard(when(SOFTMAXES, VALUE, Condition("a score is", lambda x: np.isneginf(x))), MASKED, UNMASKED),
    Hazard(
        when(SOFTMAXES, VALUE, Condition("a score is", lambda x: np.isposinf(x))),
        "a score is infinite: inf - inf",
        "check the scores for a division by 0 or an overflow",
    ),
    Hazard(when(SOFTMAXES, DERIVATIVE, Condition("its result is", lambda out: ~np.isfinite(out))), MASKED, UNMASKED),
    Hazard(when(SOFTMAXES, ""), MASKED, UNMASKED),
    Hazard(
        when("binary_cross_entropy", "", Condition("a probability is", lambda x: (x <= 0) | (x >= 1))),
        "the logarithm of a probability that is exactly 0 or 1",
        "use binary_cross_entropy_with_logits",
    ),
    Hazard(
        when("mean nanmean", VALUE, Condition("", lambda x: np.ones((), bool) & (x.size == 0))),
        "the mean of an empty tensor",
        "check whether the selection is empty before taking its mean",
    ),
    Hazard(
        when(
            "mul matmul mm bmm linear addmm",
            DERIVATIVE,
            Condition("a factor is", lambda x: ~np.isfinite(x)),
            Condition("a factor is", lambda y: ~np.isfinite(y)),
        ),
        "the slope of a product is the other factor, which is not finite",
        FACTOR,
    ),
    Hazard(
        when("to to_copy half", VALUE, Condition("it read", lambda x: np.abs(x) > 65504)),
        "numbers are too large for the smaller dtype: float16 ends at 65504",
        "scale them down before, or use bfloat16, whose range is float32's",
    ),
    Hazard(
        when("linalg_eigh linalg_svd svd", DERIVATIVE),
        "two eigenvalues or singular values are equal, or a singular value is 0: the derivatives of their vectors "
        "divide by such differences",
        "use only the values (eigvalsh, svdvals), whose derivatives are finite, or perturb the matrix slightly",
    ),
)


# --- the cause of one ------------------------------------------------------------------------------------------------


class Cause(NamedTuple):
    """The cause, the cure, and a sentence of evidence ("" if there is none)."""

    cause: str
    cure: str
    seen: str = ""


WHERE = Cause(
    "where() discards the value, but not its derivative: the slope of the branch not taken is infinite, and 0 · inf "
    "is NaN",
    "make the input safe before the op: safe = torch.where(x > 0, x, 1.0), and torch.log(safe) in the where() after it",
)
NAN_WENT_IN = Cause(
    "its input contained NaN, so its output is NaN too", "find where it comes from: torch.isnan(x).any()"
)
MET = Cause(
    "an infinity was combined with 0 or another infinity: 0 · inf, inf - inf and inf / inf are NaN",
    "find where the infinity comes from, and keep the numbers finite there",
)
OVERFLOW = Cause(
    "numbers became too large for their dtype",
    "a smaller learning rate, clipped gradients or normalised inputs keep them finite; bfloat16 has float32's range, "
    "float16 ends at 65504",
)
OTHERWISE = Cause(
    "numbers became too large for their dtype, or an infinity was combined with 0 or another infinity",
    "check the input values: a smaller learning rate, clipped gradients or normalised inputs keep them finite",
)


def cause_of(name: str, values: Sequence, kind: str, chosen_away: bool = False, out: np.ndarray | None = None) -> Cause:
    """Return why an op made NaN or infinity.

    Args:
        name: the forward op's.
        values: the inputs: arrays, numbers, None for unknown ones.
        kind: "nan" or "inf" (in any case) for values, "derivative" for a gradient.
        chosen_away: of a gradient: the incoming one was 0 there, since a later op discarded the value.
        out: the op's result, if known.
    """
    if kind == DERIVATIVE and chosen_away:
        return WHERE
    known = {"x": _array(values, 0), "y": _array(values, 1), "out": None if out is None else np.asarray(out)}
    possible = None
    for row in HAZARDS:
        if name not in row.when.ops or row.when.of not in ("", DERIVATIVE if kind == DERIVATIVE else VALUE):
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


def hazard_of(name: str, derivative: bool) -> Cause:
    """Return the likeliest cause for an op of which no numbers are known."""
    return cause_of(name, (), DERIVATIVE if derivative else "nan")


def _array(values: Sequence, place: int) -> np.ndarray | None:
    if place >= len(values) or not isinstance(values[place], (np.ndarray, np.generic, int, float)):
        return None
    return np.asarray(values[place])


def _seen(condition: Condition, known: dict) -> str | None:
    """Return `sqrt of 0 at [3] (2 of 7 values).`, "" if it is not so, None if it cannot be seen."""
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
    return f"{condition.words} {float(value[place]):g} at {list(place)} ({number} of {value.size} values)."


def _in_general(values: list, kind: str) -> Cause:
    """Return what may be said of any op."""
    if kind == DERIVATIVE or not values:
        return OTHERWISE
    if any(np.isnan(one).any() for one in values):
        return NAN_WENT_IN
    if any(np.isinf(one).any() for one in values):
        return MET._replace(seen="its input contained an infinity.")
    return OVERFLOW


def op_name_of(node: str) -> str:
    """Return the op of a node in lower case: `max_pool2d_with_indices` for MaxPool2DWithIndicesBackward0."""
    name, _, _ = node.rpartition("::")[2].partition("Backward")
    made = ""
    for before, letter in zip(" " + name, name):
        starts = letter.isupper() and made and not before.isdigit() and before != "_"
        made += "_" + letter.lower() if starts else letter.lower()
    return made

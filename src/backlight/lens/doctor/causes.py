"""Why an op made NaN or infinity: the pattern, what was seen of it, and the cure."""

import re
from typing import NamedTuple

import numpy as np


class Cause(NamedTuple):
    """Why, what to do, and a sentence of evidence ("" if nothing special was seen)."""

    cause: str
    cure: str
    seen: str = ""


WHERE = Cause(
    "where() chooses the value away, not its derivative: the slope of the branch not taken is infinite, and 0 · inf "
    "is NaN",
    "make the input safe before the op: safe = torch.where(x > 0, x, 1.0), and torch.log(safe) in the where() after it",
)
KNOWN = {
    "sqrt": Cause(
        "the square root of 0 has an infinite slope (of a negative number it is NaN)",
        "add a small number inside: torch.sqrt(x + 1e-12), or clamp x from below",
    ),
    "log": Cause(
        "the logarithm of 0 is -inf, and of a negative number NaN; its slope at 0 is infinite",
        "clamp the input from below (x.clamp_min(1e-12)), or use log_softmax, logsumexp, or a loss that takes logits",
    ),
    "div": Cause(
        "a division by 0",
        "keep the divisor away from 0: x / (y + 1e-12), or y.clamp_min(1e-12)",
    ),
    "pow": Cause(
        "a power with an infinite slope at 0 (an exponent below 1), of a negative base, or too large for the dtype",
        "keep the base away from 0 (x.clamp_min(1e-12)), or the exponent small",
    ),
    "norm": Cause(
        "the length of a zero vector has no slope: it is 0 / 0 there",
        "use torch.sqrt((x ** 2).sum() + 1e-12), or the squared length",
    ),
    "exp": Cause(
        "exp overflows: above about 88 in float32, 709 in float64",
        "subtract the maximum first, or use log_softmax, logsumexp, softplus, which do",
    ),
    "acos": Cause(
        "arccos and arcsin have an infinite slope at ±1, and are NaN outside",
        "clamp the input to [-1 + 1e-6, 1 - 1e-6]",
    ),
    "atan2": Cause("atan2(0, 0) has no slope", "keep the two arguments from being 0 at once"),
    "std": Cause(
        "the standard deviation of equal numbers has an infinite slope",
        "use sqrt(var + 1e-12)",
    ),
    "softmax": Cause(
        "every score of a row is -inf: 0 / 0",
        "leave at least one score of each row unmasked, or zero such rows with torch.where before the softmax",
    ),
    "mean": Cause("the mean of no numbers at all", "look whether the selection is empty before taking its mean"),
}
SAME = {
    "rsqrt": "sqrt",
    "log2": "log",
    "log10": "log",
    "log1p": "log",
    "true_divide": "div",
    "reciprocal": "div",
    "linalg_vector_norm": "norm",
    "vector_norm": "norm",
    "cdist": "norm",
    "asin": "acos",
    "arccos": "acos",
    "arcsin": "acos",
    "var": "std",
    "log_softmax": "softmax",
    "expm1": "exp",
    "scaled_dot_product_attention": "softmax",
    "nanmean": "mean",
}
LARGE = 1e18  # the square of more overflows float32
TOO_FEW = Cause(
    "a standard deviation or variance divides by the number of values less the correction (1 by default), and the "
    "correction is not smaller than that number",
    "use correction=0 (unbiased=False), or take it over more values",
)
OTHERWISE = Cause(
    "numbers became too large for their dtype, or an infinity met 0 or another infinity",
    "look at the values that went in: a smaller learning rate, clipped gradients or normalised inputs keep them finite",
)


def cause_of(name: str, values: list, kind: str, met: bool, call, result: np.ndarray | None = None) -> Cause:
    """Return why an op made NaN or infinity.

    Args:
        name: the forward op's.
        values: what went in: arrays, numbers, None.
        kind: "NaN", "inf", or "slope" for a gradient.
        met: of a forward: an infinity went in; of a gradient: the value was chosen away afterwards.
        call: the call, if there is one.
        result: what the op returned, if that matters.
    """
    if kind == "slope" and met:
        return WHERE
    found = KNOWN.get(SAME.get(name, name))
    if found is None:
        return OTHERWISE._replace(seen="an infinity went in." if met else "")
    arrays = [one for one in values if isinstance(one, (np.ndarray, int, float))]
    if found is KNOWN["std"] and kind != "slope":
        return OTHERWISE if arrays and np.max(np.abs(arrays[0]), initial=0) > LARGE else TOO_FEW
    return found._replace(seen=_seen(SAME.get(name, name), name, arrays, result))


def _seen(family: str, name: str, values: list, result: np.ndarray | None) -> str:
    """Return what is special about the values that went in."""
    if not values:
        return ""
    with np.errstate(all="ignore"):
        first = np.asarray(values[0])
        second = np.asarray(values[1]) if len(values) > 1 else None
        if family in ("sqrt", "log"):
            start = -1.0 if name == "log1p" else 0.0
            return _which(first, first <= start, f"{name} of")
        if family == "div":
            divisor = first if name == "reciprocal" or second is None else second
            return _which(divisor, divisor == 0, "division by")
        if family == "pow":
            return _which(first, first <= 0, f"base of {name}:")
        if family == "exp":
            return _which(first, first > 88, "exp of")
        if family == "acos":
            return _which(first, np.abs(first) >= 1, f"{name} of")
        if family == "softmax":
            return _which(first, np.isneginf(first), f"{name} of")
        if family in ("norm", "std") and result is not None:
            return _which(result, result == 0, f"{name} is")
    return ""


def _which(values: np.ndarray, bad: np.ndarray, head: str) -> str:
    """Return `sqrt of 0 at [3] (2 of 7 such values)`, or "" if there is none."""
    number = int(np.count_nonzero(bad))
    if not number:
        return ""
    if values.ndim == 0:
        return f"{head} {float(values):g}."
    first = np.argwhere(bad)[0]
    place = [int(one) for one in first]
    return f"{head} {float(values[tuple(first)]):g} at {place} ({number} of {values.size} values are such)."


def forward_name(node: str) -> str:
    """Return the op's name for a node's: `LinalgVectorNormBackward0` → `linalg_vector_norm`."""
    name = re.sub(r"Backward\d*$", "", node)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()

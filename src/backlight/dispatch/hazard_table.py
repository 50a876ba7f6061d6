"""The table of numerical hazards: which ops give NaN and infinity, or pass them on, and what to do.

NOTE [A pitfall]
A row is about some ops, and about their values or their slopes (their gradients). Its looks are conditions on the
numbers: `x` and `y` are an op's first two inputs, `out` is its result. Values that were not saved cannot be tested.
The first row whose condition holds is the answer; else the first whose condition could not be tested.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

VALUE, SLOPE = "value", "slope"
LARGE = 1e18  # the square of more overflows float32


class Look(NamedTuple):
    """A condition: `is_so` returns for which elements of its first parameter it holds; `words` describe them."""

    words: str
    is_so: Callable


class Hazard(NamedTuple):
    """A row (NOTE [A pitfall]): ops, values or slopes, the cause, the cure, conditions."""

    ops: str
    of: str
    cause: str
    cure: str
    looks: tuple[Look, ...] = ()


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
        "sqrt",
        VALUE,
        "the square root of a negative number is NaN",
        "clamp x from below: torch.sqrt(x.clamp_min(0))",
        (Look("sqrt of", lambda x: x < 0),),
    ),
    Hazard(
        "sqrt",
        SLOPE,
        "the square root of 0 has an infinite slope, and 0 · inf is NaN",
        AWAY_FROM_0,
        (Look("sqrt of", lambda x: x == 0), Look("the root is", lambda out: out == 0)),
    ),
    Hazard(
        "rsqrt",
        "",
        "1 / sqrt(x) is infinite at 0 and NaN below",
        "add a small number inside: torch.rsqrt(x + 1e-12)",
        (Look("rsqrt of", lambda x: x <= 0), Look("rsqrt is", lambda out: ~np.isfinite(out))),
    ),
    Hazard(
        "log log2 log10",
        VALUE,
        "the logarithm of 0 is -inf, and of a negative number NaN",
        LOGS,
        (Look("log of", lambda x: x <= 0),),
    ),
    Hazard(
        "log log2 log10",
        SLOPE,
        "the slope of a logarithm, 1/x, is infinite at 0, and 0 · inf is NaN",
        LOGS,
        (Look("log of", lambda x: x == 0), Look("log of", lambda x: ~np.isfinite(x))),
    ),
    Hazard(
        "log1p",
        "",
        "log1p is -inf at -1, where its slope is infinite, and NaN below",
        "clamp its input above -1",
        (Look("log1p of", lambda x: x <= -1),),
    ),
    Hazard(
        "xlogy",
        "",
        "the slope of x · log(y) is infinite where y is 0",
        "clamp y from below (y.clamp_min(1e-12))",
        (Look("xlogy with y", lambda y: y <= 0),),
    ),
    Hazard(
        "div true_divide",
        VALUE,
        "a division by 0",
        DIVISOR,
        (Look("division by", lambda y: y == 0),),
    ),
    Hazard(
        "div true_divide",
        SLOPE,
        "a division by 0: the slopes 1/y and -x/y² are infinite there",
        DIVISOR,
        (Look("division by", lambda y: y == 0),),
    ),
    Hazard(
        "reciprocal",
        "",
        "a division by 0",
        "keep x away from 0: 1 / (x + 1e-12), or x.clamp_min(1e-12)",
        (Look("division by", lambda x: x == 0), Look("reciprocal is", lambda out: np.isinf(out))),
    ),
    Hazard(
        "fmod remainder",
        "",
        "the remainder of a division by 0 is NaN",
        "keep the divisor away from 0",
        (Look("remainder by", lambda y: y == 0),),
    ),
    Hazard(
        "pow",
        VALUE,
        "a negative number has no real power with such an exponent",
        "clamp the base from below",
        (Look("base of pow:", lambda x, y: (x < 0) & (y != np.floor(y))),),
    ),
    Hazard(
        "pow",
        VALUE,
        "a negative power of 0 is infinite",
        BASE,
        (Look("base of pow:", lambda x, y: (x == 0) & (y < 0)),),
    ),
    Hazard(
        "pow",
        SLOPE,
        "a power with an exponent below 1 has an infinite slope at 0, and 0 · inf is NaN",
        BASE,
        (Look("base of pow:", lambda x, y: (x == 0) & (y < 1)),),
    ),
    Hazard(
        "pow",
        SLOPE,
        "a negative number has no real power with such an exponent",
        "clamp the base from below",
        (Look("base of pow:", lambda x, y: (x < 0) & (y != np.floor(y))),),
    ),
    Hazard(
        "pow",
        "",
        "a power with an infinite slope at 0 (an exponent below 1), of a negative base, or too large for the dtype",
        f"{BASE}, or the exponent small",
        (Look("base of pow:", lambda x: x <= 0), Look("base of pow:", lambda x: np.abs(x) > LARGE)),
    ),
    Hazard(
        "norm linalg_vector_norm vector_norm renorm",
        SLOPE,
        "the length of a zero vector has no slope: it is 0 / 0 there",
        "use torch.sqrt((x ** 2).sum() + 1e-12), or the squared length",
        (Look("the length is", lambda out: out == 0),),
    ),
    Hazard(
        "cdist pairwise_distance dist",
        SLOPE,
        "the distance of equal points has no slope",
        "add a small number, or use squared distances",
        (Look("the distance is", lambda out: out == 0),),
    ),
    Hazard(
        "exp exp2 expm1 sinh cosh",
        "",
        "exp overflows: above about 88 in float32, 709 in float64, 11 in float16",
        EXPONENTS,
        (
            Look("exp of", lambda x, out: np.isinf(out)),
            Look("exp is", lambda out: np.isinf(out)),
            Look("exp of", lambda x: x > 88),
        ),
    ),
    Hazard(
        "acos asin arccos arcsin",
        VALUE,
        "arccos and arcsin are NaN outside of [-1, 1]",
        "clamp the input to [-1 + 1e-6, 1 - 1e-6]",
        (Look("arccos or arcsin of", lambda x: np.abs(x) > 1),),
    ),
    Hazard(
        "acos asin arccos arcsin",
        SLOPE,
        "arccos and arcsin have an infinite slope at ±1, and are NaN outside",
        "clamp the input to [-1 + 1e-6, 1 - 1e-6]",
        (Look("arccos or arcsin of", lambda x: np.abs(x) >= 1),),
    ),
    Hazard(
        "acosh",
        "",
        "acosh is NaN below 1, and its slope is infinite at 1",
        "clamp the input above 1",
        (Look("acosh of", lambda x: x <= 1),),
    ),
    Hazard(
        "atanh logit",
        "",
        "it is infinite at the ends of its range and NaN outside",
        "clamp the input inside, by 1e-6",
        (Look("it read", lambda x: np.abs(2 * x - 1) >= 1), Look("it read", lambda x: np.abs(x) >= 1)),
    ),
    Hazard(
        "atan2 hypot",
        SLOPE,
        "at (0, 0) it has no slope: 0 / 0",
        "keep the two arguments from being 0 at once",
        (Look("both arguments are", lambda x, y: (x == 0) & (y == 0)), Look("the result is", lambda out: out == 0)),
    ),
    Hazard(
        "std",
        SLOPE,
        "the standard deviation of equal numbers has an infinite slope",
        "use sqrt(var + 1e-12)",
        (Look("the standard deviation is", lambda out: out == 0),),
    ),
    Hazard(
        "std var",
        VALUE,
        "the squares of the numbers are too large for their dtype",
        "normalise the numbers before",
        (Look("it read", lambda x: np.abs(x) > LARGE),),
    ),
    Hazard(
        "std var std_mean var_mean",
        VALUE,
        "a standard deviation or variance divides by the number of values less the "
        "correction (1 by default), and the correction is not smaller than that number",
        "use correction=0 (unbiased=False), or take it over more values",
    ),
    Hazard(
        SOFTMAXES,
        VALUE,
        MASKED,
        UNMASKED,
        (Look("a score is", lambda x: np.isneginf(x)),),
    ),
    Hazard(
        SOFTMAXES,
        VALUE,
        "a score is infinite: inf - inf",
        "look at the scores: a division by 0, or an overflow",
        (Look("a score is", lambda x: np.isposinf(x)),),
    ),
    Hazard(SOFTMAXES, SLOPE, MASKED, UNMASKED, (Look("its result is", lambda out: ~np.isfinite(out)),)),
    Hazard(SOFTMAXES, "", MASKED, UNMASKED),
    Hazard(
        "binary_cross_entropy",
        "",
        "the logarithm of a probability that is exactly 0 or 1",
        "use binary_cross_entropy_with_logits",
        (Look("a probability is", lambda x: (x <= 0) | (x >= 1)),),
    ),
    Hazard(
        "mean nanmean",
        VALUE,
        "the mean of no numbers at all",
        "look whether the selection is empty before taking its mean",
        (Look("", lambda x: np.ones((), bool) & (x.size == 0)),),
    ),
    Hazard(
        "mul matmul mm bmm linear addmm",
        SLOPE,
        "the slope of a product is the other factor, which is not finite",
        FACTOR,
        (Look("a factor is", lambda x: ~np.isfinite(x)), Look("a factor is", lambda y: ~np.isfinite(y))),
    ),
    Hazard(
        "to to_copy half",
        VALUE,
        "numbers are too large for the smaller dtype: float16 ends at 65504",
        "scale them down before, or use bfloat16, whose range is float32's",
        (Look("it read", lambda x: np.abs(x) > 65504),),
    ),
    Hazard(
        "linalg_eigh linalg_svd svd",
        SLOPE,
        "two eigenvalues or singular values are equal, or a singular value is 0: the slopes of their vectors divide by "
        "such differences",
        "use the values alone (eigvalsh, svdvals), whose slopes are finite, or move the matrix a little",
    ),
)

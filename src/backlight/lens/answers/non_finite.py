"""Which node makes a NaN or an infinity out of finite numbers, and why."""

from backlight.lens.answers.culprits import Culprit, inputs_of, kind_of, output_of
from backlight.lens.answers.ways import Ways, described, has_odd, magnitude, size_of
from backlight.lens.records.nodes import Node, Summary

AT_ZERO = "is infinite at 0, and 0 · inf is NaN"
ODD = {
    "sqrt": (f"The derivative of sqrt, 1 / (2·√x), {AT_ZERO}.", "Add a small number inside: (x + eps).sqrt()."),
    "rsqrt": ("1 / √x is infinite at 0 and NaN below.", "Add a small number inside: (x + eps).rsqrt()."),
    "norm": (
        "The derivative of a norm is x / ‖x‖: 0 / 0 at 0.",
        "Add eps inside the root, or use the square of the norm.",
    ),
    "pow": (
        f"For an exponent below 1 the derivative of a power {AT_ZERO}; a root of a negative number is NaN.",
        "Add a small number, or clamp the base.",
    ),
    "log": (
        "log is −inf at 0 and NaN below, and its derivative 1/x infinite at 0.",
        "Use log(x + eps), or log_softmax.",
    ),
    "log2": ("log2 is −inf at 0 and NaN below.", "Add a small number inside."),
    "log1p": ("log1p is −inf at −1 and NaN below.", "Clamp its input above −1."),
    "div": ("It divides by 0.", "Add a small number to the divisor, or clamp it."),
    "reciprocal": ("1/x is infinite at 0.", "Add a small number to x, or clamp it."),
    "exp": ("exp overflows (above 88 in float32).", "Subtract the maximum first, or stay in log space: logsumexp."),
    "acos": ("The derivative of acos is infinite at −1 and 1.", "Clamp its input inside, by 1e-7."),
    "asin": ("The derivative of asin is infinite at −1 and 1.", "Clamp its input inside, by 1e-7."),
    "atan2": ("atan2(0, 0) has no derivative.", "Move the point away from the origin."),
    "softmax": ("A row that is −inf everywhere (all masked) gives 0 / 0.", "Leave one position of each row unmasked."),
    "cdist": ("The distance of equal points has no derivative.", "Add a small number, or use squared distances."),
    "where": (
        "where hands 0 to the branch that was not taken, and 0 · inf in that branch is NaN.",
        "Make the input safe before the op that fails: x.clamp(min=eps), and not only its result.",
    ),
    "mul": ("inf · 0, or a product that overflows.", "Look at the factors for infinities."),
    "sub": ("inf − inf.", "Look at the inputs for infinities."),
    "binary_cross_entropy": ("log(0): a probability was exactly 0 or 1.", "Use binary_cross_entropy_with_logits."),
}
ALIKE = {"linalg_vector_norm": "norm", "log_softmax": "softmax", "log10": "log2", "safe_softmax": "softmax"}
SPREADS = {"std": "standard deviation", "var": "variance"}
UNKNOWN = ("The op gives no finite number at these values.", "Look at what it read: values near 0, or very large ones.")


def odd_forward(ways: Ways) -> Culprit | None:
    """Return the first op of the forward that made a NaN or an infinity out of finite numbers."""
    for node in ways.record.nodes:
        out = output_of(node)
        if not has_odd(out) or (ways.reached and node.id not in ways.reached):
            continue
        read = [one for one in (*inputs_of(ways, node), *(s.summary for s in node.saved if s.name != "result")) if one]
        if not node.edges:
            return Culprit(
                node,
                f"{described(node)} itself holds {magnitude(out)}",
                (),
                "The values are wrong before anything is computed: an update made them so, or they were loaded so.",
                "Look at the update before (a NaN gradient, a huge step), or at the data.",
                True,
            )
        if not any(has_odd(one) for one in read):
            return _odd(node, f"{described(node)} gave {magnitude(out)} out of finite numbers", read, True)
        return Culprit(
            node,
            f"{described(node)} gave {magnitude(out)}, having read some",
            tuple(f"it read {magnitude(one)}" for one in read if has_odd(one)),
            "A tensor that needs no gradient brought them: the data, a mask, a constant.",
            "Check the inputs: torch.isfinite(x).all().",
            True,
        )
    return None


def odd_backward(ways: Ways) -> Culprit | None:
    """Return the first node that made a NaN or an infinity out of a finite gradient."""
    for number, step in ways.steps.items():
        node = ways.record.nodes[number]
        changed = next((one for one in step.changes if has_odd(one.after) and not has_odd(one.before)), None)
        if changed is not None:
            return Culprit(
                node,
                f"the hook `{changed.hook}` at {described(node)} gave {magnitude(changed.after)}",
                (),
                "A hook computed it.",
                "Look at the hook: a division by a norm that is 0?",
            )
        if any(has_odd(one) for one in step.incoming):
            if number in ways.roots:
                return Culprit(node, f"backward started with {magnitude(step.incoming[0])}", (), "", "")
            continue
        if any(has_odd(one) for one in step.outgoing):
            odd = next(one for one in step.outgoing if has_odd(one))
            return _odd(
                node, f"{described(node)} hands on {magnitude(odd)}, out of a finite gradient", inputs_of(ways, node)
            )
    return None


def _odd(node: Node, what: str, read: list, forward: bool = False) -> Culprit:
    kind = kind_of(node)
    cause, cure = ODD.get(ALIKE.get(kind, kind), UNKNOWN)
    if kind in SPREADS and forward:
        cause, cure = _spread(node, kind, read)
    seen = [f"it read values from {one.least:.4g} to {one.most:.4g}" for one in read if one and one.least is not None]
    seen += [_zeros(one) for one in read if one and one.zeros]
    return Culprit(node, what, tuple(dict.fromkeys(seen)), cause, cure, forward)


def _zeros(read: Summary) -> str:
    """Say how many of the values that a node read are 0."""
    count, all_of_them = read.zeros, size_of(read)
    if all_of_them == 1:
        return "the only value that it read is 0"
    return f"of {all_of_them} values that it read, {count} {'is' if count == 1 else 'are'} 0"


def _spread(node: Node, kind: str, read: list) -> tuple[str, str]:
    """Say why a standard deviation or a variance of finite numbers is not finite."""
    out = output_of(node)
    if not read or out is None:
        return UNKNOWN
    count, correction = size_of(read[0]) // max(size_of(out), 1), node.options.get("correction", 1)
    if correction < count:
        return UNKNOWN
    cause = f"The {SPREADS[kind]} divides by the number of values less the correction, and the correction is not "
    cure = "Use correction=0 (unbiased=False), or take it over more values."
    return f"{cause}smaller than that number ({correction} and {count}).", cure

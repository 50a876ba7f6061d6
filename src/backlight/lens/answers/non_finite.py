"""Which node makes a NaN or an infinity out of finite numbers, and why."""

from backlight.dispatch.numerical_hazards import hazard_of
from backlight.lens.answers.culprits import Culprit, inputs_of, kind_of, output_of
from backlight.lens.answers.ways import GraphPaths, described, has_non_finite, magnitude, size_of
from backlight.lens.records.nodes import Node, Summary

SPREADS = {"std": "standard deviation", "var": "variance"}


def non_finite_in_forward(paths: GraphPaths) -> Culprit | None:
    """Return the first op of the forward that made a NaN or an infinity out of finite numbers."""
    for node in paths.record.nodes:
        out = output_of(node)
        if not has_non_finite(out) or (paths.reached and node.id not in paths.reached):
            continue
        read = [one for one in (*inputs_of(paths, node), *(s.summary for s in node.saved if s.name != "result")) if one]
        if not node.edges:
            return Culprit(
                node,
                f"{described(node)} itself holds {magnitude(out)}",
                (),
                "The values are wrong before anything is computed: an update made them so, or they were loaded so.",
                "Look at the update before (a NaN gradient, a huge step), or at the data.",
                True,
            )
        if not any(has_non_finite(one) for one in read):
            return _culprit(node, f"{described(node)} gave {magnitude(out)} out of finite numbers", read, True)
        return Culprit(
            node,
            f"{described(node)} gave {magnitude(out)}, having read some",
            tuple(f"it read {magnitude(one)}" for one in read if has_non_finite(one)),
            "A tensor that needs no gradient brought them: the data, a mask, a constant.",
            "Check the inputs: torch.isfinite(x).all().",
            True,
        )
    return None


def non_finite_in_backward(paths: GraphPaths) -> Culprit | None:
    """Return the first node that made a NaN or an infinity out of a finite gradient."""
    for number, step in paths.steps.items():
        node = paths.record.nodes[number]
        changed = next(
            (one for one in step.changes if has_non_finite(one.after) and not has_non_finite(one.before)), None
        )
        if changed is not None:
            return Culprit(
                node,
                f"the hook `{changed.hook}` at {described(node)} gave {magnitude(changed.after)}",
                (),
                "A hook computed it.",
                "Look at the hook: a division by a norm that is 0?",
            )
        if any(has_non_finite(one) for one in step.incoming):
            if number in paths.roots:
                return Culprit(node, f"backward started with {magnitude(step.incoming[0])}", (), "", "")
            continue
        if any(has_non_finite(one) for one in step.outgoing):
            odd = next(one for one in step.outgoing if has_non_finite(one))
            return _culprit(
                node, f"{described(node)} hands on {magnitude(odd)}, out of a finite gradient", inputs_of(paths, node)
            )
    return None


def _culprit(node: Node, what: str, read: list, forward: bool = False) -> Culprit:
    kind = kind_of(node)
    cause, cure = _likeliest(kind, slope=not forward)
    if kind in SPREADS and forward:
        cause, cure = _spread(node, kind, read)
    seen = [f"it read values from {one.least:.4g} to {one.most:.4g}" for one in read if one and one.least is not None]
    seen += [_zeros(one) for one in read if one and one.zeros]
    return Culprit(node, what, tuple(dict.fromkeys(seen)), cause, cure, forward)


def _likeliest(kind: str, *, slope: bool) -> tuple[str, str]:
    """Return the likeliest cause of what an op gave, and the cure, as sentences."""
    cause, cure, _ = hazard_of(kind, slope)
    return tuple(f"{text[0].upper()}{text[1:]}." for text in (cause, cure))


def _zeros(read: Summary) -> str:
    """Describe how many of the values that a node read are 0."""
    count, all_of_them = read.zeros, size_of(read)
    if all_of_them == 1:
        return "the only value that it read is 0"
    return f"of {all_of_them} values that it read, {count} {'is' if count == 1 else 'are'} 0"


def _spread(node: Node, kind: str, read: list) -> tuple[str, str]:
    """Explain why a standard deviation or a variance of finite numbers is not finite."""
    out = output_of(node)
    if not read or out is None:
        return _likeliest(kind, slope=False)
    count, correction = size_of(read[0]) // max(size_of(out), 1), node.options.get("correction", 1)
    if correction < count:
        return _likeliest(kind, slope=False)
    cause = f"The {SPREADS[kind]} divides by the number of values less the correction, and the correction is not "
    cure = "Use correction=0 (unbiased=False), or take it over more values."
    return f"{cause}smaller than that number ({correction} and {count}).", cure

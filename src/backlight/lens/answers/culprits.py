"""Nodes at which a gradient becomes 0, NaN or infinite, and why: by what they compute and what they read."""

from dataclasses import dataclass

from backlight.dispatch.numerical_hazards import hazard_of, op_name_of
from backlight.lens.answers.case import GraphPaths, all_zero, described, has_non_finite, magnitude
from backlight.lens.records.nodes import HookChange, Node, Summary


@dataclass(frozen=True)
class Culprit:
    """A node at which gradients go wrong.

    Args:
        node: which one.
        what: what happens there, with its line.
        seen: the values that show it.
        cause: why.
        cure: what to try.
        forward: whether the values of the forward are wrong already.
    """

    node: Node
    what: str
    seen: tuple[str, ...]
    cause: str
    cure: str
    forward: bool = False


def inputs_of(paths: GraphPaths, node: Node) -> list[Summary | None]:
    """Return what a node read, as far as it is known: its inputs' outputs."""
    nodes = paths.record.nodes
    return [
        None if edge is None or edge.output >= len(nodes[edge.to].outputs) else nodes[edge.to].outputs[edge.output]
        for edge in node.edges
    ]


def output_of(node: Node) -> Summary | None:
    """Return a node's first output, as far as it is known."""
    kept = next((saved.summary for saved in node.saved if saved.name == "result"), None)
    known = node.outputs[0] if node.outputs else None
    return kept if known is None or known.zeros is None else known


def growth(paths: GraphPaths) -> list[tuple[Node, float]]:
    """Return by how much each node on the way makes the gradient larger, the largest factor first."""
    path, found = paths.path(), []
    for node, following in zip(path, path[1:]):
        before = paths.incoming(node.id)
        after = [
            paths.outgoing(node, place) for place, edge in enumerate(node.edges) if edge and edge.to == following.id
        ]
        norms = [one.norm for one in after if one is not None and one.norm is not None]
        if before is not None and before.norm and norms:
            found.append((node, max(norms) / before.norm))
    return sorted(found, key=lambda pair: -pair[1])


SPREADS = {"std": "standard deviation", "var": "variance"}


def non_finite_in_forward(paths: GraphPaths) -> Culprit | None:
    """Return the first op of the forward that made a NaN or an infinity from finite numbers."""
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
                "The values are wrong before the forward: an update made them so, or they were loaded so.",
                "Check the previous update (a NaN gradient, a huge step) or the data.",
                True,
            )
        if not any(has_non_finite(one) for one in read):
            return _culprit(node, f"{described(node)} gave {magnitude(out)} from finite numbers", read, True)
        return Culprit(
            node,
            f"{described(node)} gave {magnitude(out)}, having read some",
            tuple(f"it read {magnitude(one)}" for one in read if has_non_finite(one)),
            "They come from a tensor that needs no gradient: the data, a mask, a constant.",
            "Check the inputs: torch.isfinite(x).all().",
            True,
        )
    return None


def non_finite_in_backward(paths: GraphPaths) -> Culprit | None:
    """Return the first node that made a NaN or an infinity from a finite gradient."""
    for number, step in paths.steps.items():
        node = paths.record.nodes[number]
        changes = (one for one in step.changes if has_non_finite(one.after) and not has_non_finite(one.before))
        if (changed := next(changes, None)) is not None:
            return Culprit(
                node,
                f"the hook `{changed.hook}` at {described(node)} gave {magnitude(changed.after)}",
                (),
                "A hook computed it.",
                "Check the hook: does it divide by a norm that is 0?",
            )
        if any(has_non_finite(one) for one in step.incoming):
            if number in paths.roots:
                return Culprit(node, f"backward started with {magnitude(step.incoming[0])}", (), "", "")
            continue
        if any(has_non_finite(one) for one in step.outgoing):
            what = f"returns {magnitude(next(filter(has_non_finite, step.outgoing)))}, from a finite gradient"
            return _culprit(node, f"{described(node)} {what}", inputs_of(paths, node))
    return None


def _culprit(node: Node, what: str, read: list, forward: bool = False) -> Culprit:
    kind = op_name_of(node.type)
    cause, cure = _likeliest(kind, derivative=not forward)
    if kind in SPREADS and forward:
        cause, cure = _spread(node, kind, read)
    seen = [f"it read values from {one.least:.4g} to {one.most:.4g}" for one in read if one and one.least is not None]
    seen += [_zeros(one) for one in read if one and one.zeros]
    return Culprit(node, what, tuple(dict.fromkeys(seen)), cause, cure, forward)


def _likeliest(kind: str, *, derivative: bool) -> tuple[str, str]:
    """Return the likeliest cause of what an op gave, and the cure, as sentences."""
    cause, cure, _ = hazard_of(kind, derivative)
    return tuple(f"{text[0].upper()}{text[1:]}." for text in (cause, cure))


def _zeros(read: Summary) -> str:
    """Describe how many of the values that a node read are 0."""
    count, all_of_them = read.zeros, read.size
    if all_of_them == 1:
        return "the only value that it read is 0"
    return f"of {all_of_them} values that it read, {count} {'is' if count == 1 else 'are'} 0"


def _spread(node: Node, kind: str, read: list) -> tuple[str, str]:
    """Explain why a standard deviation or a variance of finite numbers is not finite."""
    out = output_of(node)
    if not read or out is None:
        return _likeliest(kind, derivative=False)
    count, correction = read[0].size // max(out.size, 1), node.options.get("correction", 1)
    if correction < count:
        return _likeliest(kind, derivative=False)
    cause = f"The {SPREADS[kind]} divides by the number of values minus the correction, and the correction is not "
    cure = "Use correction=0 (unbiased=False), or use more values."
    return f"{cause}smaller than that number ({correction} and {count}).", cure


STEPS = {"round", "floor", "ceil", "trunc", "sign", "frac", "heaviside", "floor_divide"}
FACTORS = {"mul", "mm", "bmm", "mv", "dot", "addmm", "addmv", "baddbmm", "addcmul", "linear", "matmul", "prod"}
RANGES = {"clamp", "clamp_min", "clamp_max", "hardtanh", "hardsigmoid", "hardshrink", "softshrink", "threshold"}
CHOICES = {"where", "masked_fill", "masked_scatter", "masked_select"}
PICKS = {
    *("max", "min", "amax", "amin", "maximum", "minimum", "max_pool2d_with_indices", "max_pool1d_with_indices"),
    *("select", "slice", "index", "gather", "index_select", "take", "narrow", "topk", "sort", "kthvalue", "median"),
    *("embedding", "embedding_bag", "unfold", "diagonal", "split", "unbind", "nll_loss"),
}
CURVES = {"sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0)}
SHARES = {"softmax", "log_softmax"}
FIXED = {"fill", "zero", "zeros_like", "argmax"}


def zero_at(paths: GraphPaths, target: int) -> Culprit | None:
    """Return the node at which a gradient that arrived at `target` became 0, going up from there to the root."""
    seen, level = set(), [target]
    while level:
        above = []
        for number in level:
            changes = paths.steps[number].changes if number in paths.steps else []
            changed = next((change for change in changes if all_zero(change.after)), None)
            if changed is not None and not all_zero(changed.before):
                return _hooked(paths.record.nodes[number], changed)
            outgoing = [(user, place, paths.outgoing(user, place)) for user, place, _ in paths.users(number)]
            if len(outgoing) > 1 and any(one is not None and one.norm for _, _, one in outgoing):
                return _cancelled(paths.record.nodes[number], [(user, one) for user, _, one in outgoing if one])
            for user, _, one in outgoing:
                if one is None or user.id in seen or not all_zero(one):
                    continue
                seen.add(user.id)
                if all_zero(paths.incoming(user.id)):
                    above.append(user.id)
                else:
                    return zero_of(paths, user)
        if not above and any(number in paths.roots for number in level):
            return _zero_start(paths.record.nodes[level[0]])
        level = above
    return None


def _hooked(node: Node, change: HookChange) -> Culprit:
    return Culprit(
        node,
        f"the hook `{change.hook}` at {described(node)} made it 0",
        (f"before the hook: {magnitude(change.before)}; after it: 0 everywhere",) if change.before else (),
        "A hook replaced the gradient, or wrote zeros into it.",
        "Check what the hook returns and whether it changes its argument in place; remove it with its handle.",
    )


def _cancelled(node: Node, outgoing: list) -> Culprit:
    return Culprit(
        node,
        f"the gradients that meet at {described(node)} cancel",
        tuple(f"{described(user)} passes it {magnitude(one)}" for user, one in outgoing),
        "The tensor is used several times, and the uses' gradients are opposite: x − x, a mean that is subtracted.",
        "Check the formula: the loss does not change with this tensor.",
    )


def _zero_start(node: Node) -> Culprit:
    return Culprit(
        node,
        f"backward started with a gradient of 0, at {described(node)}",
        (),
        "The gradient given to backward(gradient) was 0 everywhere.",
        "Call backward() of a scalar loss without a gradient, or pass ones.",
    )


def suspect(paths: GraphPaths, target: int) -> Culprit | None:
    """Return a node on the path to `target` whose values show that no gradient passes it; for unrecorded gradients."""
    for node in paths.path(target):
        found = zero_of(paths, node, sure=False) if node.edges else None
        if found is not None:
            return found
    return None


def zero_of(paths: GraphPaths, node: Node, *, sure: bool = True) -> Culprit | None:
    """Explain why a node passes on zeros; `sure` if it is known that it does, else None unless its values show it."""
    kind, out = op_name_of(node.type), output_of(node)
    for explain in (_step, _dead, _saturated, _single_share, _times_zero, _outside, _not_chosen, _not_taken):
        found = explain(paths, node, kind, out, sure)
        if found is not None:
            return found
    if not sure:
        return None
    formulas = sorted({edge.formula for edge in node.edges if edge is not None and edge.formula})
    return Culprit(
        node,
        f"{described(node)} returns 0, although its own gradient is not 0",
        tuple(f"its derivative is {formula}" for formula in formulas),
        "The op's derivative is 0 at these values.",
        "Check the values that the op read: watch with values='full' and step through the replay.",
    )


def _step(paths: GraphPaths, node: Node, kind: str, out: Summary | None, sure: bool) -> Culprit | None:
    if kind not in STEPS | FIXED:
        return None
    return Culprit(
        node,
        f"{described(node)} has the derivative 0 everywhere",
        (),
        f"{kind} returns the same value for all nearby inputs, so nothing before it gets a gradient.",
        "Do not differentiate through it, or use a straight-through estimator: x + (round(x) − x).detach().",
    )


def _dead(paths: GraphPaths, node: Node, kind: str, out: Summary | None, sure: bool) -> Culprit | None:
    if kind not in ("relu", "relu6", "threshold") or not (sure or all_zero(out)):
        return None
    read = inputs_of(paths, node)[:1]
    most = [f"the largest of its inputs is {one.most:.4g}" for one in read if one is not None and one.most is not None]
    dead = all_zero(out)
    return Culprit(
        node,
        f"{described(node)} passes no gradient: "
        + ("all of its outputs are 0" if dead else "it is 0 at the elements that matter"),
        tuple(most),
        "ReLU's derivative is 0 for inputs below 0: these units are dead for this input.",
        "Lower the learning rate, check the bias and the initialisation before it, or use leaky_relu or gelu.",
    )


def _saturated(paths: GraphPaths, node: Node, kind: str, out: Summary | None, sure: bool) -> Culprit | None:
    limits = CURVES.get(kind)
    if limits is None or out is None or out.least is None:
        return None
    gap = 1e-6 if sure else 1e-7
    if not (min(abs(out.least - one) for one in limits) <= gap and min(abs(out.most - one) for one in limits) <= gap):
        return None
    if out.mean is not None and not sure and min(abs(out.mean - one) for one in limits) > gap:
        return None
    return Culprit(
        node,
        f"{described(node)} is saturated: its outputs are at {out.least:.6g} … {out.most:.6g}",
        _range_of_input(paths, node),
        f"{kind}'s derivative is almost 0 far from 0: exactly 0 in this precision.",
        "Make its inputs smaller: normalise, scale the initialisation down, or use a loss that takes logits.",
    )


def _range_of_input(paths: GraphPaths, node: Node) -> tuple[str, ...]:
    read = inputs_of(paths, node)[:1]
    return tuple(f"its inputs are {one.least:.4g} … {one.most:.4g}" for one in read if one and one.norm)


def _single_share(paths: GraphPaths, node: Node, kind: str, out: Summary | None, sure: bool) -> Culprit | None:
    if kind not in SHARES or out is None or not out.shape:
        return None
    dim = int(node.options.get("dim", -1))
    if dim >= 2**63:  # PyTorch shows −1 as an unsigned number
        dim -= 2**64
    if not -len(out.shape) <= dim < len(out.shape) or out.shape[dim] != 1:
        return None
    return Culprit(
        node,
        f"{described(node)} is taken over a dim of size 1: it is constant",
        (f"its output has shape {tuple(out.shape)}, and dim {dim} is the one that sums to 1",),
        "A softmax over one element is always 1, for any input.",
        "Take it over the dim of the classes, or use a sigmoid for a single logit.",
    )


def _times_zero(paths: GraphPaths, node: Node, kind: str, out: Summary | None, sure: bool) -> Culprit | None:
    zeros = (saved for saved in node.saved if all_zero(saved.summary)) if kind in FACTORS else ()
    zero = next(iter(zeros), None)
    if zero is None:
        return None
    of = zero.of
    which = described(paths.record.nodes[of]) if of is not None else "a tensor that needs no gradient"
    return Culprit(
        node,
        f"{described(node)} multiplies by 0",
        (f"the other factor is 0 everywhere: {which}",),
        "The other factor is 0, so the product does not change with this one.",
        "Check why the other factor is 0: a mask, a weight initialised to zeros, a loss weight of 0.",
    )


def _outside(paths: GraphPaths, node: Node, kind: str, out: Summary | None, sure: bool) -> Culprit | None:
    if kind not in RANGES or not (sure or (out is not None and out.least is not None and out.least == out.most)):
        return None
    return Culprit(
        node,
        f"{described(node)} clips all of its inputs",
        _range_of_input(paths, node),
        f"Outside its range {kind} is constant and its derivative is 0.",
        "Widen the range, or scale the values into it first.",
    )


def _not_chosen(paths: GraphPaths, node: Node, kind: str, out: Summary | None, sure: bool) -> Culprit | None:
    if kind not in CHOICES or not sure:
        return None
    return Culprit(
        node,
        f"{described(node)} selects other values everywhere",
        (),
        "The mask or condition takes the other branch at all of these elements.",
        "Check the mask: is it inverted, or all False?",
    )


def _not_taken(paths: GraphPaths, node: Node, kind: str, out: Summary | None, sure: bool) -> Culprit | None:
    if kind not in PICKS or not sure:
        return None
    return Culprit(
        node,
        f"{described(node)} does not select these elements",
        (),
        "Only elements that an op selects get a gradient: the largest ones, or the looked-up rows that are not "
        "padding.",
        "Check the indices (and padding_idx), or use all elements.",
    )

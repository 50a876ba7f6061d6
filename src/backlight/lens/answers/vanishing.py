"""Which node makes a gradient 0, and why, by what it computes and what it read."""

from backlight.lens.answers.culprits import Culprit, inputs_of, kind_of, output_of
from backlight.lens.answers.ways import GraphPaths, all_zero, described, magnitude
from backlight.lens.records.nodes import Node, SavedTensor

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
SHARES = {"softmax": "softmax", "log_softmax": "log_softmax"}
FIXED = {"fill", "zero", "zeros_like", "argmax"}


def zero_at(paths: GraphPaths, target: int) -> Culprit | None:
    """Return the node at which a gradient that arrived at `target` became 0, going up from there to the root."""
    seen, level = set(), [target]
    while level:
        above = []
        for number in level:
            changed = next((change for change in _changes(paths, number) if all_zero(change.after)), None)
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


def _changes(paths: GraphPaths, number: int) -> list:
    step = paths.steps.get(number)
    return [] if step is None else step.changes


def _hooked(node: Node, change) -> Culprit:
    return Culprit(
        node,
        f"the hook `{change.hook}` at {described(node)} made it 0",
        (f"before the hook: {magnitude(change.before)}; after it: 0 everywhere",) if change.before else (),
        "A hook replaced the gradient, or wrote zeros into it.",
        "Look at what the hook returns and whether it edits its argument in place; remove it with its handle.",
    )


def _cancelled(node: Node, outgoing: list) -> Culprit:
    return Culprit(
        node,
        f"the gradients that meet at {described(node)} cancel",
        tuple(f"{described(user)} hands it {magnitude(one)}" for user, one in outgoing),
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
    kind, out = kind_of(node), output_of(node)
    for explain in (_step, _dead, _saturated, _single_share, _times_zero, _outside, _not_chosen, _not_taken):
        found = explain(paths, node, kind, out, sure)
        if found is not None:
            return found
    if not sure:
        return None
    formulas = sorted({edge.formula for edge in node.edges if edge is not None and edge.formula})
    return Culprit(
        node,
        f"{described(node)} hands on 0, though its own gradient is not 0",
        tuple(f"its derivative is {formula}" for formula in formulas),
        "The op's derivative is 0 at these values.",
        "Look at the values that the op read: watch with values='full' and step through the replay.",
    )


def _step(paths, node, kind, out, sure):
    if kind not in STEPS | FIXED:
        return None
    return Culprit(
        node,
        f"{described(node)} has the derivative 0 everywhere",
        (),
        f"{kind} gives the same number for all inputs nearby, so nothing before it gets a gradient.",
        "Leave it out of what is differentiated, or pass the gradient straight through: x + (round(x) − x).detach().",
    )


def _dead(paths, node, kind, out, sure):
    if kind not in ("relu", "relu6", "threshold") or not (sure or all_zero(out)):
        return None
    read = inputs_of(paths, node)[:1]
    most = [f"the largest of its inputs is {one.most:.4g}" for one in read if one is not None and one.most is not None]
    dead = all_zero(out)
    return Culprit(
        node,
        f"{described(node)} passes nothing: " + ("all of its outputs are 0" if dead else "where it matters it is 0"),
        tuple(most),
        "ReLU's derivative is 0 for inputs below 0: these units are dead for this input.",
        "Lower the learning rate, look at the bias and the initialisation before it, or use leaky_relu or gelu.",
    )


def _saturated(paths, node, kind, out, sure):
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
        tuple(
            f"its inputs are {one.least:.4g} … {one.most:.4g}" for one in inputs_of(paths, node)[:1] if one and one.norm
        ),
        f"{kind}'s derivative is 0 far from 0: in this precision there it is exactly 0.",
        "Make its inputs smaller: normalise, scale the initialisation down, or use a loss that takes logits.",
    )


def _single_share(paths, node, kind, out, sure):
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
        "A softmax over one element is always 1, whatever it is given.",
        "Take it over the dim of the classes, or use a sigmoid for a single logit.",
    )


def _factors(node: Node) -> list[SavedTensor]:
    return [saved for saved in node.saved if all_zero(saved.summary)]


def _times_zero(paths, node, kind, out, sure):
    zeros = _factors(node) if kind in FACTORS else []
    if not zeros:
        return None
    of = zeros[0].of
    which = described(paths.record.nodes[of]) if of is not None else "a tensor that needs no gradient"
    return Culprit(
        node,
        f"{described(node)} multiplies by 0",
        (f"what it multiplies by is 0 everywhere: {which}",),
        "The other factor is 0, so the product does not change with this one.",
        "Look at why the other factor is 0: a mask, a weight initialised to zeros, a loss weight of 0.",
    )


def _outside(paths, node, kind, out, sure):
    if kind not in RANGES or not (sure or (out is not None and out.least is not None and out.least == out.most)):
        return None
    return Culprit(
        node,
        f"{described(node)} cuts all of its inputs off",
        tuple(
            f"its inputs are {one.least:.4g} … {one.most:.4g}" for one in inputs_of(paths, node)[:1] if one and one.norm
        ),
        f"Outside of its range {kind} is constant, and its derivative 0.",
        "Widen the range, or bring the values into it before.",
    )


def _not_chosen(paths, node, kind, out, sure):
    if kind not in CHOICES or not sure:
        return None
    return Culprit(
        node,
        f"{described(node)} takes other values everywhere",
        (),
        "The mask or condition takes the other branch at all of these elements.",
        "Look at the mask: is it inverted, or all False?",
    )


def _not_taken(paths, node, kind, out, sure):
    if kind not in PICKS or not sure:
        return None
    return Culprit(
        node,
        f"{described(node)} does not take these elements",
        (),
        "Only elements that an op takes get a gradient: the largest ones, the rows that are looked up and not padding.",
        "Check the indices (and padding_idx), or use all of the elements.",
    )

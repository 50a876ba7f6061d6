"""From the facts about a gradient to an answer: why it is None, 0, NaN or huge, or what it is made of."""

from collections.abc import Callable, Sequence
from functools import partial

from backlight.lens.answers.answer import Answer
from backlight.lens.answers.case import Case, all_zero, at, described, has_non_finite, magnitude
from backlight.lens.answers.culprits import (
    Culprit,
    growth,
    non_finite_in_backward,
    non_finite_in_forward,
    suspect,
    zero_at,
)
from backlight.lens.answers.vanishing import Vanished, vanished
from backlight.lens.doctor.rule_index import rule as find_rule
from backlight.lens.records.depths import eps_of
from backlight.lens.records.nodes import DETACHES, NO_DERIVATIVE, NUMBER, UNRECORDED, Cut, Summary
from backlight.report.page import some_of

Answering = Callable[..., Answer]  # `answered` for one case and question
CUT = {
    DETACHES: "returns a tensor without a graph",
    NUMBER: "returns Python numbers or an array, which have no graph",
    NO_DERIVATIVE: "has no derivative",
    UNRECORDED: "ran while recording was off: under no_grad(), inference_mode() or set_grad_enabled(False)",
}
CURE = {
    DETACHES: "Remove it, or use its result only where no gradient is wanted.",
    NUMBER: "Keep the loss a tensor until backward(); use item() for printing only.",
    NO_DERIVATIVE: "Use a smooth form: softmax instead of argmax, a margin instead of a comparison.",
    UNRECORDED: "Compute the loss outside of that block.",
}


def answered(
    case: Case,
    question: str,
    verdict: str,
    *,
    rule: str = "",
    cause: str = "",
    cure: str = "",
    evidence: Sequence[str] = (),
    path: Sequence[str] = (),
) -> Answer:
    """Return an answer, and with it the finding of the rule that fits."""
    finding = None
    if rule:
        known = find_rule(rule)
        cause, cure = cause or known.cause, cure or known.cure
        finding = known.found(case.place, *evidence, title=verdict, cause=cause, cure=cure, path=tuple(path))
    return Answer(question, verdict, tuple(evidence), cause, cure, tuple(path), finding)


def path_of(case: Case) -> tuple[str, ...]:
    """Return the way from the root, with gradients where they are known."""
    if case.paths is None:
        return ()
    return tuple(described(node, case.paths.incoming(node.id)) for node in case.paths.path())


def why_none(case: Case) -> Answer:
    answer = partial(answered, case, f"Why is {case.grads} None?")
    for explain in REASONS_FOR_NONE:
        found = explain(case, answer)
        if found is not None:
            return found
    return answer(
        f"No backward has written it, or it was then set to None; {case.name} is a leaf and requires grad.",
        cause="No backward was recorded.",
        cure=f"Ask why({case.name}, loss), or inside `with lens.watch():`, so that the graph can be examined.",
    )


def _requires_none(case: Case, answer: Answering) -> Answer | None:
    if case.requires_grad:
        return None
    if case.cut is not None:
        return answer(
            f"{case.name} has no graph: `{case.cut.op}` at {at(case.cut.place)} {CUT[case.cut.reason]}",
            rule="BL103",
            cause="The tensors it was computed from require grad; it does not.",
            cure=CURE[case.cut.reason],
        )
    if not case.floats:
        verdict = f"{case.name} is {case.dtype}: only floating point tensors have gradients"
        return answer(verdict, rule="BL103", cure="Convert it with .float(), before the computation.")
    return answer(
        f"{case.name} does not require grad, so no gradient is computed for it",
        rule="BL103",
        cause="It was made without requires_grad=True, frozen, detached, or computed under no_grad().",
    )


def _is_no_leaf(case: Case, answer: Answering) -> Answer | None:
    if case.is_leaf or case.retains_grad:
        return None
    place = "" if case.place is None else f" at {at(case.place)}"
    leaves = [] if case.paths is None or case.node is None else _leaves_behind(case)
    evidence = [f"it was computed from the leaf {name}, which has {has}" for name, has in leaves[:3]]
    return answer(
        f"{case.name} is not a leaf: {case.made} made it{place}, and only leaves keep their gradient",
        rule="BL101",
        evidence=evidence,
        path=path_of(case),
    )


def _leaves_behind(case: Case) -> list[tuple[str, str]]:
    nodes = case.paths.record.nodes
    stack, seen, found = [case.node.id], set(), []
    while stack:
        number = stack.pop()
        if number in seen:
            continue
        seen.add(number)
        node = nodes[number]
        if not node.edges and node.name:
            found.append((node.name, "no .grad" if node.grad is None else f"a .grad of {magnitude(node.grad)}"))
        stack.extend(node.inputs)
    return found


def _loss_has_no_graph(case: Case, answer: Answering) -> Answer | None:
    loss = case.loss
    if loss is None or (loss.requires_grad and not loss.is_leaf):
        return None
    verdict, cure = unreachable(case), ""
    if loss.requires_grad:
        return answer(verdict, rule="BL212")
    rule = "BL208"
    cut = loss.cut or (case.cuts[0] if case.cuts else None)
    if cut is not None:
        rule = {UNRECORDED: "BL211", NO_DERIVATIVE: "BL209"}.get(cut.reason, "BL210")
        cure = CURE[cut.reason]
    return answer(verdict, rule=rule, cure=cure, evidence=cut_lines(case.cuts))


def _not_reached(case: Case, answer: Answering) -> Answer | None:
    if case.paths is None or case.paths.path() or case.again or not case.paths.roots:
        return None
    cuts = case.cuts
    return answer(
        unreachable(case),
        rule="BL707" if case.parameter else "",
        cause=f"Values computed from it leave the graph there: `{cuts[0].op}` {CUT[cuts[0].reason]}." if cuts else "",
        cure=CURE[cuts[0].reason] if cuts else "",
        evidence=[*cut_lines(cuts), *_ends(case)],
    )


def unreachable(case: Case) -> str:
    """Explain why the graph of the loss does not reach a tensor."""
    loss = case.loss
    name = "backward's root" if loss is None else loss.name
    if not case.requires_grad:
        return f"{case.name} does not require grad: no graph leads to it"
    if loss is not None and loss.requires_grad and loss.is_leaf:
        return f"{name} is itself a leaf: it was created from numbers with requires_grad=True and has no graph"
    if loss is not None and not loss.requires_grad:
        cut = f": `{loss.cut.op}` at {at(loss.cut.place)} {CUT[loss.cut.reason]}" if loss.cut is not None else ""
        return f"{name} has no graph{cut or ': it does not require grad'}"
    if case.cuts:
        first = case.cuts[0]
        return f"the graph of {name} does not reach {case.name}: `{first.op}` at {at(first.place)} cuts it off"
    why = case.cut_text or "nothing in it was computed from this tensor"
    return f"the graph of {name} does not reach {case.name}: {why}"


def cut_lines(cuts: list[Cut]) -> list[str]:
    return [f"`{cut.op}` at {at(cut.place)} {CUT[cut.reason]}" for cut in cuts[:4]]


def _ends(case: Case) -> list[str]:
    """Return the leaves that the loss does reach."""
    nodes = case.paths.record.nodes
    names = [nodes[one].name or "a leaf" for one in sorted(case.paths.reached) if not nodes[one].edges]
    return [f"the leaves that it does reach: {some_of(names)}" if names else "it reaches no leaf at all"]


def _stopped(case: Case, answer: Answering) -> Answer | None:
    """A backward ran and reached the tensor's graph, and no gradient came along."""
    paths = case.paths
    if paths is None or paths.backward is None or case.node is None or case.node.id in paths.steps:
        return None
    if paths.backward.problem is not None:
        verdict = f"backward stopped before it reached {case.name}: {paths.backward.problem.splitlines()[0]}"
        return answer(verdict, cause="An exception ended the run.", cure="See the exception.", path=path_of(case))
    last = next((node for node in reversed(paths.path()) if node.id in paths.steps), None)
    if last is None:
        return None
    return answer(
        f"no gradient passed {described(last)}",
        cause="The op (or a Function's backward) returned None for this input, or other inputs were requested.",
        cure="Return a gradient for this input in backward(), or remove inputs=.",
        path=path_of(case),
    )


def _given_to_grad(case: Case, answer: Answering) -> Answer | None:
    if case.paths is None or case.paths.backward is None or case.paths.backward.into_grad:
        return None
    return answer(
        f"autograd.grad() at {at(case.paths.backward.place)} returns gradients and does not write .grad",
        cause="Only backward() adds to .grad.",
        cure="Use the result of autograd.grad(), or call backward().",
        path=path_of(case),
    )


def _gone(case: Case, answer: Answering) -> Answer | None:
    ran = case.paths is not None and case.node is not None and case.node.id in case.paths.steps
    if not ran and not (case.loss is not None and case.loss.freed):
        return None
    arrived = case.paths.incoming(case.node.id) if ran else None
    evidence = [f"a gradient had arrived: {magnitude(arrived)}"] if arrived is not None else []
    return answer(
        f"backward has run and reached {case.name}; its .grad was then set to None",
        rule="BL704",
        cause="zero_grad() came after backward(), and sets .grad to None.",
        cure="Read .grad between backward() and zero_grad().",
        evidence=evidence,
        path=path_of(case),
    )


def _not_yet(case: Case, answer: Answering) -> Answer | None:
    if case.paths is None or not case.paths.path() or case.paths.backward is not None:
        return None
    name = "the loss" if case.loss is None else case.loss.name
    return answer(
        f"backward() of {name} has not run; its graph reaches {case.name}",
        cause="There is no gradient yet.",
        cure=f"Call {name}.backward()." if case.loss is not None else "Call backward() of the loss.",
        path=path_of(case),
    )


REASONS_FOR_NONE = (  # the first that fits
    *(_requires_none, _is_no_leaf, _loss_has_no_graph, _not_reached),
    *(_given_to_grad, _stopped, _gone, _not_yet),
)
HUGE = 1e3  # a gradient whose elements are so large in the mean, and so many times the values, is called huge


def answer_to(case: Case) -> Answer:
    """Answer for one tensor."""
    if case.grad is None:
        return why_none(case)
    if has_non_finite(case.grad):
        return _why_non_finite(case)
    if all_zero(case.grad):
        return _why_zero(case)
    if _is_huge(case):
        return _why_huge(case)
    lost = None if case.paths is None else vanished(case.paths, case.grad)
    return _made_of(case) if lost is None else _why_vanished(case, lost)


def _why_zero(case: Case) -> Answer:
    answer = partial(answered, case, f"Why is {case.grads} 0?")
    if case.paths is not None and case.node is not None:
        find = zero_at if case.node.id in case.paths.steps else suspect
        culprit = find(case.paths, case.node.id)
        if culprit is not None:
            return _blaming(case, answer, culprit)
    if case.paths is not None and case.node is not None and not case.paths.path():
        return answer(
            f"no recorded backward reached {case.name}: its .grad was set to 0",
            cause=unreachable(case),
            cure="; ".join(CURE[cut.reason] for cut in case.cuts[:1]) or "Compute the loss from it.",
            evidence=cut_lines(case.cuts),
        )
    return answer(
        f"all {case.grad.size} elements are 0, and no recorded node shows why",
        cause="The loss does not change with it, or zero_grad(set_to_none=False) came after backward().",
        cure="Run the forward and backward inside `with lens.watch():` and ask again there.",
        path=path_of(case),
    )


def _why_non_finite(case: Case) -> Answer:
    answer = partial(answered, case, f"Why {_non_finite_elements(case)}?")
    culprit = None
    if case.paths is not None:
        culprit = non_finite_in_forward(case.paths) or non_finite_in_backward(case.paths)
    if culprit is None:
        return answer(
            f"{magnitude(case.grad)} elements, but the origin was not recorded",
            cause="A NaN or an infinity in the forward, or a derivative that is infinite.",
            cure="Run the forward and backward inside `with lens.watch():` and ask again there.",
            rule="BL802" if case.grad.nans else "BL804",
        )
    rule = "BL805" if culprit.forward and culprit.node.edges else "BL802" if case.grad.nans else "BL804"
    return _blaming(case, answer, culprit, rule)


def _non_finite_elements(case: Case) -> str:
    """`is 1 of the 2 elements of t.grad NaN`, `is w.grad NaN` of a single one."""
    grad, size = case.grad, case.grad.size
    kinds = [(count, name) for count, name in ((grad.nans, "NaN"), (grad.infs, "infinite")) if count]
    name = " or ".join(name for _, name in kinds)
    count = sum(count for count, _ in kinds)
    if size == 1:
        return f"is {case.grads} {name}"
    if count == size:
        return f"are all {size} elements of {case.grads} {name}"
    return f"{'is' if count == 1 else 'are'} {count} of the {size} elements of {case.grads} {name}"


def _blaming(case: Case, answer: Answering, culprit: Culprit, rule: str = "") -> Answer:
    verdict, path = culprit.what[0].upper() + culprit.what[1:], path_of(case)
    said = {"cause": culprit.cause, "cure": culprit.cure, "evidence": culprit.seen}
    return answer(verdict, rule=rule, path=path, **said)


def _is_huge(case: Case) -> bool:
    size = _mean_size(case.grad)
    values = case.node.outputs[0] if case.node is not None and case.node.outputs else None
    own = 0.0 if values is None or values.norm is None else _mean_size(values)
    return size is not None and size > HUGE * max(1.0, own)


def _mean_size(summary: Summary) -> float | None:
    """Return the root of the mean square of a tensor's elements."""
    return None if summary.norm is None or not summary.size else summary.norm / summary.size**0.5


def _why_huge(case: Case) -> Answer:
    answer = partial(answered, case, f"Why is {case.grads} huge ({magnitude(case.grad)})?")
    grown = [] if case.paths is None else [(node, factor) for node, factor in growth(case.paths) if factor > 1][:3]
    added = _additions(case)
    evidence = [f"{described(node)} makes the gradient {factor:.4g} times larger" for node, factor in grown]
    evidence += [f"its .grad was added to {added} times since it was made"] if added else []
    if added and not (grown and grown[0][1] > added + 1):
        verdict = f"gradients of {added + 1} backwards are added up in it"
        return answer(verdict, rule="BL703", evidence=evidence, path=path_of(case))
    if grown:
        start = case.paths.incoming(case.paths.path()[0].id)
        total = f"{case.grad.norm / start.norm:.4g} times" if start is not None and start.norm else "grown"
        return answer(
            f"it is {total} the initial gradient of backward: {described(grown[0][0])} alone multiplies by "
            f"{grown[0][1]:.4g}",
            evidence=evidence,
            cause="Large factors on the way multiply.",
            cure="Scale these values down (normalise, initialise smaller, mean instead of sum), or clip gradients.",
            path=path_of(case),
        )
    return answer(
        f"its elements are {_mean_size(case.grad):.4g} large on average",
        evidence=evidence,
        cause="Large intermediate values, or a loss that sums over many elements.",
        cure="Run the forward and backward inside `with lens.watch():` and ask again there.",
        path=path_of(case),
    )


def _why_vanished(case: Case, lost: Vanished) -> Answer:
    evidence = []
    for name, count, factor in lost.shrinking:
        times = f"{count} × {name} each leave" if count > 1 else f"{name} leaves"
        evidence.append(f"{times} {factor:.2g} of it" + (" in the mean" if count > 1 else ""))
    return answered(
        case,
        f"Why is {case.grads} so small ({magnitude(case.grad)})?",
        f"it vanished: {lost.steps} ops away from the loss, {case.grad.norm / lost.start:.2g} of the gradient remains",
        evidence=evidence,
        cause=f"Factors below 1 multiply. An update with it is lost in rounding: {case.grad.dtype} rounds at "
        f"{eps_of(case.grad.dtype):.2g}.",
        cure="ReLU or GELU instead of sigmoid or tanh; residual connections; normalisation between layers; in time, an "
        "LSTM or GRU, or shorter sequences.",
        path=_shortened(path_of(case)),
    )


ENDS = 3  # nodes of a long path that are named at either end


def _shortened(path: tuple[str, ...]) -> tuple[str, ...]:
    left_out = len(path) - 2 * ENDS
    return path if left_out < 2 else (*path[:ENDS], f"… {left_out} nodes between …", *path[-ENDS:])


def _additions(case: Case) -> int:
    """Return how often a gradient was added to one that was there."""
    if case.paths is None or case.node is None:
        return 0
    steps = [step for one in case.paths.record.backwards for step in one.steps if step.node == case.node.id]
    return sum(step.grad_before is not None and not all_zero(step.grad_before) for step in steps)


# --- nothing wrong ----------------------------------------------------------------------------------------------------


def _made_of(case: Case) -> Answer:
    answer = partial(answered, case, f"What is {case.grads} made of?")
    added = _additions(case)
    outgoing = []
    if case.paths is not None and case.node is not None:
        outgoing = [(user, case.paths.outgoing(user, place)) for user, place, _ in case.paths.users(case.node.id)]
    evidence = [f"{described(user)} passes it {magnitude(one)}" for user, one in outgoing if one is not None]
    changes = [] if case.node is None else getattr(case.paths.steps.get(case.node.id), "changes", [])
    evidence += [f"the hook `{change.hook}` changed it" for change in changes]
    evidence += [f"it was added to {added} times: it contains the gradients of {added + 1} backwards"] if added else []
    parts = len(evidence) - len(changes) - bool(added)
    verdict = f"{magnitude(case.grad)} over {case.grad.size} elements"
    verdict += f": the sum of {parts} gradients" if parts > 1 else ", from one use" if parts == 1 else ""
    if not added:
        return answer(verdict, evidence=evidence, path=path_of(case))
    return answer(
        verdict,
        rule="BL703",
        cause="backward() adds to .grad, and nothing set it to zero in between.",
        cure="Call optimizer.zero_grad() before each backward(), unless you want to accumulate gradients.",
        evidence=evidence,
        path=path_of(case),
    )

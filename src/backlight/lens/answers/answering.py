"""From the facts about a gradient to an answer."""

from backlight.lens.answers.absent import CURE, answered, cut_lines, path_of, unreachable, why_none
from backlight.lens.answers.answer import Answer
from backlight.lens.answers.case import Case
from backlight.lens.answers.culprits import Culprit, growth
from backlight.lens.answers.non_finite import non_finite_in_backward, non_finite_in_forward
from backlight.lens.answers.vanishing import suspect, zero_at
from backlight.lens.answers.ways import all_zero, described, has_non_finite, magnitude, size_of
from backlight.lens.records.nodes import Summary

HUGE = 1e3  # a gradient whose elements are so large in the mean, and so many times the values, is called huge


def answer_to(case: Case) -> Answer:
    """Answer for one tensor."""
    if case.grad is None:
        return why_none(case)
    if has_non_finite(case.grad):
        return _why_non_finite(case)
    if all_zero(case.grad):
        return _why_zero(case)
    return _why_huge(case) if _is_huge(case) else _made_of(case)


def _why_zero(case: Case) -> Answer:
    question = f"Why is {case.grads} 0?"
    culprit = None
    if case.paths is not None and case.node is not None:
        culprit = (
            zero_at(case.paths, case.node.id) if case.node.id in case.paths.steps else suspect(case.paths, case.node.id)
        )
    if culprit is not None:
        return _blaming(case, question, culprit)
    if case.paths is not None and case.node is not None and not case.paths.path():
        return answered(
            case,
            question,
            f"no backward that was seen reached {case.name}: its .grad was set to 0",
            cause=unreachable(case),
            cure="; ".join(CURE[cut.reason] for cut in case.cuts[:1]) or "Compute the loss from it.",
            evidence=cut_lines(case.cuts),
        )
    return answered(
        case,
        question,
        f"all {size_of(case.grad)} elements are 0, and no node here shows why",
        cause="The loss does not change with it, or zero_grad(set_to_none=False) came after backward().",
        cure="Run the forward and backward inside `with lens.watch():` and ask again there.",
        path=path_of(case),
    )


def _why_non_finite(case: Case) -> Answer:
    question = f"Why {_non_finite_elements(case)}?"
    culprit = None
    if case.paths is not None:
        culprit = non_finite_in_forward(case.paths) or non_finite_in_backward(case.paths)
    if culprit is None:
        return answered(
            case,
            question,
            f"{magnitude(case.grad)} elements, and where that began was not seen",
            cause="A NaN or an infinity in the forward, or a derivative that is infinite.",
            cure="Run the forward and backward inside `with lens.watch():` and ask again there.",
            rule="BL802" if case.grad.nans else "BL804",
        )
    rule = "BL805" if culprit.forward and culprit.node.edges else "BL802" if case.grad.nans else "BL804"
    return _blaming(case, question, culprit, rule)


def _non_finite_elements(case: Case) -> str:
    """`is 1 of the 2 elements of t.grad NaN`, `is w.grad NaN` of a single one."""
    grad, size = case.grad, size_of(case.grad)
    kinds = [(count, name) for count, name in ((grad.nans, "NaN"), (grad.infs, "infinite")) if count]
    name = " or ".join(name for _, name in kinds)
    count = sum(count for count, _ in kinds)
    if size == 1:
        return f"is {case.grads} {name}"
    if count == size:
        return f"are all {size} elements of {case.grads} {name}"
    return f"{'is' if count == 1 else 'are'} {count} of the {size} elements of {case.grads} {name}"


def _blaming(case: Case, question: str, culprit: Culprit, rule: str = "") -> Answer:
    verdict = culprit.what[0].upper() + culprit.what[1:]
    return answered(
        case,
        question,
        verdict,
        rule=rule,
        cause=culprit.cause,
        cure=culprit.cure,
        evidence=culprit.seen,
        path=path_of(case),
    )


def _is_huge(case: Case) -> bool:
    size = _mean_size(case.grad)
    values = case.node.outputs[0] if case.node is not None and case.node.outputs else None
    own = 0.0 if values is None or values.norm is None else _mean_size(values)
    return size is not None and size > HUGE * max(1.0, own)


def _mean_size(summary: Summary) -> float | None:
    """Return the root of the mean square of a tensor's elements."""
    return None if summary.norm is None or not size_of(summary) else summary.norm / size_of(summary) ** 0.5


def _why_huge(case: Case) -> Answer:
    question = f"Why is {case.grads} huge ({magnitude(case.grad)})?"
    grown = [] if case.paths is None else [(node, factor) for node, factor in growth(case.paths) if factor > 1][:3]
    added = _additions(case)
    evidence = [f"{described(node)} makes the gradient {factor:.4g} times larger" for node, factor in grown]
    evidence += [f"its .grad was added to {added} times since it was made"] if added else []
    if added and not (grown and grown[0][1] > added + 1):
        verdict = f"gradients of {added + 1} backwards are added up in it"
        return answered(case, question, verdict, rule="BL703", evidence=evidence, path=path_of(case))
    if grown:
        start = case.paths.incoming(case.paths.path()[0].id)
        total = f"{case.grad.norm / start.norm:.4g} times" if start is not None and start.norm else "grown"
        return answered(
            case,
            question,
            f"it is {total} what backward started with: {described(grown[0][0])} alone gives {grown[0][1]:.4g} times",
            evidence=evidence,
            cause="Large factors on the way multiply.",
            cure="Scale these values down (normalise, initialise smaller, mean instead of sum), or clip gradients.",
            path=path_of(case),
        )
    return answered(
        case,
        question,
        f"its elements are {_mean_size(case.grad):.4g} large in the mean",
        evidence=evidence,
        cause="Large values on the way, or a loss that sums over many elements.",
        cure="Run the forward and backward inside `with lens.watch():` and ask again there.",
        path=path_of(case),
    )


def _additions(case: Case) -> int:
    """Return how often a gradient was added to one that was there."""
    if case.paths is None or case.node is None:
        return 0
    steps = [step for one in case.paths.record.backwards for step in one.steps if step.node == case.node.id]
    return sum(step.grad_before is not None and not all_zero(step.grad_before) for step in steps)


# --- nothing wrong ----------------------------------------------------------------------------------------------------


def _made_of(case: Case) -> Answer:
    question = f"What is {case.grads} made of?"
    added = _additions(case)
    outgoing = []
    if case.paths is not None and case.node is not None:
        outgoing = [(user, case.paths.outgoing(user, place)) for user, place, _ in case.paths.users(case.node.id)]
    evidence = [f"{described(user)} hands it {magnitude(one)}" for user, one in outgoing if one is not None]
    changes = [] if case.node is None else getattr(case.paths.steps.get(case.node.id), "changes", [])
    evidence += [f"the hook `{change.hook}` changed it" for change in changes]
    evidence += [f"it was added to {added} times: gradients of {added + 1} backwards are in it"] if added else []
    parts = len(evidence) - len(changes) - bool(added)
    verdict = f"{magnitude(case.grad)} over {size_of(case.grad)} elements"
    verdict += f": the sum of {parts} gradients" if parts > 1 else ", from one use" if parts == 1 else ""
    return answered(
        case,
        question,
        verdict,
        rule="BL703" if added else "",
        cause="backward() adds to .grad, and nothing set it to zero in between." if added else "",
        cure="Call optimizer.zero_grad() before each backward(), unless gradients are to be accumulated."
        if added
        else "",
        evidence=evidence,
        path=path_of(case),
    )

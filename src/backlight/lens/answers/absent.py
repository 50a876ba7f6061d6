"""Why a tensor has no gradient: the first explanation that fits."""

from backlight.lens.answers.answer import Answer
from backlight.lens.answers.case import Case
from backlight.lens.answers.ways import at, described, magnitude
from backlight.lens.doctor.rule_index import rule as find_rule
from backlight.lens.records.nodes import DETACHES, NO_DERIVATIVE, NUMBER, UNRECORDED, Cut

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
    case: Case, question: str, verdict: str, *, rule: str = "", cause="", cure="", evidence=(), path=()
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
    for explain in (
        _requires_none,
        _is_no_leaf,
        _loss_has_no_graph,
        _not_reached,
        _given_to_grad,
        _stopped,
        _gone,
        _not_yet,
    ):
        found = explain(case, f"Why is {case.grads} None?")
        if found is not None:
            return found
    return answered(
        case,
        f"Why is {case.grads} None?",
        f"No backward has written it, or it was set to None since; {case.name} is a leaf and requires grad.",
        cause="Nothing here knows of a backward.",
        cure=f"Ask why({case.name}, loss), or inside `with lens.watch():`, so that the graph can be looked at.",
    )


def _requires_none(case: Case, question: str) -> Answer | None:
    if case.requires_grad:
        return None
    if case.cut is not None:
        return answered(
            case,
            question,
            f"{case.name} has no graph: `{case.cut.op}` at {at(case.cut.place)} {CUT[case.cut.reason]}",
            rule="BL103",
            cause="What it was computed from requires grad; it itself does not.",
            cure=CURE[case.cut.reason],
        )
    if not case.floats:
        verdict = f"{case.name} is {case.dtype}: only floating point tensors have gradients"
        return answered(
            case, question, verdict, rule="BL103", cure="Make it of floats: .float(), before the computation."
        )
    return answered(
        case,
        question,
        f"{case.name} does not require grad, so no gradient is computed for it",
        rule="BL103",
        cause="It was made without requires_grad=True, frozen, detached, or computed under no_grad().",
    )


def _is_no_leaf(case: Case, question: str) -> Answer | None:
    if case.is_leaf or case.retains_grad:
        return None
    place = "" if case.place is None else f" at {at(case.place)}"
    leaves = [] if case.paths is None or case.node is None else _leaves_behind(case)
    evidence = [f"it was computed from the leaf {name}, which has {has}" for name, has in leaves[:3]]
    return answered(
        case,
        question,
        f"{case.name} is no leaf: {case.made} made it{place}, and only leaves keep their gradient",
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
        stack.extend(edge.to for edge in node.edges if edge is not None)
    return found


def _loss_has_no_graph(case: Case, question: str) -> Answer | None:
    loss = case.loss
    if loss is None or (loss.requires_grad and not loss.is_leaf):
        return None
    verdict, cure = unreachable(case), ""
    if loss.requires_grad:
        return answered(case, question, verdict, rule="BL212")
    rule = "BL208"
    cut = loss.cut or (case.cuts[0] if case.cuts else None)
    if cut is not None:
        rule = {UNRECORDED: "BL211", NO_DERIVATIVE: "BL209"}.get(cut.reason, "BL210")
        cure = CURE[cut.reason]
    return answered(case, question, verdict, rule=rule, cure=cure, evidence=cut_lines(case.cuts))


def _not_reached(case: Case, question: str) -> Answer | None:
    if case.paths is None or case.paths.path() or case.again or not case.paths.roots:
        return None
    cuts = case.cuts
    return answered(
        case,
        question,
        unreachable(case),
        rule="BL707" if case.parameter else "",
        cause=f"What is computed from it leaves the graph there: `{cuts[0].op}` {CUT[cuts[0].reason]}." if cuts else "",
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
        return f"{name} is itself a leaf: it was made of numbers, with requires_grad=True, and has no graph"
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
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return [f"the leaves that it does reach: {', '.join(names[:5])}{more}"] if names else ["it reaches no leaf at all"]


def _stopped(case: Case, question: str) -> Answer | None:
    """A backward ran and reached the tensor's graph, and no gradient came along."""
    paths = case.paths
    if paths is None or paths.backward is None or case.node is None or case.node.id in paths.steps:
        return None
    if paths.backward.problem is not None:
        verdict = f"backward stopped before it came to {case.name}: {paths.backward.problem.splitlines()[0]}"
        return answered(
            case, question, verdict, cause="An exception ended the run.", cure="See the exception.", path=path_of(case)
        )
    last = next((node for node in reversed(paths.path()) if node.id in paths.steps), None)
    if last is None:
        return None
    return answered(
        case,
        question,
        f"no gradient came further than {described(last)}",
        cause="The op (or a Function's backward) handed on None for this input, or other inputs were asked for.",
        cure="Return a gradient for this input in backward(), or leave inputs= out.",
        path=path_of(case),
    )


def _given_to_grad(case: Case, question: str) -> Answer | None:
    if case.paths is None or case.paths.backward is None or case.paths.backward.into_grad:
        return None
    return answered(
        case,
        question,
        f"autograd.grad() at {at(case.paths.backward.place)} returns gradients and writes no .grad",
        cause="Only backward() adds to .grad.",
        cure="Use what autograd.grad() returned, or call backward().",
        path=path_of(case),
    )


def _gone(case: Case, question: str) -> Answer | None:
    ran = case.paths is not None and case.node is not None and case.node.id in case.paths.steps
    if not ran and not (case.loss is not None and case.loss.freed):
        return None
    arrived = case.paths.incoming(case.node.id) if ran else None
    evidence = [f"a gradient had arrived: {magnitude(arrived)}"] if arrived is not None else []
    return answered(
        case,
        question,
        f"backward has run and reached {case.name}; its .grad was set to None since",
        rule="BL704",
        cause="zero_grad() came after backward(), and sets .grad to None.",
        cure="Read .grad between backward() and zero_grad().",
        evidence=evidence,
        path=path_of(case),
    )


def _not_yet(case: Case, question: str) -> Answer | None:
    if case.paths is None or not case.paths.path() or case.paths.backward is not None:
        return None
    name = "the loss" if case.loss is None else case.loss.name
    return answered(
        case,
        question,
        f"backward() of {name} has not run; its graph does reach {case.name}",
        cause="There is no gradient yet.",
        cure=f"Call {name}.backward()." if case.loss is not None else "Call backward() of the loss.",
        path=path_of(case),
    )

"""Steps of an optimizer that find no gradient at all, and why there is none.

NOTE [Why a step finds nothing]
Three mistakes look the same to `step()`. zero_grad() came between backward() and step(): a gradient had arrived since
the last step. The optimizer holds other parameters than those that run: some got gradients and are in no optimizer.
What it holds is cut off from the loss. Each is looked for at the first steps, while all names are still alive; it is
reported at the end, and not if an earlier finding is the reason.
"""

import dataclasses
from types import FrameType

from backlight.dispatch.observers import Run
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.optimizers import Optimizers
from backlight.lens.doctor.detectors.slips.written import Written
from backlight.lens.doctor.evidence import counted, name_of, owned_name
from backlight.lens.doctor.flow import FlowCut, Leaf
from backlight.lens.doctor.graph import Optimizer, Tensor
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of, place_of_frame
from backlight.lens.doctor.rule_index import rule
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.finding import Finding
from backlight.lens.records.record import Place

SHOWN, LOOKS, CYCLES = 4, 4, 3
REASONS = {"BL208", "BL209", "BL210", "BL211", "BL212", "BL505"}  # why a backward reached nothing


@dataclasses.dataclass(slots=True)
class Empty:
    """Steps of one optimizer, at one line, that found nothing.

    Args:
        place: their line.
        holds: what the optimizer is called.
        names: of its parameters.
        leaves: what is known of them.
        times: how many steps.
        backwards: how many had run before the last of them.
        found: the finding, once the reason is known.
    """

    place: Place | None
    holds: str
    names: list[str]
    leaves: list[Leaf | None]
    times: int = 0
    backwards: int = 0
    found: Finding | None = None


@dataclasses.dataclass(slots=True)
class Lost:
    """Gradients of one line's backward that an optimizer's zero_grad() cleared unused, between its steps.

    Args:
        backward: that line.
        place: the zero_grad()'s.
        cleared: how often since the last step.
        shown: how often before the last step.
        cycles: steps in a row before each of which this happened equally often.
    """

    backward: Instruction | None = None
    place: Place | None = None
    cleared: int = 0
    shown: int = 0
    cycles: int = 0

    def count(self, backward: Instruction, place: Place | None) -> None:
        """Note that a gradient was cleared."""
        if backward != self.backward:
            self.cycles = self.cleared = 0
        self.backward, self.place, self.cleared = backward, place, self.cleared + 1

    def stepped(self, used: set) -> bool:
        """Note a step that used gradients of some lines; return whether it is certain now."""
        cleared, self.cleared = self.cleared, 0
        same = cleared > 0 and used == {self.backward} and cleared in (self.shown or cleared, self.shown)
        self.cycles = self.cycles + 1 if same else 0
        self.shown = cleared
        return self.cycles == CYCLES


class EmptySteps(Detector):
    """Finds out why steps find nothing (see NOTE [Why a step finds nothing])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.before: set[int] = set()  # optimizers that step, and had no gradient when they began
        self.fresh: WeakIdDict[Instruction] = WeakIdDict()  # parameters with an unused gradient -> backward
        self.wiped: WeakIdDict[tuple] = WeakIdDict()  # of these, those that were cleared -> (backward, line)
        self.empty: dict[tuple, Empty] = {}
        self.read: WeakIdDict[None] = WeakIdDict()  # parameters whose new gradient the program has read itself
        self.lost: dict[int, Lost] = {}  # optimizer -> gradients that it cleared unused since its last step

    def begin(self) -> None:
        """Watch `Module.zero_grad` too."""
        self.watch.after(self.engine.module.nn.Module, "zero_grad", self._module_cleared)

    def _module_cleared(self, frame: FrameType, out: None, args: tuple, kwargs: dict) -> None:
        self._wipe(list(args[0].parameters()), place_of_frame(frame))

    def cleared(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Note which gradients were cleared before a step used them."""
        backwards = {self.fresh.get(param) for param in params} - {None}
        read = any(param in self.read for param in params)
        if len(backwards) == 1 and not read and not self.watch.stepping:  # L-BFGS clears within its step
            self.lost.setdefault(id(optimizer), Lost()).count(backwards.pop(), place)
        self._wipe(params, place)

    def read_grad(self, tensor: Tensor, grad: Tensor | None, frame: FrameType) -> None:
        """Note a gradient that the program itself uses."""
        if grad is not None and tensor in self.fresh:
            self.read[tensor] = None

    def _wipe(self, params: list, place: Place | None) -> None:
        for param in params:
            self.read.pop(param)
            fresh = self.fresh.pop(param)
            if fresh is not None:
                self.wiped[param] = fresh, place

    def accumulated(self, run: Run, tensor: Tensor, arrived: Tensor, before: Tensor | None) -> None:
        """Note that a gradient came."""
        self.fresh[tensor] = Instruction(run.code, run.lasti)
        self.wiped.pop(tensor)

    def stepping(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Note a step that finds nothing."""
        if all(grad is None for grad in grads):
            self.before.add(id(optimizer))

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Look for the reason of a step that had nothing, before and after."""
        lost = self.lost.setdefault(id(optimizer), Lost())
        if lost.stepped({self.fresh.get(param) for param in params} - {None}):
            self._report_lost(optimizer, lost, place)
        found_none = id(optimizer) in self.before and all(grad is None for grad in grads)
        self.before.discard(id(optimizer))
        if found_none and not self.watch.detectors[Optimizers].left_behind(params):
            self._note(optimizer, params, place)
        for param in params:
            self.fresh.pop(param)
            self.wiped.pop(param)

    def _report_lost(self, optimizer: Optimizer, lost: Lost, place: Place | None) -> None:
        name = name_of(optimizer)
        self.report(
            "zero-grad-between-accumulations",
            lost.place,
            f"Between two steps at {brief(place)}, {name}.zero_grad() at {brief(lost.place)} cleared {lost.shown} "
            f"gradients of backward() at {brief_at(lost.backward)} before any step had used them, {CYCLES} times in a "
            f"row.",
            f"{name}.step() saw only the gradient of the last backward.",
            cure=f"call {name}.zero_grad() directly after {name}.step()",
        )

    def _note(self, optimizer: Optimizer, params: list, place: Place | None) -> None:
        flow, key = self.watch.flow, (id(optimizer), place and (place.file, place.line))
        known = self.empty.get(key)
        if known is None:
            names = [self._name(one) for one in params[: SHOWN + 1]]
            known = self.empty[key] = Empty(place, name_of(optimizer), names, [flow.leaf_of(one) for one in params])
        known.times += 1
        known.backwards = flow.backwards
        if known.found is None and known.times <= LOOKS and flow.backwards:
            known.leaves = [flow.leaf_of(one) for one in params]
            known.found = (
                self._of_cleared(known, params)
                or self.watch.detectors[Written].reason(known.holds, known.leaves, known.place)
                or self._of_others(known)
                or self._of_copies(known)
            )

    def _name(self, param: Tensor) -> str:
        name = self.watch.flow.name_of(param)
        return (owned_name(param, self.engine) or name) if name.startswith("a tensor") else name

    def _of_cleared(self, known: Empty, params: list) -> Finding | None:
        """Return the finding of a zero_grad() that cleared what the step was for."""
        wiped = [param for param in params if param in self.wiped]
        if not wiped:
            return None
        backward, where = self.wiped.get(wiped[0])
        return rule("step-without-gradients").found(
            where or known.place,
            f"backward() at {brief_at(backward)} gave gradients to {_listed([self._name(one) for one in wiped])}.",
            f"zero_grad() at {brief(where)} cleared them before {known.holds}.step() at {brief(known.place)}.",
            title=f"zero_grad() clears the gradients before {known.holds}.step() has used them",
            cause="zero_grad() stands between backward() and step()",
            cure="call zero_grad() before backward(), or after step()",
        )

    def _of_others(self, known: Empty) -> Finding | None:
        """Return the finding of gradients that come to parameters which no optimizer holds."""
        cut, others = self._cut_of(known), self._unheld()
        if not others and cut is None:
            return None
        evidence = [self._held(known)]
        if others:
            get = "gets gradients and is" if len(others) == 1 else "get gradients and are"
            evidence.append(f"{_listed(others)} {get} in no optimizer.")
        if cut is None:
            evidence.append(f"No backward has reached {_listed(known.names)}.")
            title = f"the parameters in {known.holds} are not those that get gradients"
            cause = (
                "the optimizer was created for another model than the one that runs, or the model was copied or "
                "re-created"
            )
            cure = f"create {known.holds} from the parameters of the model that runs, after creating that model"
        else:
            at = f"{cut.call} at {cut.line}"
            evidence.append(
                f"The result computed from {_listed(known.names)} goes through {at} and has no graph after it."
            )
            title = f"{known.holds} finds no gradient: {at} cuts its parameters off from the loss"
            cause = f"{at} cuts off the parameters of {known.holds}"
            cause += "; and the parameters that get gradients are in no optimizer" if others else ""
            cure = f"remove the call at {cut.line} if these must be trained"
            cure += f"; give {_listed(others)} to an optimizer, if they must" if others else ""
        return rule("step-without-gradients").found(known.place, *evidence, title=title, cause=cause, cure=cure)

    def _held(self, known: Empty) -> str:
        count = counted(len(known.leaves), "parameter")
        return f"{known.holds} holds {count}, and .grad of each is None at {brief(known.place)}."

    def _unheld(self) -> list[str]:
        """Return the names of the parameters that got gradients and are in no optimizer."""
        held, kind = self.watch.optimised(), self.engine.module.nn.Parameter
        alive = [one.tensor() for one in self.watch.flow.leaves if one.reached]
        return [self._name(one) for one in alive if isinstance(one, kind) and id(one) not in held]

    def _cut_of(self, known: Empty) -> FlowCut | None:
        """Return what cuts an optimizer's parameters off from what backwards started from."""
        flow = self.watch.flow
        leaves = [leaf for leaf in known.leaves if leaf is not None and not leaf.reached]
        recent = next((cut for leaf in leaves for cut in flow.cuts_before(leaf, flow.recent_cuts)), None)
        return recent or next((cut for leaf in leaves for cut in flow.cuts_before(leaf, flow.root_cuts)), None)

    def _of_copies(self, known: Empty) -> Finding | None:
        """Return the finding of gradients that come to new leaves, which were made of what the optimizer holds."""
        flow = self.watch.flow
        for leaf in (one for one in known.leaves if one is not None):
            new = next((one for one in flow.leaves if one.upstream & leaf.bit and one.reached), None)
            cuts = [] if new is None else flow.cuts_before(leaf, new.cuts)
            if cuts:
                return rule("step-without-gradients").found(
                    place_of(cuts[0]),
                    self._held(known),
                    f"{cuts[0].call} at {cuts[0].line} made new leaves from values computed from "
                    f"{_listed(known.names)}; "
                    "the gradients of backward() end there.",
                    title=f"{known.holds} finds no gradient: {cuts[0].call} at {cuts[0].line} cuts off its parameters",
                    cause=f"{cuts[0].call} makes new leaves: backward() stops there",
                    cure="keep the values in the graph: remove detach(), and compute inner gradients with "
                    "create_graph=True",
                )
        return None

    def end(self, problem: BaseException | None) -> None:
        """Report the steps, unless the reason was reported."""
        for known in self.empty.values():
            reached = any(leaf is not None and leaf.reached for leaf in known.leaves)
            if known.backwards and not reached and self.session.has(REASONS):
                continue
            found = known.found or self._without_reason(known)
            self.session.add(dataclasses.replace(found, times=known.times))

    def _without_reason(self, known: Empty) -> Finding:
        seen, cause = "No backward() has run yet.", "backward() is not called before step()"
        if known.backwards:
            when = " before the last of them" if known.times > 1 else ""
            ran = f"{counted(known.backwards, 'backward')} had run{when}"
            seen, cause = f"{ran}, but left no gradient in {_listed(known.names)}.", None
        return rule("step-without-gradients").found(known.place, self._held(known), seen, cause=cause)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (" …" if len(names) > SHOWN else "")

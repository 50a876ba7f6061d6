"""States that are detached in each step of a loop: what came before the loop learns next to nothing.

NOTE [A chain of single steps]
Within one backward a line detaches a state again and again, each time one that was computed from the last, and nothing
else leads back: the graph of a state ends at the detach before. What the first state was computed by, an encoder, and
what computes the steps have no parameter in common, so that the encoder can serve the steps through the detach alone.
That is how a state is cut between chunks of a sequence, where it is cut once a backward. Refinements that detach their
proposals share features with what made the first; layers that learn one by one each have parameters of their own;
samplers and attacks learn nothing in their steps.
"""

from dataclasses import dataclass, field

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.graph import Optimizer, Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

CHAIN, BACKWARDS, LOOKS = 4, 2, 8
MOST = 32  # detaches of a line before one backward whose graphs are looked at


@dataclass(slots=True)
class Chain:
    """What a line detached since the last backward: how often, what the first state and the others were computed by."""

    length: int = 0
    encoder: set[int] = field(default_factory=set)  # ids of parameters
    steps: set[int] = field(default_factory=set)
    whole: bool = True  # whether each state came from the last, by the same parameters


class DetachedStates(Detector):
    """Finds them (see NOTE [A chain of single steps])."""

    calls = frozenset({"detach"})

    def __init__(self, watch):
        super().__init__(watch)
        self.chains: dict[Instruction, Chain] = {}
        self.states: WeakIdDict[Instruction] = WeakIdDict()  # detached -> line
        self.times: dict[Instruction, int] = {}
        self.pending: dict[Instruction, Chain] = {}
        self.looks = 0

    def called(self, call: Call) -> None:
        """Note a detach of a state."""
        if self.looks >= LOOKS or not self.watch.inputs or not self.engine.module.is_grad_enabled():
            return
        state = self.watch.inputs[0]
        if not is_computed(state) or not state.dim():
            return
        line, flow = Instruction(call.code, call.lasti), self.watch.flow
        chain = self.chains.setdefault(line, Chain())
        if chain.length >= MOST:
            chain.length += 1
            return
        kind = self.engine.module.nn.Parameter
        behind = {id(one) for one in flow.leaves_of([state.grad_fn]) if isinstance(one, kind)}
        chain.length += 1
        if chain.length == 1:
            chain.encoder = behind
            return
        earlier = any(cut.code is call.code and cut.lasti == call.lasti for cut in flow.cuts_in(flow.of(state).cuts))
        chain.whole = chain.whole and earlier and chain.steps in (set(), behind)
        chain.steps = behind

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Keep the chains of this step, until an optimizer says what learns."""
        self.looks += bool(self.chains)
        for line, chain in self.chains.items():
            if chain.length >= CHAIN and chain.whole and chain.encoder and chain.steps:
                if not chain.encoder & chain.steps:
                    self.pending[line] = chain
        self.chains.clear()

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Report the chains both sides of which learn."""
        pending, self.pending = self.pending, {}
        learns = {id(one) for one, grad in zip(params, grads) if grad is not None}
        for line, chain in pending.items():
            if not (chain.encoder & learns and chain.steps & learns):
                continue
            self.times[line] = self.times.get(line, 0) + 1
            if self.times[line] != BACKWARDS:
                continue
            self.report(
                "state-detached-in-each-step",
                place_of(line),
                f"{brief_at(line)} detached a state {chain.length} times before one backward, each computed from the "
                f"previous one: no gradient passes from one step to the previous one.",
                f"The first was computed by {counted(len(chain.encoder), 'parameter')} that no step uses: the steps "
                f"give them no gradient.",
            )

"""Teachers that learn: the target of a loss is another model's output, with its graph, and the optimizer holds both.

NOTE [What a teacher is]
Output and target of a loss require grad, have no parameter in common, and one optimizer holds parameters of both. Two
networks may be trained to agree; it is a mistake if the target's model runs in eval mode, if its name says that it is
a teacher, or if the loss is a divergence, whose target is a distribution to be learned from.

NOTE [An encoder as its own target]
A predictor behind an encoder is compared by cosine similarity with the encoder itself, both with their graphs, and
nothing else holds the encoder apart: no other loss of the step has a target from outside, the similarity is compared
with nothing, and each output is compared once, so that there are no negative pairs.
"""

import re

from backlight.dispatch.observers import Call
from backlight.engine.provenance import frame_of
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.evidence import counted, name_in
from backlight.lens.doctor.graph import Module, Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

LOSSES = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "cross_entropy", "cosine_similarity"}
OUTSIDE = {"nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss"}
OWN = 4
TEACHER = re.compile(r"teacher|(?:^|_)(?:ema|momentum|target|frozen|reference|ref|pretrained|expert)(?:_|$)")


class Teachers(Detector):
    """Finds them (see NOTE [What a teacher is], NOTE [An encoder as its own target])."""

    calls = frozenset({*LOSSES, *OUTSIDE, "sub"})

    def __init__(self, watch):
        super().__init__(watch)
        self.ran: WeakIdDict[tuple[Instruction | None, bool]] = WeakIdDict()  # outermost modules -> train mode
        self.pending: dict[tuple[int, int], tuple[Instruction, str]] = {}
        self.own: dict[Instruction, int] = {}  # lines that compare an output with a part of its own model's -> steps
        self.compared: dict[Instruction, None] = {}  # such lines of this step
        self.outputs: WeakIdDict[None] = WeakIdDict()  # what was compared in this step
        self.similarities: WeakIdDict[None] = WeakIdDict()
        self.held_apart = False  # whether something else than similarity is asked for in this step
        self.done = False

    def entered(self, module: Module, path: str) -> None:
        """Note the mode of an outermost module."""
        if not path:
            self.ran[module] = None, module.training

    def called(self, call: Call) -> None:
        """Look at the two sides of a loss."""
        inputs = self.watch.inputs
        if self.done or len(inputs) < 2:
            return
        if not (is_computed(inputs[0]) and is_computed(inputs[1])):
            asks = self.watch.name != "sub" or inputs[0] in self.similarities or inputs[1] in self.similarities
            self.held_apart = self.held_apart or asks
            return
        if inputs[0].shape != inputs[1].shape:
            return
        flow = self.watch.flow
        output, target = flow.of(inputs[0]).leaves, flow.of(inputs[1]).leaves
        if self.watch.name == "cosine_similarity" and output != target and output & target == target:
            self.held_apart = self.held_apart or inputs[0] in self.outputs or inputs[1] in self.outputs
            self.outputs[inputs[0]] = self.outputs[inputs[1]] = self.similarities[call.out] = None
            self.compared[Instruction(call.code, call.lasti)] = None
        elif output and target and not output & target:
            self.pending[output, target] = Instruction(call.code, call.lasti), self.watch.name

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Report a predictor's output that is compared with the encoder's, where both have their graphs."""
        for line in () if self.held_apart else self.compared:
            self.own[line] = self.own.get(line, 0) + 1
            if self.own[line] == OWN:
                self.report(
                    "bootstrapped-target",
                    place_of(line),
                    f"cosine_similarity at {brief_at(line)} compares an output with another one of the same model, of "
                    "which it has all parameters and more: a predictor after the same encoder. Both require grad.",
                    "Without negative pairs, the loss is smallest if the output is the same for all inputs.",
                    cause="The encoder's output is the target and is not detached.",
                    cure="Detach the target: F.cosine_similarity(p, z.detach()).",
                )
        self.compared.clear()
        self.outputs.clear()
        self.held_apart = False

    def stepped(self, optimizer, params: list, grads: list, place: Place | None) -> None:
        """Judge the pairs of which the optimizer holds both sides."""
        if not self.pending or self.done:
            return
        pending, self.pending = self.pending, {}
        flow = self.watch.flow
        held = 0
        for param, grad in zip(params, grads):
            leaf = flow.leaf_of(param) if grad is not None else None
            held |= 0 if leaf is None else leaf.bit
        for (output, target), (line, name) in pending.items():
            if not (output & held and target & held):
                continue
            for wanted in (target, output):
                found = self._teacher(wanted, name, line, wanted is target)
                if found is not None:
                    self._report(optimizer, found, wanted & held, line, name, place)
                    return

    def _teacher(self, leaves: int, loss: str, line: Instruction, is_target: bool) -> tuple[str, Module] | None:
        """Return the name of the module that has some leaves, if it is a teacher."""
        tensors = {id(one.tensor()) for one in self.watch.flow.leaves_in(leaves)}
        for module, (_, training) in self.ran.items():
            own = [param for param in module.parameters() if id(param) in tensors]
            if not own or len(own) != len(tensors):
                continue
            name = name_in(frame_of(line.code), module) or type(module).__name__
            divergence = is_target and loss in ("kl_div", "cross_entropy")
            if divergence or not training or TEACHER.search(name.lower()):
                return name, module
        return None

    def _report(self, optimizer, found: tuple, leaves: int, line: Instruction, loss: str, place: Place | None) -> None:
        self.done = True
        name, module = found
        made = self.watch.detectors[Constructions].optimizers.get(optimizer, (0, None))[1]
        mode = "" if module.training else ", which runs in eval mode,"
        self.report(
            "teacher-in-optimizer",
            place if made is None else place_of(made),
            f"The target of {loss} at {brief_at(line)} is the output of {name}{mode}, with its graph.",
            f"The optimizer that steps at {brief(place)} holds {counted(bin(leaves).count('1'), 'parameter')} of it.",
            cure=f"Run {name} under torch.no_grad(), and give the optimizer only the student's parameters.",
        )

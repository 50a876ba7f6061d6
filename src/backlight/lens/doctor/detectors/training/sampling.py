"""Samples that cut the gradient: sample() where rsample() exists, and no score function takes its place.

NOTE [When a sample should be differentiable]
sample() draws under no_grad(). With its log-probability in the loss (REINFORCE, importance weights) that is right. If
the distribution could draw by rsample(), its parameters require grad, the sample goes into what is differentiated, and
no log_prob() of it is ever taken, the parameters do not learn by what the sample does.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from backlight.dispatch.observers import Call
from backlight.lens.doctor.corrections.lines import replace
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief, brief_at, is_users
from backlight.lens.doctor.source import Spot, spot_of, spot_of_frame
from backlight.lens.doctor.weak_id_dict import WeakIdDict

FOLLOWED = {
    "view",
    "reshape",
    "squeeze",
    "unsqueeze",
    "tanh",
    "clamp",
    "exp",
    "mul",
    "add",
    "sub",
    "cat",
    "sigmoid",
    "to",
}
USES = {"linear", "matmul", "mm", "bmm", "addmm", "conv1d", "conv2d", "conv_transpose2d", "mse_loss", "pow", "square"}
THRICE = 3


@dataclass(slots=True)
class Drawn:
    """A line that draws: the distribution's kind, how often, how often the draw was used, whether it was scored."""

    spot: Spot
    kind: str
    times: int = 0
    used: int = 0
    scored: bool = False
    use: Instruction | None = None


class Sampling(Detector):
    """Follows samples (see NOTE [When a sample should be differentiable])."""

    calls = frozenset({*FOLLOWED, *USES, "normal"})

    def __init__(self, watch):
        super().__init__(watch)
        self.lines: dict[tuple, Drawn] = {}
        self.drawn: WeakIdDict[Drawn] = WeakIdDict()
        self.parameters: WeakIdDict[Drawn] = WeakIdDict()  # what was drawn from

    def begin(self) -> None:
        """Watch the distributions that can draw by rsample()."""
        self.after_methods_of_distributions(sample=self._sampled, log_prob=self._scored)

    def _sampled(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        distribution = args[0]
        if not is_users(frame.f_code.co_filename) or not distribution.has_rsample:
            return
        if not self.engine.module.is_grad_enabled() or not self.engine.is_tensor(out):
            return
        if self._requires_grad(distribution):
            spot = spot_of_frame(frame)
            if spot is not None:
                parameters = [one for one in vars(distribution).values() if self.engine.is_tensor(one)]
                self._note(out, spot.without_frame(), type(distribution).__name__, parameters)

    def _requires_grad(self, distribution: Any, depth: int = 2) -> bool:
        for value in list(vars(distribution).values()):
            if self.engine.is_tensor(value) and value.requires_grad:
                return True
            if depth and type(value).__module__.startswith("torch.distributions") and hasattr(value, "__dict__"):
                if self._requires_grad(value, depth - 1):
                    return True
        return False

    def _note(self, out: Any, spot: Spot, kind: str, parameters: Iterable[Tensor]) -> None:
        known = self.lines.setdefault((spot.file, spot.position), Drawn(spot, kind))
        known.times += 1
        self.drawn[out] = known
        for one in parameters:
            self.parameters[one] = known

    def _scored(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        value = args[1] if len(args) > 1 else kwargs.get("value")
        known = self.drawn.get(value)
        if known is not None:
            known.scored = True

    def called(self, call: Call) -> None:
        """Follow a sample to what is differentiated."""
        if call.name == "normal":
            self._look_at_normal(call)
            return
        if not len(self.drawn):
            return
        known = next((one for tensor in self.watch.inputs if (one := self.drawn.get(tensor)) is not None), None)
        if known is None:
            return
        if self.watch.name == "sub" and any(self.parameters.get(one) is known for one in self.watch.inputs):
            known.scored = True  # a log-probability by its formula: the distance from the mean
        elif any(out.requires_grad for out in self.watch.outs):
            known.used += 1
            known.use = known.use or Instruction(call.code, call.lasti)
        elif self.watch.name in FOLLOWED:
            for out in self.watch.outs:
                self.drawn[out] = known

    def _look_at_normal(self, call: Call) -> None:
        if any(one.requires_grad for one in self.watch.inputs) and self.engine.module.is_grad_enabled():
            for out in self.watch.outs:  # its derivative is 0 where it has one
                self._note(out, spot_of(call), "torch.normal", self.watch.inputs)

    def end(self, problem: BaseException | None) -> None:
        """Report draws that should be differentiable."""
        for one in self.lines.values():
            if one.scored or one.used < THRICE:
                continue
            function = one.kind == "torch.normal"
            corrected = None
            node = one.spot.call
            if not function and node is not None and getattr(node.func, "attr", "") == "sample":
                owner = one.spot.text(node.func)
                corrected = one.spot.edited(replace(node.func, f"{owner.removesuffix('sample')}rsample"))
            call = "torch.normal()" if function else f"sample() of a {one.kind}"
            self.report(
                "sample-without-gradient",
                one.spot.place,
                f"{call} at {brief(one.spot.place)} drew {counted(one.times, 'time')} from parameters that require "
                f"grad; no gradient passes through sampling.",
                f"The samples were used at {brief_at(one.use)}, which is differentiated, without log_prob().",
                title=f"{call} cuts its parameters off",
                cure="compute mean + std * torch.randn_like(std)" if function else None,
                corrected=corrected,
            )

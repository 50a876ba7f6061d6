"""Units of a layer that do nothing, and the first value that is not a number.

NOTE [Dead units]
A unit is dead if it was 0 for all samples of a window of steps. Of an activation that can be exactly 0 (ReLU and its
like, as a module) the units of its outputs are counted, under the activation's name. Activations called as functions
cannot be seen by a module's hooks; but a unit that is 0 everywhere hands on no gradient, so that its bias gets a
gradient of exactly 0: for layers with a weight and a bias these are counted, under the layer's name.
"""

import math
from typing import NamedTuple

from backlight.training.grad_norms import in_transform, numbers_of
from backlight.training.silent_hooks import SilentHook

RECTIFIERS = {"ReLU", "ReLU6", "Hardswish", "Hardsigmoid", "Hardtanh", "Hardshrink", "Softshrink", "Threshold"}
CHANNELS_SECOND = ("Conv", "BatchNorm", "InstanceNorm", "GroupNorm", "LazyConv", "MaxPool", "AvgPool", "Adaptive")


class DeadUnits:
    """For each layer, when each of its units was last active.

    Args:
        window: the steps after which a unit that was not active is dead.
    """

    def __init__(self, window: int):
        self.window, self.step = window, 0
        self._last: dict[str, object] = {}

    def next_step(self) -> None:
        """Begin a step."""
        self.step += 1

    def note(self, name: str, active) -> None:
        """Note which units of a layer are active: a tensor of bools."""
        last = self._last.get(name)
        if last is None or last.shape != active.shape:
            last = self._last[name] = active.float().zero_()
        last.masked_fill_(active, float(self.step))

    def shares(self) -> dict[str, float]:
        """Return the share of units of each layer that are dead."""
        since = max(0, self.step - self.window)
        dead = numbers_of((last <= since).sum() for last in self._last.values())
        return {name: count / last.numel() for (name, last), count in zip(self._last.items(), dead)}


class NonFinite(NamedTuple):
    """A value of a forward that is not finite: the output of which module, NaN or inf, and what is known of why."""

    layer: str
    kind: str
    why: str


class Forwards:
    """Watch the outputs of a model's modules while it trains.

    Args:
        model: the model.
        square_of: returns Σx² of a tensor.
        window: the number of measured steps after which a unit that was never active counts as dead.
    """

    def __init__(self, model, square_of, window: int = 100):
        self.full = self.seeking = True
        self._square_of = square_of
        self._units = DeadUnits(window)
        self._units.next_step()
        self._channels_second = True
        self._outputs: list[tuple] = []
        self.non_finite: NonFinite | None = None  # the first of this step
        watched = [
            (name or "model", module)
            for name, module in model.named_modules()
            if next(module.children(), None) is None or next(module.parameters(recurse=False), None) is not None
        ]
        self.types = {name: type(module).__name__ for name, module in watched}
        self.handles = [module.register_forward_hook(SilentHook(self._ran, name)) for name, module in watched]

    def _ran(self, name: str, module, args, out) -> None:
        tensor = _tensor_in(out)
        if tensor is None or not tensor.requires_grad or in_transform(tensor):
            return
        kind = type(module).__name__
        if self.full:
            self._note_units(name, kind, module, tensor.detach())
        if self.seeking and self.non_finite is None:
            square = self._square_of(tensor)
            if not isinstance(square, float):
                self._outputs.append((name, square))
            elif not math.isfinite(square):
                self.non_finite = NonFinite(name, "NaN" if square != square else "inf", self._why(module, args))

    def _note_units(self, name: str, kind: str, module, values) -> None:
        if kind not in RECTIFIERS:
            if next(module.parameters(recurse=False), None) is not None:
                self._channels_second = kind.startswith(CHANNELS_SECOND)
            return
        if values.dim() < 2:
            return
        dim = 1 if self._channels_second else values.dim() - 1
        others = tuple(other for other in range(values.dim()) if other != dim)
        self._units.note(name, values.abs().amax(others) != 0)

    def _why(self, module, args: tuple) -> str:
        """Return what is known of why the output is not finite."""
        finite = [math.isfinite(self._square_of(one)) for one in module.parameters(recurse=False)]
        given = [one for one in map(_tensor_in, args) if one is not None]
        if not all(finite):
            return "its weights were not finite"
        if not all(math.isfinite(self._square_of(one)) for one in given):
            return "its input was not finite"
        return "its input and weights were finite" if finite else "its input was finite"

    def take(self) -> tuple[NonFinite | None, dict[str, float]]:
        """Return the first value of the step that is not finite, and the shares of dead units, and begin anew."""
        non_finite = self.non_finite
        late = numbers_of(square for _, square in self._outputs) if non_finite is None else []
        for (name, _), square in zip(self._outputs, late):
            if non_finite is None and not math.isfinite(square):
                non_finite = NonFinite(name, "NaN" if square != square else "inf", "")
        shares = self._units.shares() if self.full else {}
        if self.full:
            self._units.next_step()
        self._outputs, self.non_finite = [], None
        return non_finite, shares


def _tensor_in(out):
    """Return the first tensor of floating point numbers in what a module takes or gives."""
    if isinstance(out, dict):
        out = tuple(out.values())
    for one in out if isinstance(out, (tuple, list)) else (out,):
        if hasattr(one, "requires_grad") and hasattr(one, "detach") and one.is_floating_point():
            return one
    return None

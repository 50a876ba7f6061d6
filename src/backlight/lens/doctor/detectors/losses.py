"""Losses that are computed of the wrong thing: probabilities for scores, columns against rows; what goes wrong slowly.

NOTE [How long is long]
A dead layer's outputs were all zero in each of many steps up to the last. A gradient explodes if its norm
grew at least tenfold from one backward to the next, several times in a row or a million times at once, to something
that no healthy training has; or if it grew in each of many backwards in a row, a million times together.
"""

import ast
from dataclasses import dataclass
from math import isfinite
from typing import Any

from backlight.dispatch.observers import Call, Run
from backlight.kernels.state_blocks import silent_floats
from backlight.lens.doctor.corrections.lines import replace
from backlight.lens.doctor.detector import Detector, any_nonzero
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.detectors.training.scalers import Scalers
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Module, Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.source import Spot, spot_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

PROBABILITIES = {"softmax": "softmax", "log_softmax": "log_softmax", "sigmoid": "sigmoid", "logsigmoid": "log_sigmoid"}
KEPT_BY = {"reshape", "view", "squeeze", "unsqueeze", "flatten", "transpose", "permute", "contiguous", "float", "to"}
KEPT_BY |= {"getitem", "__getitem__", "index_select", "index", "slice", "select"}
JOINS = {"stack", "cat"}
WRONG = {  # loss -> what its input must not be
    "cross_entropy": {"softmax", "sigmoid"},
    "cross_entropy_loss": {"softmax", "sigmoid"},
    "nll_loss": {"softmax", "sigmoid"},
    "binary_cross_entropy_with_logits": {"softmax", "sigmoid"},
    "binary_cross_entropy": {"log_softmax", "log_sigmoid"},
}
MODULES = ("torch", "F", "functional", "nn.functional", "torch.nn.functional")  # as programs call them
MEASURES = {"pow", "square", "abs", "abs_"}


class Losses(Detector):
    """Follows what softmax and differences become."""

    calls = frozenset({*PROBABILITIES, *KEPT_BY, *WRONG, *MEASURES, *JOINS, "sub", "rsub"})

    def __init__(self, watch):
        super().__init__(watch)
        self.probabilities: WeakIdDict[tuple[str, Instruction]] = WeakIdDict()  # tensors of probabilities -> op, line
        self.layers: WeakIdDict[Instruction] = WeakIdDict()  # -> where the layer was made that returned them
        self.differences: WeakIdDict[tuple] = WeakIdDict()  # -> line, shapes of output, target, difference

    def called(self, call: Call) -> None:
        """Follow a call."""
        name = self.watch.name
        if name in JOINS:
            inputs = self.watch.inputs
            if inputs and self.engine.is_tensor(call.out) and all(one in self.probabilities for one in inputs):
                self.probabilities[call.out] = self.probabilities.get(inputs[0])
            return
        if not call.args or not self.engine.is_tensor(call.args[0]):
            return
        first = call.args[0]
        if name in PROBABILITIES and self.engine.is_tensor(call.out):
            self.probabilities[call.out] = PROBABILITIES[name], Instruction(call.code, call.lasti)
            made = self.watch.detectors[Constructions].line_of_layer()
            if made is not None:
                self.layers[call.out] = made
        elif name in KEPT_BY and self.engine.is_tensor(call.out):
            known = self.probabilities.get(first)
            if known is not None and call.out is not first:
                self.probabilities[call.out] = known
                if (layer := self.layers.get(first)) is not None:
                    self.layers[call.out] = layer
        elif name in WRONG:
            self._look_at_loss(call, name, first)
        elif name in ("sub", "rsub") and len(call.args) > 1:
            self._look_at_difference(call)
        elif name in MEASURES:
            known = self.differences.get(first)
            if known is not None:
                self._report_broadcast(*known)

    def _look_at_loss(self, call: Call, loss: str, scores: Tensor) -> None:
        made, line = self.probabilities.get(scores, ("", None))
        if made not in WRONG[loss] or not scores.requires_grad:
            return
        wanted = "log-probabilities" if loss == "nll_loss" else "probabilities"
        wanted = "scores (logits)" if "cross_entropy" in loss and loss != "binary_cross_entropy" else wanted
        spot = spot_of(call)
        cure, corrected = f"give {loss} the scores themselves: do not use {made} in training", _without(spot, made)
        if loss == "nll_loss":
            cure, corrected = "use log_softmax instead of softmax, or cross_entropy of the scores", None
        self.report(
            "loss-of-probabilities",
            spot.place,
            f"{loss} was given the output of {made} ({brief_at(line)}), of shape {tuple(scores.shape)}; it expects "
            f"{wanted}.",
            *self._makers(scores, made, loss),
            title=f"{loss} of the output of {made}",
            cure=cure,
            corrected=corrected,
        )

    def _makers(self, scores: Tensor, made: str, loss: str) -> list[str]:
        """Say where the layer and the loss were made, if they are modules."""
        layer, own = self.layers.get(scores), self.watch.detectors[Constructions].line_of_layer()
        lines = [f"The {made} layer was made at {brief_at(layer)}."] if layer is not None else []
        return lines + ([f"The loss, {loss}, was made at {brief_at(own)}."] if own is not None else [])

    def _look_at_difference(self, call: Call) -> None:
        """Remember a difference of a column that requires grad and a row that does not, of one length."""
        one, other = call.args[:2]
        if not (self.engine.is_tensor(one) and self.engine.is_tensor(other)):
            return
        if one.requires_grad is other.requires_grad or tuple(one.shape) == tuple(other.shape):
            return
        output, target = (one, other) if one.requires_grad else (other, one)
        shapes = tuple(output.shape), tuple(target.shape)
        column, row = sorted(shapes, key=len, reverse=True)
        if len(column) == 2 and len(row) == 1 and column == (row[0], 1) and row[0] > 1 and not self._was_opened(output):
            self.differences[call.out] = Instruction(call.code, call.lasti), *shapes, tuple(call.out.shape)

    def _was_opened(self, tensor: Tensor) -> bool:
        """Return whether the program made the column on purpose."""
        info = self.watch.flow.known(tensor)
        return info is not None and info.name in ("unsqueeze", "__getitem__", "view", "reshape")

    def _report_broadcast(self, line: Instruction, output: tuple, target: tuple, result: tuple) -> None:
        self.report(
            "loss-broadcasts",
            place_of(line),
            f"The output has shape {output}, the target {target}; their difference has shape {result}: "
            f"{result[0]} × {result[1]} pairs instead of {output[0]}.",
            cure="give both the same shape: output.squeeze(1), or target.unsqueeze(1)",
        )


def _without(spot: Spot, made: str) -> str | None:
    """`cross_entropy(torch.softmax(x, 1), y)` → `cross_entropy(x, y)`; None if it is not written so."""
    call = spot.call
    inner = call.args[0] if call is not None and call.args else None
    if not isinstance(inner, ast.Call) or not inner.args or isinstance(inner.args[0], ast.Starred):
        return None
    if spot.text(inner.func) not in {f"{module}.{made}" for module in (*MODULES, spot.torch)}:
        return None
    return spot.edited(replace(inner, spot.text(inner.args[0])))


SQUARES = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
LONG, FEW = 20, 8
GROWTH, HUGE, IN_A_ROW = 10.0, 1e8, 3
AT_ONCE = 1e6  # growth that needs no third backward, or that many small ones come to
SLOW, LARGE = 10, 1e5


@dataclass(slots=True)
class Layer:
    """The calls of one activation: how many, and how many of the last returned zeros only."""

    calls: int = 0
    zeros: int = 0
    least_target: float | None = None  # of the loss that is given what it returns
    is_hinge: bool = False  # whether a loss is the mean or the sum of it, which may come to 0
    shape: tuple[int, ...] = ()


class Trends(Detector):
    """Follows activations and norms over steps (see NOTE [How long is long])."""

    calls = frozenset({"relu", "mean", "sum", *SQUARES})

    def __init__(self, watch):
        super().__init__(watch)
        self.layers: dict[tuple[Instruction, str], Layer] = {}
        self.paths: list[str] = []
        self.outputs: WeakIdDict[Layer] = WeakIdDict()
        self.norms: WeakIdDict[list[float]] = WeakIdDict()  # leaf -> gradient norms of the growth that goes on
        self.rising: WeakIdDict[list[float]] = WeakIdDict()  # leaf -> the first norm of a growth, and the last ones
        self.reported = False

    def entered(self, module: Module, path: str) -> None:
        """Note which module runs."""
        self.paths.append(path)

    def left(self, module: Module, path: str, out: Any) -> None:
        """Note that it ended."""
        if self.paths:
            self.paths.pop()

    def called(self, call: Call) -> None:
        """Look at what a rectifier returns, and whether a loss is given that, or is its mean or sum."""
        if self.watch.name in SQUARES:
            self._look_at_target(call)
            return
        if self.watch.name != "relu":
            layer = self.outputs.get(call.args[0]) if call.args else None
            if layer is not None and self.engine.is_tensor(call.out) and not call.out.dim():
                layer.is_hinge = True
            return
        if not self.engine.is_tensor(call.out) or not call.out.requires_grad:
            return
        path = self.paths[-1] if self.paths else ""
        layer = self.layers.setdefault((Instruction(call.code, call.lasti), path), Layer())
        layer.calls += 1
        values = self.values(call.out)
        layer.shape = tuple(call.out.shape)
        dead = values is not None and values.size >= FEW and not any_nonzero(values)
        layer.zeros = layer.zeros + 1 if dead else 0
        self.outputs[call.out] = layer

    def _look_at_target(self, call: Call) -> None:
        layer = self.outputs.get(call.args[0]) if len(call.args) > 1 else None
        values = self.values(call.args[1]) if layer is not None and self.engine.is_tensor(call.args[1]) else None
        if values is not None and values.size:
            layer.least_target = float(values.min())

    def accumulated(self, run: Run, tensor: Tensor, arrived: Tensor, before: Tensor | None) -> None:
        """Follow the norm of a leaf's gradient."""
        square = None if self.reported else self.square_of(arrived)
        if square is None:
            return
        with silent_floats():
            norm = abs(square) ** 0.5
        if not isfinite(norm) and self.watch.detectors[Scalers].of_run is not None:  # its step will be skipped
            return
        norms = self.norms.get(tensor)
        self.norms[tensor] = norms = [*norms, norm] if norms and norm >= GROWTH * norms[-1] > 0 else [norm]
        fast = len(norms) > 1 and norm > AT_ONCE * norms[0]
        rising = self.rising.get(tensor) or [norm]
        rising = [rising[0], *rising[1:][-LONG:], norm] if norm > rising[-1] > 0 else [norm]
        self.rising[tensor] = rising
        slow = len(rising) > SLOW and norm > AT_ONCE * rising[0] and norm > LARGE
        if slow or (norm > HUGE and (fast or len(norms) > IN_A_ROW)):
            self.reported = True
            self._report_explosion(run, tensor, rising if slow else norms)

    def _report_explosion(self, run: Run, tensor: Tensor, norms: list[float]) -> None:
        name = self.watch.flow.name_of(tensor)
        listed = " → ".join(short(one) for one in norms[-5:])
        seen = [f"The norm of {name}.grad in {len(norms)} backwards in a row: {listed}."]
        for optimizer, (_, line) in self.watch.detectors[Constructions].optimizers.items():
            held = any(one is tensor for group in optimizer.param_groups for one in group["params"])
            if held and line is not None:
                rate = optimizer.param_groups[0].get("lr")
                seen.append(
                    f"The optimizer that holds it was made at {brief_at(line)}, with a learning rate of {rate}."
                )
        if not self.session.has({"BL703"}):  # gradients that add up explode
            self.report("exploding-gradient", place_of(run), *seen)

    def end(self, problem: BaseException | None) -> None:
        """Report dead layers."""
        for (line, path), layer in self.layers.items():
            if layer.zeros >= LONG and not layer.is_hinge:
                name = f"relu of {path}" if path else "relu"
                always = layer.zeros == layer.calls
                which = (
                    f"all of its {layer.calls} calls" if always else f"the last {layer.zeros} of {layer.calls} calls"
                )
                place = place_of(line)
                self.session.drop("BL725", place)
                cause = cure = None
                if layer.least_target is not None and layer.least_target < 0:
                    cause = f"relu is the output layer, and targets go down to {short(layer.least_target)}"
                    cure = "remove relu after the last layer"
                self.report(
                    "dead-relu",
                    place,
                    f"{name} returned only zeros in {which}; the last result had shape {layer.shape}. No gradient "
                    f"passes through it.",
                    cause=cause,
                    cure=cure,
                )

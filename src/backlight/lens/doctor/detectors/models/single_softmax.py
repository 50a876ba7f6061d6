"""Softmaxes over a dim of one element, which always return 1.

NOTE [A softmax of one]
What softmax returns along a dim of one element is 1, whatever the scores are, and their gradient is 0. A sequence, a
choice or a mixture may have one element for once; the mistake is a softmax whose dim had one element at each call, and
whose result is then multiplied by values and summed over another dim that has several: weights that are normalised
over one dim and used over another. Or it is the target's other side in a loss, and has rows.
"""

from dataclasses import dataclass

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

PRODUCTS = {"matmul", "bmm"}
LOSSES = {"nll_loss", "binary_cross_entropy", "cross_entropy", "mse_loss"}
KEEPS = {"dropout", "masked_fill", "to", "float", "log", "clamp"}  # their results have the same dims
STEPS = 3


@dataclass(slots=True)
class Single:
    """A line that calls softmax over one element: its dim, what shows that another was meant, in how many steps."""

    dim: int
    used: Instruction | None = None
    other: int | None = None  # the dim that was meant, of how many elements
    size: int = 0
    loss: str = ""
    steps: int = 0


class SingleSoftmax(Detector):
    """Finds them (see NOTE [A softmax of one])."""

    calls = frozenset({"softmax", "log_softmax", "mul", "sum", *PRODUCTS, *LOSSES, *KEEPS})

    def __init__(self, watch):
        super().__init__(watch)
        self.lines: dict[Instruction, Single] = {}
        self.other: set[Instruction] = set()  # lines whose dim had several elements once
        self.weights: WeakIdDict[Instruction] = WeakIdDict()
        self.products: WeakIdDict[tuple[Instruction, tuple]] = WeakIdDict()  # -> softmax, shape of its weights
        self.seen: set[Instruction] = set()  # in this step

    def called(self, call: Call) -> None:
        """Follow such a softmax to a sum or a loss."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not inputs or not self.engine.is_tensor(out):
            return
        if name in ("softmax", "log_softmax"):
            self._normalised(call, inputs[0], out)
        elif len(self.weights):
            line = Instruction(call.code, call.lasti)
            if name == "sum":
                if inputs[0] in self.products:
                    self._summed(call, line, inputs[0])
                return
            weights = next((one for one in inputs if one in self.weights), None)
            if weights is None:
                return
            if name in PRODUCTS:
                self._multiplied(line, weights, first=inputs[0] is weights)
            elif name == "mul":
                if len(inputs) < 2:
                    self.weights[out] = self.weights.get(weights)
                elif out.dim() == weights.dim():
                    self.products[out] = self.weights.get(weights), tuple(weights.shape)
            elif name in LOSSES:
                self._lost(line, name, inputs, weights)
            elif out.shape == weights.shape:
                self.weights[out] = self.weights.get(weights)

    def _normalised(self, call: Call, scores: Tensor, out: Tensor) -> None:
        dim = call.kwargs.get("dim", call.args[1] if len(call.args) > 1 else None)
        if not isinstance(dim, int) or not out.dim() or not is_computed(out):
            return
        line = Instruction(call.code, call.lasti)
        if out.shape[dim] != 1:
            self.other.add(line)
        elif out.numel() > 1 and line not in self.other:
            self.lines.setdefault(line, Single(dim % out.dim()))
            self.weights[out] = line

    def _multiplied(self, line: Instruction, weights: Tensor, first: bool) -> None:
        """Look at a product of matrices, which sums over the last dim of its first factor."""
        if weights.dim() > 1:
            over = weights.dim() - (1 if first else 2)
            self._used(tuple(weights.shape), self.weights.get(weights), line, over)

    def _summed(self, call: Call, line: Instruction, product: Tensor) -> None:
        given = call.kwargs.get("dim", call.args[1] if len(call.args) > 1 else None)
        if isinstance(given, int):
            softmax, shape = self.products.get(product)
            self._used(shape, softmax, line, given % len(shape))

    def _used(self, shape: tuple, softmax: Instruction, line: Instruction, over: int) -> None:
        known = self.lines[softmax]
        if over != known.dim and shape[over] > 1 and len(shape) > known.dim and shape[known.dim] == 1:
            known.used, known.other, known.size = line, over, shape[over]
            self.seen.add(softmax)

    def _lost(self, line: Instruction, name: str, inputs: list, weights: Tensor) -> None:
        softmax = self.weights.get(weights)
        known = self.lines[softmax]
        if weights.shape[0] > 1 and known.dim == weights.dim() - 1 and weights is inputs[0]:
            known.used, known.loss = line, name
            self.seen.add(softmax)

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """A step is over."""
        for softmax in self.seen:
            self.lines[softmax].steps += 1
        self.seen.clear()

    def end(self, problem: BaseException | None) -> None:
        """Report the lines that never had several elements."""
        for softmax, known in self.lines.items():
            if known.steps < STEPS or softmax in self.other or known.used is None:
                continue
            if self.session.has(("BL748", "BL725") if known.loss else ("BL748",)):
                continue
            how = f"{brief_at(known.used)} multiplies it by values and sums over dim {known.other}, of {known.size}."
            cure = f"Normalise over the summed dim: dim={known.other}."
            if known.loss:
                how = f"{known.loss} at {brief_at(known.used)} gets it."
                cure = "Use a sigmoid for one score, or return one score per class."
            self.report(
                "softmax-of-one",
                place_of(softmax),
                f"Dim {known.dim}, over which the softmax at {brief_at(softmax)} runs, had one element in each call.",
                how,
                "Its output was 1 everywhere, and the gradient of its scores is 0.",
                cure=cure,
            )

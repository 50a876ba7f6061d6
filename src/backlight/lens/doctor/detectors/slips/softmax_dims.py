"""A softmax over another dim than the one that what follows it takes for the classes, or for the keys.

NOTE [Which dim was meant]
Dim 0 may be time, experts, nodes: a softmax over it proves nothing. What reads its result does: nll_loss, a choice of
one class for each row, a product with one-hot rows and Categorical say which dim the classes are; a product
that is summed over another dim says which the keys are, once its rows are found to be the samples of a loss. A square
matrix of similarities may be read both ways: nothing is said where its classes are a permutation.
"""

import ast
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.corrections.lines import replace as replaced
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief_at
from backlight.lens.doctor.source import Spot, spot_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

SOFT = {"softmax", "log_softmax"}
SAME = {"dropout", "float", "to", "contiguous", "log", "clone"}
RESHAPES = {"unsqueeze", "squeeze", "view", "reshape", "getitem", "__getitem__", "index", "select"}
PERMUTES = {"transpose", "permute", "T", "t"}
PRODUCTS = {"matmul", "bmm", "mm", "baddbmm"}
LOSSES = {"cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"}
LOSSES |= {"mse_loss", "smooth_l1_loss", "l1_loss", "huber_loss"}
ROWWISE = {"linear", "relu", "gelu", "silu", "tanh", "sigmoid", "layer_norm", "batch_norm", "cat", "add", "mul", "sub"}
ROWWISE |= {*SAME, *SOFT, "squeeze", "view", "reshape", "flatten", "leaky_relu", "elu", "normalize"}


@dataclass(frozen=True, slots=True)
class Normalised:
    """The result of a softmax: its name, its line, its dim, and which of its dims each dim of a later view is.

    Args:
        axes: None for a new dim of size 1.
        logs: whether these are logarithms.
    """

    name: str
    line: Instruction
    dim: int
    dims: int
    axes: tuple[int | None, ...]
    logs: bool

    @property
    def now(self) -> int | None:
        """At which dim of the view the softmax's dim is."""
        return self.axes.index(self.dim) if self.dim in self.axes else None

    @property
    def moved(self) -> bool:
        """Whether it is a view of other dims."""
        return self.axes != tuple(range(self.dims))


@dataclass(frozen=True, slots=True)
class Pooled:
    """A sum of products with weights, whose rows each have a weight that the softmax took over the rows."""

    weights: Normalised
    wanted: int
    line: Instruction


class SoftmaxDims(Detector):
    """Finds them (see NOTE [Which dim was meant])."""

    calls = frozenset({*SOFT, *SAME, *RESHAPES, *PERMUTES, *PRODUCTS, *LOSSES, *ROWWISE, "gather", "sum", "einsum"})

    def __init__(self, watch):
        super().__init__(watch)
        self.normalised: WeakIdDict[Normalised] = WeakIdDict()
        self.chosen: WeakIdDict[Normalised] = WeakIdDict()  # one class of each row, not yet a logarithm
        self.products: WeakIdDict[tuple[Normalised, tuple[int, ...]]] = WeakIdDict()  # times values -> weights' shape
        self.pooled: WeakIdDict[Pooled] = WeakIdDict()
        self.done: set[Instruction] = set()

    def begin(self) -> None:
        """Watch what is made into a distribution."""
        self.watch.after(self.engine.module.distributions.Categorical, "__init__", self._drawn_from)

    def _drawn_from(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        for given in (*args[1:3], kwargs.get("probs"), kwargs.get("logits")):
            known = self.normalised.get(given)
            if known is not None and known.now != len(known.axes) - 1 and given.shape[known.now] > 1:
                self._report(known, "the classes of a Categorical are", known.axes[-1])

    def called(self, call: Call) -> None:
        """Follow a softmax to what reads it."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if not inputs or not self.engine.is_tensor(out) or out is inputs[0]:
            return
        if name in SOFT:
            self._note(call, name, out)
        if not any(map(len, (self.normalised, self.chosen, self.products, self.pooled))):
            return
        known = self.normalised.get(inputs[0])
        if known is not None:
            self._follow(call, name, known, inputs, out)
        elif name == "log" and inputs[0] in self.chosen:
            self._report(self.chosen.get(inputs[0]), "the class of each row is chosen from", 1)
        if name == "mul" and len(inputs) == 2:
            self._multiplied(inputs, out)
        elif name == "sum" and inputs[0] in self.products:
            self._summed(call, inputs[0], out)
        elif name == "einsum":
            self._contracted(call, inputs, out)
        elif len(self.pooled):
            self._look_at_rows(name, inputs, out)

    def _note(self, call: Call, name: str, out: Tensor) -> None:
        dim = call.kwargs.get("dim", call.args[1] if len(call.args) > 1 else None)
        if isinstance(dim, int) and out.dim():
            line, axes = Instruction(call.code, call.lasti), tuple(range(out.dim()))
            self.normalised[out] = Normalised(name, line, dim % out.dim(), out.dim(), axes, name == "log_softmax")
            self._look_at_single(call, line, dim % out.dim(), out)

    def _look_at_single(self, call: Call, line: Instruction, dim: int, out: Tensor) -> None:
        """Report a softmax over the one score that a layer gives each row, where another dim has the rows to weigh."""
        given = self.watch.flow.known(self.watch.inputs[0])
        if dim != out.dim() - 1 or out.shape[dim] != 1 or out.dim() != 3 or out.shape[1] == 1 or line in self.done:
            return
        if is_computed(out) and given is not None and given.name == "linear":
            self.done.add(line)
            spot = spot_of(line)
            self.report(
                "softmax-over-wrong-dim",
                spot.place,
                f"{self.watch.name} at {brief_at(line)} runs over the last dim of shape {list(out.shape)}, where each "
                f"row has a single score: every result is 1.",
                title="softmax over a single score: its result is always 1",
                cause="The scores of a row are in dim 1; dim=-1 has size 1.",
                cure="Take the softmax over dim=1.",
                corrected=_with_dim(spot, 1),
            )

    def _follow(self, call: Call, name: str, known: Normalised, inputs: list, out: Tensor) -> None:
        given = inputs[0]
        if name in SAME and out.shape == given.shape:
            self.normalised[out] = replace(known, logs=known.logs or name == "log")
        elif name in PERMUTES:
            order = _order(name, call.args[1:], given.dim())
            if order is not None:
                self.normalised[out] = replace(known, axes=tuple(known.axes[one] for one in order))
        elif name in PRODUCTS:
            self._look_at_product(call, known, given, out)
        elif name == "nll_loss":
            self._look_at_classes(known, inputs, "the classes of nll_loss are")
        elif name == "gather":
            if len(inputs) == 2 and 1 in call.args[1:2] and inputs[1].shape == (given.shape[0], 1):
                self._choose(known, inputs, out)
        elif name in RESHAPES:
            if len(inputs) == 1:
                self._reshaped(known, given, out)
            elif len(inputs) == 3 and _counts_up(self.values(inputs[1]), given.shape[0]):
                self._choose(known, [given, inputs[2]], out)

    def _reshaped(self, known: Normalised, given: Tensor, out: Tensor) -> None:
        """Follow a view that only adds or takes away dims of size 1."""
        axes = [axis for axis, size in zip(known.axes, given.shape) if size != 1]
        if [size for size in given.shape if size != 1] == [size for size in out.shape if size != 1]:
            left = iter(axes)
            self.normalised[out] = replace(known, axes=tuple(None if n == 1 else next(left) for n in out.shape))

    def _choose(self, known: Normalised, inputs: list, out: Tensor) -> None:
        """Look at the choice of one class for each row."""
        if known.logs:
            self._look_at_classes(known, inputs, "the class of each row is chosen from")
        elif self._are_classes(known, inputs):
            self.chosen[out] = known

    def _look_at_classes(self, known: Normalised, inputs: list, what: str) -> None:
        if self._are_classes(known, inputs):
            self._report(known, what, known.axes[1])

    def _are_classes(self, known: Normalised, inputs: list) -> bool:
        """Return whether numbers of classes at dim 1 are chosen, and the softmax is over another dim."""
        scores, classes = inputs[:2] if len(inputs) > 1 else (inputs[0], None)
        if classes is None or scores.dim() < 2 or known.now in (None, 1) or scores.shape[known.now] == 1:
            return False
        values = self.values(classes)
        square = scores.shape[0] == scores.shape[1]
        permutes = values is not None and np.array_equal(np.sort(values, axis=None), np.arange(scores.shape[0]))
        return values is not None and not (square and permutes)

    def _look_at_product(self, call: Call, known: Normalised, weights: Tensor, out: Tensor) -> None:
        """Look at attention whose weights are normalised over another dim than the one that is summed over."""
        last = len(known.axes) - 1
        if not weights.requires_grad or last < 1 or known.now in (None, last) or weights.shape[known.now] < 2:
            return
        if known.moved:
            if known.dim == known.now == 0 and last > 1 and weights.shape[-1] > 1:
                self.pooled[out] = Pooled(known, known.axes[-1], Instruction(call.code, call.lasti))
        elif known.name == "softmax" and (known.now < last - 1 or weights.shape[-1] == weights.shape[-2]):
            self._report(known, "the product sums over", last)

    def _multiplied(self, inputs: list, out: Tensor) -> None:
        """Note weights times values; look at logarithms times one-hot rows."""
        for weights, values in (inputs, inputs[::-1]):
            known = self.normalised.get(weights)
            if known is None or known.now != 0 or weights.dim() < 2 or not weights.requires_grad or out.shape[0] < 2:
                continue
            if not known.logs and known.dim == 0 and weights.dim() == out.dim() and weights.shape[0] == out.shape[0]:
                self.products[out] = known, tuple(weights.shape)
            elif known.logs and values.shape == weights.shape and weights.dim() == 2 and not values.requires_grad:
                rows = self.values(values)
                if rows is not None and _is_one_hot(rows):
                    self._report(known, "the classes of the one-hot rows are", known.axes[1])

    def _summed(self, call: Call, product: Tensor, out: Tensor) -> None:
        known, sizes = self.products.get(product)
        over = _dims_of(call, len(sizes))
        if len(over) == 1 and over[0] and sizes[over[0]] > 1:
            self.pooled[out] = Pooled(known, known.axes[over[0]], Instruction(call.code, call.lasti))

    def _contracted(self, call: Call, inputs: list, out: Tensor) -> None:
        """Look at einsum("bt,btd->bd", weights, values)."""
        terms, result = _einsum_letters(call.args)
        for letters, weights in zip(terms, inputs):
            known = self.normalised.get(weights)
            if known is None or known.logs or known.dim != 0 or known.now != 0 or len(letters) != weights.dim():
                continue
            summed = [number for number, letter in enumerate(letters) if letter not in result]
            if result.startswith(letters[0]) and len(summed) == 1 and weights.shape[summed[0]] > 1:
                self.pooled[out] = Pooled(known, known.axes[summed[0]], Instruction(call.code, call.lasti))

    def _look_at_rows(self, name: str, inputs: list, out: Tensor) -> None:
        """Follow the rows of a sum to a loss, whose rows are samples."""
        pooled = next((found for one in inputs if (found := self.pooled.get(one)) is not None), None)
        if pooled is None:
            return
        rows = next(one for one in inputs if one in self.pooled).shape[0]
        if name in ROWWISE and out.dim() and out.shape[0] == rows:
            self.pooled[out] = pooled
        elif name in LOSSES and inputs[0] in self.pooled and len(inputs) > 1:
            target = inputs[1]
            if not target.requires_grad and target.dim() and target.shape[0] == rows > 1:
                what = f"the sum at {brief_at(pooled.line)}, whose rows are the samples of the loss, runs over"
                self._report(pooled.weights, what, pooled.wanted)

    def _report(self, known: Normalised, what: str, wanted: int | None) -> None:
        if wanted is None or known.line in self.done:
            return
        self.done.add(known.line)
        spot = spot_of(known.line)
        self.report(
            "softmax-over-wrong-dim",
            spot.place,
            f"{known.name} at {brief_at(known.line)} runs over dim {known.dim} of {known.dims}; {what} dim {wanted}.",
            title=f"{known.name} over dim {known.dim}, where dim {wanted} is meant",
            cure=f"Give {known.name} dim={wanted}." if wanted < known.dims - 1 else f"Give {known.name} dim=-1.",
            corrected=_with_dim(spot, wanted),
        )


def _with_dim(spot: Spot, wanted: int) -> str | None:
    """`softmax(x, dim=0)` → `softmax(x, dim=1)`, `x.softmax(0)` → `x.softmax(1)`."""
    call = spot.call
    if call is None or not spot.text(call.func).endswith("softmax"):
        return None
    named = [word.value for word in call.keywords if word.arg == "dim"]
    dim = (named or call.args[-1:] or [None])[0]
    is_number = isinstance(dim, (ast.Constant, ast.UnaryOp))
    return spot.edited(replaced(dim, str(wanted))) if is_number else None


def _order(name: str, args: tuple, dims: int) -> list[int] | None:
    """Return which dim of a tensor each dim of its transposed view is."""
    args = args[0] if args and isinstance(args[0], (tuple, list)) else args
    if name in ("T", "t"):
        return [*range(dims)][::-1]
    if not args or not all(isinstance(one, int) for one in args):
        return None
    if name == "permute":
        return [one % dims for one in args]
    order = [*range(dims)]
    first, second = (one % dims for one in args[:2])
    order[first], order[second] = second, first
    return order


def _dims_of(call: Call, dims: int) -> list[int]:
    """Return the dims that a sum goes over."""
    given = call.kwargs.get("dim", call.args[1] if len(call.args) > 1 else None)
    given = given if isinstance(given, (tuple, list)) else [given]
    return [one % dims for one in given if isinstance(one, int)]


def _einsum_letters(args: tuple) -> tuple[list[str], str]:
    """Return the letters of the operands and of the result, which backlight's op gets apart and without an arrow."""
    if isinstance(args[-1], str):
        return list(args[-2]), args[-1]
    terms, _, result = args[0].replace(" ", "").partition("->")
    return terms.split(","), result


def _counts_up(values: np.ndarray | None, rows: int) -> bool:
    return values is not None and np.array_equal(values, np.arange(rows))


def _is_one_hot(rows: np.ndarray) -> bool:
    """Return whether each row has a single 1, at different places, and no column but by chance does."""
    hot = np.all((rows == 0) | (rows == 1)) and np.all(rows.sum(1) == 1)
    return bool(hot) and not np.all(rows.sum(0) == 1)

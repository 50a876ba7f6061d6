"""Custom Functions whose backward is not the derivative of their forward: a sampled gradcheck on their first inputs.

NOTE [When a backward is wrong]
Many Functions differ from their derivative on purpose. Straight-through estimators have a forward that is flat almost
everywhere, gradient reversal and gradient scaling one that is the identity, clamps and selections one with slopes 0 and
1: such elements are not judged. Nor is a Function that is random, writes somewhere, or calls something for its effect.
What is left is compared in float64, at a few elements, by central differences of two widths that have to agree.
"""

import ast
import inspect
import textwrap
from typing import Any

import numpy as np

from backlight.dispatch.observers import Call
from backlight.kernels.state_blocks import silent_floats
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.graph import Tensor, is_computed
from backlight.lens.doctor.places import brief_at, place_at
from backlight.lens.records.record import Place

MOST_ELEMENTS, SAMPLES, LOOKS = 100_000, 6, 2
WIDTH = 1e-5
AGREE, WRONG = 1e-4, 0.02  # how much two widths may differ, how much a gradient has to
RANDOM = ("rand", "bernoulli", "dropout", "normal", "multinomial", "uniform", "poisson", "seed", "time")


class FunctionBackwards(Detector):
    """Compares backward with differences of forward (see NOTE [When a backward is wrong])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.looks: dict[type, int] = {}

    def called(self, call: Call) -> None:
        """Look at the first calls of each custom Function."""
        if not call.name[:1].isupper() or not self.engine.is_tensor(call.out) or not is_computed(call.out):
            return
        node = call.out.grad_fn
        kind = getattr(node, "_forward_cls", None) or getattr(type(node), "function", None)
        if not isinstance(kind, type) or kind.__name__ != call.name or self.looks.get(kind, 0) >= LOOKS:
            return
        self.looks[kind] = self.looks.get(kind, 0) + 1
        if not is_pure(kind) or sum(one.numel() for one in self.watch.inputs) > MOST_ELEMENTS:
            return
        try:
            with silent_floats():
                wrong = self._compare(kind, call)
        except Exception:  # it does not run in float64, or its backward not by itself: it cannot be judged
            return
        if wrong is not None:
            self.looks[kind] = LOOKS
            self._report(kind, call, *wrong)

    def _compare(self, kind: type, call: Call) -> tuple[float, float, float] | None:
        """Return an input, its gradient by backward and by differences, if these differ at two elements or more."""
        torch = self.engine.module
        args = [self._in_float64(one) for one in call.args]
        inputs = [one for one in args if self.engine.is_tensor(one) and one.requires_grad]
        with torch.enable_grad():
            out, again = kind.apply(*args), kind.apply(*args)
            if not self._same(out, again):
                return None
            weights = torch.cos(torch.arange(out.numel(), dtype=out.dtype)).reshape(out.shape) + 1.5
            grads = torch.autograd.grad(out, inputs, weights, allow_unused=True)
        weights = self.values(weights)
        differing = []
        for tensor, grad in zip(inputs, grads):
            if grad is None or grad.shape != tensor.shape:
                continue
            given, values = self.values(grad).ravel(), self.values(tensor).ravel()
            for place in np.random.default_rng(0).permutation(values.size)[:SAMPLES]:
                slope = self._slope(kind, args, tensor, int(place), weights)
                size = None if slope is None else max(abs(slope), abs(given[place]), 1e-3)
                if size is not None and abs(slope - given[place]) > WRONG * size:
                    differing.append((float(values[place]), float(given[place]), slope))
        return differing[0] if len(differing) > 1 else None

    def _in_float64(self, value: Any) -> Any:
        if not self.engine.is_tensor(value) or not value.is_floating_point():
            return value
        copy = value.detach().clone().to(self.engine.module.float64)
        return copy.requires_grad_() if value.requires_grad else copy

    def _same(self, one: Any, other: Any) -> bool:
        first, second = self.values(one), self.values(other)
        return first is not None and second is not None and np.array_equal(first, second) and first.dtype == np.float64

    def _slope(self, kind: type, args: list, tensor: Tensor, place: int, weights: np.ndarray) -> float | None:
        """Return a slope by differences; None at a kink, or where the forward is flat, the identity or a selection."""
        wide, narrow = (self._difference(kind, args, tensor, place, width) for width in (WIDTH, WIDTH / 4))
        plain = np.abs(narrow)
        if np.all((plain < 1e-6) | (np.abs(plain - 1) < 1e-6)):
            return None
        slopes = float((wide * weights).sum()), float((narrow * weights).sum())
        return slopes[1] if abs(slopes[0] - slopes[1]) <= AGREE * max(1.0, abs(slopes[1])) else None

    def _difference(self, kind: type, args: list, tensor: Tensor, place: int, width: float) -> np.ndarray:
        found = []
        with self.engine.module.no_grad():
            for shift in (width, -width):
                moved = tensor.detach().clone()
                moved.reshape(-1)[place] += shift
                found.append(self.values(kind.apply(*(moved if one is tensor else one for one in args))))
        return (found[0] - found[1]) / (2 * width)

    def _report(self, kind: type, call: Call, value: float, given: float, slope: float) -> None:
        self.report(
            "function-backward-wrong",
            place_of_return(kind.backward),
            f"{kind.__name__} was called at {brief_at(call)}. At an input of {short(value)} its backward returns "
            f"{short(given)}, but the slope of its forward is {short(slope)} (float64, central differences).",
            title=f"the backward of {kind.__name__} is not the derivative of its forward",
        )


def is_pure(kind: type) -> bool:
    """Return whether a Function only computes: nothing random in it, no write, no call for its effect."""
    for name in ("forward", "backward"):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(getattr(kind, name))))
        except (OSError, TypeError, SyntaxError):
            return False
        if not all(map(_is_harmless, ast.walk(tree))):
            return False
    return True


def _is_harmless(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        owner = node.value.func if isinstance(node.value, ast.Call) else None
        of_context = isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Name) and owner.value.id == "ctx"
        return of_context or isinstance(node.value, ast.Constant)
    if isinstance(node, (ast.Global, ast.Nonlocal, ast.AugAssign, ast.Yield, ast.Await, ast.NamedExpr)):
        return False
    if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
        return isinstance(node.value, ast.Name) and node.value.id == "ctx"
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    writes = isinstance(node, ast.Attribute) and name.endswith("_") and not name.endswith("__")
    return not writes and not any(word in name for word in RANDOM)


def place_of_return(function: Any) -> Place | None:
    """Return the line of a function's only return, or its first line."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError):
        return place_at(code, code.co_firstlineno)
    returns = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Return)]
    return place_at(code, first + returns[0] - 1 if len(returns) == 1 else code.co_firstlineno)

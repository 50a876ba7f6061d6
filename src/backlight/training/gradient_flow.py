"""Gradient flow: each layer's gradient and update, their ratio to its weights, and its dead units.

NOTE [Measuring a step]
Where values can be had as arrays (training/tensor_memory.py), zeros are counted in those; all else is measured by
PyTorch's methods of tensors, so one code serves both engines, on any device. Gradients are read when `optimizer.step()`
begins (after clipping, and however early they are cleared), weights before it are copied and subtracted from those
after it. Off the CPU numbers stay there until the step is taken, and come over all at once. A step that is not measured
in full is first looked through for values that are not finite; norms are computed only if there is one.
"""

import math
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np

from backlight.kernels.state_blocks import silent_floats
from backlight.training.dead_units import DeadUnits, counted, numbers_of
from backlight.training.engine_types import AnyModule, AnyOptimizer, AnyTensor
from backlight.training.tensor_memory import TINY, array_of, is_finite, own_array, square_of_array


def square_of(tensor: AnyTensor):
    """Return Σx²: a float, or off the CPU a tensor that becomes one when it is needed."""
    array = own_array(tensor)
    if array is not None:
        return square_of_array(array)
    flat = tensor.detach().reshape(-1)
    if flat.is_complex():
        flat = flat.abs()
    if flat.element_size() < 4:
        flat = flat.float()
    with silent_floats():
        square = flat.dot(flat)
        if flat.device.type != "cpu":
            return square
        value = square.item()
        if TINY < value < math.inf:
            return value
        wide = flat.double()
        return wide.dot(wide).item()


def in_transform(tensor: AnyTensor) -> bool:
    """Return whether a tensor stands for others inside vmap or a transform of PyTorch's: it is not the step's."""
    if hasattr(tensor, "_data"):
        return getattr(tensor._data, "of_a_batch", False)
    functorch = getattr(getattr(sys.modules.get("torch"), "_C", None), "_functorch", None)
    return functorch is not None and functorch.is_functorch_wrapped_tensor(tensor)


class SilentHook:
    """Call a recorder's method, as long as the recorder is there.

    A recorder must not live on because the model it watches does, and a copy of the model (by `copy.deepcopy`, or
    through `torch.save`) must not report to it: what is copied or unpickled is a hook that does nothing.

    Args:
        method: a bound method.
        args: its first arguments.
    """

    def __init__(self, method: Callable, *args):
        self._method, self._args = weakref.WeakMethod(method), args

    def __call__(self, *given) -> None:
        """Call the method, if its object is still there."""
        method = self._method()
        if method is not None:
            method(*self._args, *given)

    def __reduce__(self):
        return _Nothing, ()


class _Nothing:
    def __call__(self, *given) -> None:
        pass


RECTIFIERS = {"ReLU", "ReLU6", "Hardswish", "Hardsigmoid", "Hardtanh", "Hardshrink", "Softshrink", "Threshold"}
CHANNELS_SECOND = ("Conv", "BatchNorm", "InstanceNorm", "GroupNorm", "LazyConv", "MaxPool", "AvgPool", "Adaptive")


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

    def __init__(self, model: AnyModule, square_of: Callable[[AnyTensor], AnyTensor | float], window: int = 100):
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

    def _ran(self, name: str, module: AnyModule, args: tuple, out: object) -> None:
        tensor = _tensor_in(out)
        if tensor is None or not tensor.requires_grad or in_transform(tensor):
            return
        if self.full:
            self._note_units(name, type(module).__name__, module, tensor.detach())
        if self.seeking and self.non_finite is None and not is_finite(tensor):
            square = self._square_of(tensor)
            if not isinstance(square, float):
                self._outputs.append((name, square))
            elif not math.isfinite(square):
                self.non_finite = NonFinite(name, "NaN" if square != square else "inf", self._why(module, args))

    def _note_units(self, name: str, kind: str, module: AnyModule, values: AnyTensor) -> None:
        if kind not in RECTIFIERS:
            if next(module.parameters(recurse=False), None) is not None:
                self._channels_second = kind.startswith(CHANNELS_SECOND)
            return
        if values.dim() < 2:
            return
        dim = 1 if self._channels_second else values.dim() - 1
        others = tuple(other for other in range(values.dim()) if other != dim)
        array = array_of(values)
        self._units.note(name, values.abs().amax(others) != 0 if array is None else (array != 0).any(others))

    def _why(self, module: AnyModule, args: tuple) -> str:
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


def _tensor_in(out: object):
    """Return the first tensor of floating point numbers in what a module takes or gives."""
    if isinstance(out, dict):
        out = tuple(out.values())
    for one in out if isinstance(out, (tuple, list)) else (out,):
        if hasattr(one, "requires_grad") and hasattr(one, "detach") and one.is_floating_point():
            return one
    return None


SAMPLE = 1 << 16  # gradients of a parameter, evenly spaced, among which those that are 0 are counted


@dataclass(frozen=True)
class LayerFlow:
    """A step by layer; None where a layer had no gradient, or where it was not measured.

    Args:
        norms: √Σg² over the layer's own parameters.
        ratios: that over √Σw² of the weights after the step; None where all weights are zero.
        update_norms: √Σ(w after − w before)².
        update_ratios: that over √Σw².
        zeros: the share of the layer's gradients that are exactly 0; of large parameters by a sample.
        dead: the share of its units that were dead in the full window (NOTE [Dead units] in training/dead_units.py).
    """

    norms: dict[str, float | None]
    ratios: dict[str, float | None]
    update_norms: dict[str, float | None] = field(default_factory=dict)
    update_ratios: dict[str, float | None] = field(default_factory=dict)
    zeros: dict[str, float | None] = field(default_factory=dict)
    dead: dict[str, float | None] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """The norm of all gradients together."""
        return math.sqrt(sum(norm * norm for norm in self.norms.values() if norm is not None))

    @property
    def first_not_finite(self) -> str | None:
        """The layer whose gradient the backward reached first, of those that are not finite."""
        broken = [name for name, norm in self.norms.items() if norm is not None and not math.isfinite(norm)]
        return broken[-1] if broken else None


def layers_of(model: AnyModule) -> dict[str, list]:
    """Return the trained parameters of each module that has some of its own, by the module's dotted name."""
    layers: dict[str, list] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            layers.setdefault(name.rpartition(".")[0] or "model", []).append(parameter)
    return layers


def flow_of(layers: dict[str, list]) -> LayerFlow:
    """Return the gradients that are there now."""
    meter = FlowMeter(layers)
    return meter.take()


class FlowMeter:
    """Measure the steps of optimizers (see NOTE [Measuring a step]).

    A step that is measured in full needs the memory of one copy of the trained weights while `optimizer.step()` runs.

    Args:
        layers: as `layers_of` gives them.
        optimizers: whose steps change the weights.
        updates: whether to measure what they change.
        window: the number of measured steps after which a unit that was never active counts as dead.
        begins: is called as `optimizer.step()` begins, with whether that optimizer made a step since the last `take`.
    """

    def __init__(
        self,
        layers: dict[str, list],
        optimizers: Sequence = (),
        *,
        updates: bool = True,
        window: int = 100,
        begins: Callable[[bool], None] | None = None,
    ):
        self.layers, self.updates = layers, updates
        self.full = True  # whether the next step is measured in full
        self.seeking = True  # whether the gradients of one that is not are looked at all the same
        self.stepped = False  # whether an optimizer made a step since the last `take`
        self._begins = begins
        self._units = DeadUnits(window)
        with_bias = ((name, own) for name, own in layers.items() if len(own) == 2 and own[-1].dim() == 1)
        self._layer_of_bias = {id(own[-1]): name for name, own in with_bias}
        self._owned = {id(optimizer): _trained(optimizer, layers) for optimizer in optimizers}
        self._copies: dict[int, object] = {}
        self._parameters = len({id(parameter) for parameter in chain(*layers.values())})
        self._clear()
        self.handles = [one.register_step_pre_hook(SilentHook(self._before)) for one in optimizers]
        self.handles += [one.register_step_post_hook(SilentHook(self._after)) for one in optimizers]

    def _clear(self) -> None:
        self._gradients: dict[int, object] = {}  # squares, by the parameter's id
        self._changes: dict[int, object] = {}
        self._nonzeros: dict[int, tuple] = {}  # and among how many they were counted
        self._active: dict[str, object] = {}  # by layer, which units' biases got a gradient other than 0
        self._made: set[int] = set()
        self.stepped = False

    # --- while an optimizer makes its step -------------------------------------------------------------------------

    def _before(self, optimizer: AnyOptimizer, args: tuple, kwargs: dict) -> None:
        if self._begins is not None:
            self._begins(id(optimizer) in self._made)
        owned = self._owned[id(optimizer)]
        if not _closure_in(args, kwargs):
            self._read(owned)
        if self.full and self.updates:
            self._copies = {id(parameter): _copied(parameter) for parameter in owned}

    def _after(self, optimizer: AnyOptimizer, args: tuple, kwargs: dict) -> None:
        owned = self._owned[id(optimizer)]
        if _closure_in(args, kwargs):
            self._read(owned)
        for parameter in owned:
            before = self._copies.pop(id(parameter), None)
            if before is not None:
                self._changes[id(parameter)] = _square_of_change(before, parameter)
        self._made.add(id(optimizer))
        self.stepped = True

    def _read(self, parameters: list) -> None:
        if not (self.full or self.seeking):
            return
        if not self.full and self._are_all(parameters) and all(map(_has_finite_grad, parameters)):
            self._gradients = dict.fromkeys(map(id, parameters))  # nothing of this step will be needed
            return
        for parameter in parameters:
            grad = parameter.grad
            if grad is None:
                self._gradients[id(parameter)] = None
                continue
            grad = _dense(grad)
            self._gradients[id(parameter)] = square_of(grad)
            if self.full:
                self._note_zeros(parameter, grad)

    def _are_all(self, parameters: list) -> bool:
        """Return whether these are all parameters."""
        return len(parameters) == self._parameters

    def _note_zeros(self, parameter: AnyTensor, grad: AnyTensor) -> None:
        """Count how many of a gradient's numbers are not 0, and note which of a bias's."""
        array, layer = array_of(grad), self._layer_of_bias.get(id(parameter))
        flat = grad.reshape(-1) if array is None else array.reshape(-1)
        size = math.prod(flat.shape)
        sample = flat[:: (size // SAMPLE) | 1]
        sampled = math.prod(sample.shape)
        self._nonzeros[id(parameter)] = (sample.bool().sum() if array is None else counted(sample != 0)), sampled
        if layer is not None:
            self._active[layer] = grad.bool() if array is None else array != 0

    # --- when a step is over ---------------------------------------------------------------------------------------

    def take(self) -> LayerFlow:
        """Return what was measured since the last time; gradients that no optimizer's step used as they are now."""
        self._read([one for one in chain(*self.layers.values()) if id(one) not in self._gradients])
        flow = LayerFlow(self._norms(self._gradients), {})
        if self.full:
            self._units.next_step()
            for name, active in self._active.items():
                self._units.note(name, active)
            weights = self._norms({id(one): square_of(one) for one in chain(*self.layers.values())})
            norms, moved = flow.norms, self._norms(self._changes)
            ratios, update_ratios = (
                {name: _share(part[name], total) for name, total in weights.items()} for part in (norms, moved)
            )
            flow = LayerFlow(norms, ratios, moved, update_ratios, self._zero_shares(), self._units.shares())
        self._clear()
        return flow

    def _norms(self, squares: dict[int, object]) -> dict[str, float | None]:
        """Return for each layer the root of the sum over its parameters, None if none of them has one."""
        known = {key: value for key, value in squares.items() if value is not None}
        values = dict(zip(known, numbers_of(known.values())))
        found: dict[str, float | None] = {}
        for name, parameters in self.layers.items():
            own = [values[id(parameter)] for parameter in parameters if id(parameter) in values]
            found[name] = math.sqrt(sum(own)) if own else None
        return found

    def _zero_shares(self) -> dict[str, float | None]:
        counts = numbers_of(count for count, _ in self._nonzeros.values())
        sizes = [size for _, size in self._nonzeros.values()]
        parts = {key: (1 - count / size if size else 0.0) for key, count, size in zip(self._nonzeros, counts, sizes)}
        shares: dict[str, float | None] = {}
        for name, parameters in self.layers.items():
            own = [one for one in parameters if id(one) in parts]
            size = sum(one.numel() for one in own)
            shares[name] = sum(parts[id(one)] * one.numel() for one in own) / size if size else None
        return shares


def _has_finite_grad(parameter: AnyTensor) -> bool:
    """Return whether a parameter has no gradient, or surely a finite one."""
    grad = parameter.grad
    return grad is None or is_finite(grad)


def _copied(parameter: AnyTensor) -> np.ndarray | AnyTensor:
    """Return a copy of a parameter: of ours an array."""
    array = own_array(parameter)
    return parameter.detach().clone() if array is None else array.copy()


def _square_of_change(before: np.ndarray | AnyTensor, parameter: AnyTensor) -> AnyTensor | float:
    """Return Σx² of what was changed in a parameter since it was copied; the copy is overwritten."""
    if not isinstance(before, np.ndarray):
        return square_of(before.sub_(parameter.detach()))
    with silent_floats():
        return square_of_array(np.subtract(before, parameter._data, out=before))


def _trained(optimizer: AnyOptimizer, layers: dict[str, list]) -> list:
    known = {id(parameter) for parameter in chain(*layers.values())}
    held = chain.from_iterable(group["params"] for group in optimizer.param_groups)
    return [parameter for parameter in held if id(parameter) in known]


def _closure_in(args: tuple, kwargs: dict) -> bool:
    """Return whether a step computes its gradients itself; the first argument is the optimizer."""
    return any(value is not None for value in (*args[1:], kwargs.get("closure")))


def _dense(grad: AnyTensor):
    """Return a gradient without its graph; of a sparse one, the values."""
    grad = grad.detach()
    return grad.coalesce().values() if getattr(grad, "is_sparse", False) else grad


def _share(part: float | None, total: float | None) -> float | None:
    return None if part is None or not total else part / total

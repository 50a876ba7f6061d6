"""Forward mode: dual tensors with a tangent for each level, and the interpreter that computes tangents op by op.

NOTE [Duals]
A dual is an ordinary tensor. `tensor._tangents` maps each level of forward mode that is on to the tensor's tangent, a
tensor of the same shape, which may itself be a dual of the levels outside. A level is an interpreter (NOTE
[Interpreters]): it runs the op below itself, where the outer levels give the output their tangents, then computes its
own from the inputs' (codegen/pushforward.py), again below itself, so that these ops are differentiated by the outer
levels only: d/dx (x · d/dy (x + y)) is right because the inner level's ops are the outer's too, and not the other way
round. Levels may be nested to any depth.

A tangent lies in memory as its tensor does (`attach` sees to it), so that the tangent of a view is the same view of the
tangent, and shares its memory. A view that was made before its base got a tangent finds it there (`tangent_of`).

The primal that is unpacked from a dual shares the dual's memory and has no tangent: it, and each view of it, has None
in `_tangents`.

When it ends, a level removes its tangents from all tensors. A node that saved its own output as an array finds the
tangents for a backward in `node.extra`.
"""

import weakref
from collections.abc import Callable
from itertools import chain

import numpy as np

from backlight.codegen.declaration import Op
from backlight.codegen.op_table import TENSOR_OPS
from backlight.codegen.pushforward import tangents_of_outputs
from backlight.dispatch.dispatcher import interpreting
from backlight.dispatch.interpreters import UNHANDLED, Interpreter, interpreted, local, without
from backlight.engine.grad_mode import modes
from backlight.engine.mutation_checks import unchecked
from backlight.engine.node import extra_of
from backlight.engine.tensor_state import LEAF, TensorState, wrap, writable
from backlight.engine.views import positions_in, same_part, shows_parts
from backlight.errors import ShapeError, UnsupportedError
from backlight.layouts import contiguous_format

ndarray = np.ndarray


class Tangents(dict):
    """A tensor's tangents by level; a dict that can be referred to weakly."""

    __slots__ = ("__weakref__",)


class Level(Interpreter):
    """One level of forward mode."""

    __slots__ = ("_given",)

    sees_backward = True

    def __init__(self):
        self._given = weakref.WeakValueDictionary()  # id -> Tangents that have one of this level

    def op(self, op: Op, function: Callable, args: tuple, kwargs: dict):
        """Run an op, and give its output the tangent that follows from those of the inputs."""
        if not enabled() or not any(self.has(one) for one in chain(args, kwargs.values())):
            shown = op.view and self._is_primal(args[0] if args else kwargs.get("input"))
            return self._part_of_primal(function, args, kwargs) if shown else UNHANDLED
        out = function(*args, **kwargs)
        if out is not NotImplemented:
            outs = (out,) if isinstance(out, TensorState) else tuple(out)
            for one, tangent in zip(outs, self.push_forward(op, function, args, kwargs, outs)):
                if tangent is not None:
                    self.attach(one, tangent)
        return out

    def push_forward(self, op: Op, function: Callable, args: tuple, kwargs: dict, outs: tuple) -> list:
        """Return the tangent of each output of an op, None for those that have none."""
        return tangents_of_outputs(self, op, function, args, kwargs, outs)

    def outside(self):
        """Remove this level from the stack within the block."""
        return without(self)

    def zeros(self, tensor: TensorState):
        """Return a tangent of zeros that may be written to."""
        return wrap(np.zeros_like(tensor._data))

    def match_layout(self, tangent: TensorState, tensor: TensorState):
        """Return a tangent whose elements follow each other in memory as its tensor's do: itself, if they do."""
        return _match_layout(tangent, tensor)

    def view_of(self, base_tangent: TensorState, base: TensorState, tensor: TensorState):
        """Return the view of a base's tangent that corresponds to a view of the base."""
        if shows_parts(base, tensor):
            raise UnsupportedError(
                "forward mode does not follow writes through views of real and imaginary parts: write to the complex "
                "tensor, or compute a new one with torch.complex"
            )
        positions = positions_in(base, tensor)  # or its error, if the base is not one piece of memory
        return TENSOR_OPS.as_strided(
            base_tangent, positions, same_part(writable(base_tangent), writable(base), tensor._data)
        )

    def _part_of_primal(self, function: Callable, args: tuple, kwargs: dict):
        """Make a view of an unpacked primal: its base is a dual, the view is not."""
        out = function(*args, **kwargs)
        for one in (out,) if isinstance(out, TensorState) else out:
            self._set_primal(one)
        return out

    def _is_primal(self, tensor: TensorState) -> bool:
        """Tell whether a tensor is an unpacked primal, to which the tangent of its memory does not belong."""
        own = getattr(tensor, "_tangents", None)
        return own is not None and self in own and own[self] is None

    def _set_primal(self, tensor: TensorState) -> None:
        tensor._tangents = Tangents(tensor._tangents or {})
        tensor._tangents[self] = None
        self._given[id(tensor._tangents)] = tensor._tangents

    def has(self, value: object) -> bool:
        """Tell whether an argument is a tensor with a tangent of this level, or a list in which there is one."""
        if isinstance(value, TensorState):
            return self.tangent_of(value) is not None
        return isinstance(value, (list, tuple)) and any(self.has(one) for one in value if isinstance(one, TensorState))

    def tangent_of(self, tensor: TensorState):
        """Return a tensor's tangent of this level, or None."""
        own = tensor._tangents
        if own is not None and self in own:
            return own[self]
        if tensor._view is None:
            return None
        base = tensor._view[0]
        base_tangent = None if base._tangents is None else base._tangents.get(self)
        if base_tangent is None:
            return None
        self.attach(tensor, self.view_of(base_tangent, base, tensor))
        return tensor._tangents[self]

    def attach(self, tensor: TensorState, tangent: TensorState) -> None:
        """Give a tensor its tangent of this level.

        Raises:
            RuntimeError: the shapes differ.
        """
        if tangent._data.shape != tensor._data.shape:
            raise ShapeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
                f"not supported. Tensor is of size {list(tensor._data.shape)} while the given forward gradient is of "
                f"size {list(tangent._data.shape)}."
            )
        tangents = tensor._tangents
        if tangents is None:
            tangents = tensor._tangents = Tangents()
            _note_in_node(tensor, tangents)
        tangents[self] = self.match_layout(tangent, tensor)
        self._given[id(tangents)] = tangents

    def write(self, target: TensorState, tangent: TensorState) -> None:
        """Overwrite a tensor's tangent after a write to the tensor; None stands for zeros."""
        present = self.tangent_of(target)
        if present is None and tangent is None:
            return
        with self.outside(), unchecked():
            if present is not None:
                _ = present.zero_() if tangent is None else present.copy_(tangent)
            elif target._view is None or self._is_primal(target):
                self.attach(target, TENSOR_OPS.to_copy(tangent, target._data.dtype))
            else:
                base = target._view[0]
                self.attach(base, self.zeros(base))
                self.tangent_of(target).copy_(tangent)

    def dual(self, primal: TensorState, tangent: TensorState):
        """Return an alias of a tensor that carries a tangent; without one where forward mode is off."""
        with without(self):
            made = _alias(primal)
            if enabled():
                self.attach(made, tangent)
        return made

    def unpacked(self, tensor: TensorState) -> tuple:
        """Return an alias of a tensor without its tangent, and the tangent, or None."""
        tangent = self.tangent_of(tensor) if enabled() else None
        with without(self):
            primal = _alias(tensor)
            if tangent is not None:
                self._set_primal(primal)
            return primal, tangent

    def forget(self) -> None:
        """Remove this level's tangents from all tensors."""
        for tangents in list(self._given.values()):
            tangents.pop(self, None)


class level(interpreting):  # noqa: N801 - used as a function
    """Enter a level of forward mode, by default a new one, inside all levels that are on."""

    def __init__(self, of: Level | None = None):
        super().__init__(Level() if of is None else of)

    def _block_restore(self, state: tuple) -> None:
        super()._block_restore(state)
        self.interpreter.forget()


def enabled() -> bool:
    """Tell whether this thread computes tangents: not in inference mode, and not where forward mode is off."""
    return modes.forward and not modes.inference


def levels() -> list[Level]:
    """Return this thread's levels, the outermost first."""
    if not interpreted.blocks or not enabled():
        return []
    return [one for one in local.interpreters if isinstance(one, Level)]


def has_tangents(*tensors) -> bool:
    """Tell whether one of the tensors (or None) has a tangent of a level that is on."""
    return any(level.has(tensor) for level in levels() for tensor in tensors)


def copy_tangents(source: TensorState, target: TensorState, *, cloned: bool) -> None:
    """Give a tensor the tangents of another one of its shape, or (`cloned`) copies of them."""
    for level in levels():
        tangent = level.tangent_of(source)
        if tangent is not None:
            with level.outside():
                level.attach(target, TENSOR_OPS.clone(tangent) if cloned else tangent)


def write_tangents(target: TensorState, result: TensorState) -> None:
    """Update a tensor's tangents after a write to it; `result` holds the written values, None for constants."""
    for level in levels():
        level.write(target, None if result is None else level.tangent_of(result))


def _alias(tensor: TensorState):
    """Return a view of all of a tensor, which has its own tangents."""
    return TENSOR_OPS.view(tensor, tuple(tensor._data.shape))


def _note_in_node(tensor: TensorState, tangents: Tangents) -> None:
    """Note a tensor's tangents in the node that made it, if that saved its own output."""
    edge = tensor._edge
    if edge is None or edge is LEAF:
        return
    node, number = tensor.grad_fn, tensor.output_nr
    if hasattr(node, "out") or hasattr(node, "ctx"):
        extra_of(node).tangents[number] = tangents


def _match_layout(tangent: TensorState, tensor: TensorState):
    """Return a tangent whose elements follow each other in memory as its tensor's do: itself, if they do."""
    model, data = tensor._data, tangent._data
    if data.__class__ is not ndarray or model.__class__ is not ndarray or data.size < 2:
        return tangent
    order = sorted(range(model.ndim), key=lambda dim: -model.strides[dim])
    if not model.transpose(
        order
    ).flags.c_contiguous:  # a slice or an expanded view: any layout without repetition will do
        return tangent if 0 in model.strides or 0 not in data.strides else _rows(tangent)
    if data.transpose(order).flags.c_contiguous:
        return tangent
    return TENSOR_OPS.permute(
        _rows(TENSOR_OPS.permute(tangent, order)), sorted(range(model.ndim), key=order.__getitem__)
    )


def _rows(tangent: TensorState):
    return TENSOR_OPS.clone(tangent, memory_format=contiguous_format)

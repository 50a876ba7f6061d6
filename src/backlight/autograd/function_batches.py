"""vmap of custom Functions: by their own `vmap` rule, or by one generated from forward and backward."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from backlight.autograd.function import MORE, NO_SETUP, Function
from backlight.dispatch.dispatcher import interpreting
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, MissingMethodError
from backlight.transforms.pytrees import broadcast_to, tree_flatten, tree_unflatten
from backlight.transforms.vmap.batched_tensor import BatchedTensor, batched
from backlight.transforms.vmap.interpreter import VmapLevel


class VmapInfo(NamedTuple):
    """The `info` argument of a Function's `vmap`: the size of the batch, and how its elements draw random numbers."""

    batch_size: int
    randomness: str


def called(level: VmapLevel, function: Callable, args: Sequence, kwargs: dict):
    """Return the result of a Function for batched tensors.

    Raises:
        RuntimeError: it has no rule, or two.
    """
    cls, *operands = args
    name = cls.__name__
    own_rule = cls.vmap is not Function.vmap
    if cls.setup_context is Function.setup_context:
        raise GraphError(NO_SETUP)
    if any(isinstance(value, TensorState) for value in kwargs.values()):
        raise MissingMethodError(
            "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to "
            f"autograd.Function. Got: {kwargs}"
        )
    if cls.generate_vmap_rule and own_rule:
        raise GraphError(
            f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            f"ambiguity. {MORE}"
        )
    if own_rule:
        return _by_own_rule(cls, level, operands)
    if not cls.generate_vmap_rule:
        raise GraphError(
            f"You tried to vmap over {name}, but it does not have vmap support. Please override and implement the vmap "
            f"staticmethod or set generate_vmap_rule=True. {MORE}"
        )
    are_batched = tuple([_is_of(level, value) for value in operands])
    outputs = Vmapped.apply(cls, level, are_batched, *[_below(level, value) for value in operands])
    if isinstance(outputs, tuple):
        return tuple([batched(out, level) if isinstance(out, TensorState) else out for out in outputs])
    return batched(outputs, level)


def _is_of(level: VmapLevel, value: object) -> bool:
    return value.__class__ is BatchedTensor and value.level is level


def _below(level: VmapLevel, value: object):
    return value.physical if _is_of(level, value) else value


def _by_own_rule(cls, level: VmapLevel, operands: Sequence):
    """Call the Function's `vmap` on the physical tensors."""
    info = VmapInfo(level.size, level.randomness)
    leaves, spec = tree_flatten(tuple(operands))
    in_dims = tree_unflatten([0 if _is_of(level, leaf) else None for leaf in leaves], spec)
    result = cls.vmap(info, in_dims, *tree_unflatten([_below(level, leaf) for leaf in leaves], spec))
    if not isinstance(result, tuple) or len(result) != 2:
        got = f"{len(result)} returns" if isinstance(result, tuple) else f"a {type(result)}"
        raise GraphError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
            f"compatible with the output. Got {got} instead"
        )
    outputs, out_spec = tree_flatten(result[0])
    dims = broadcast_to(result[1], out_spec)
    made = [out if dim is None else batched(out.movedim(dim, 0), level) for out, dim in zip(outputs, dims)]
    return tree_unflatten(made, out_spec)


# --- the generated rule -- -------------------------------------------------------------------------------------------


class _Saved:
    """A saved tensor, for `ctx.saved_tensors`."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: TensorState):
        self.tensor = tensor

    def unpack(self):
        return self.tensor


def _raised(level: VmapLevel, values: Sequence, are_batched: Sequence[bool]) -> list:
    return [batched(one, level) if flag and one is not None else one for one, flag in zip(values, are_batched)]


def _in_front(level: VmapLevel, value: object):
    if not isinstance(value, TensorState):
        return value
    return value.physical if _is_of(level, value) else value.unsqueeze(0).expand((level.size, *value._data.shape))


class Vmapped(Function):
    """A Function run on batches: its forward and its backward each inside a vmap."""

    generate_vmap_rule = True

    @staticmethod
    def forward(cls, level: VmapLevel, are_batched: Sequence[bool], *operands):
        """Return the outputs of a forward, each with the batch in front."""
        with level.reenter():
            output = cls.forward(*_raised(level, operands, are_batched))
        several = isinstance(output, tuple)
        found = [_in_front(level, one) for one in (output if several else (output,))]
        return tuple(found) if several else found[0]

    @staticmethod
    def setup_context(ctx, inputs: tuple, output):
        """Run the Function's setup_context on batches, and keep what it saves with the batches in front."""
        cls, level, are_batched, *operands = inputs
        given = _raised(level, operands, are_batched)
        outputs = output if isinstance(output, tuple) else (output,)
        raised = [batched(one, level) if isinstance(one, TensorState) else one for one in outputs]
        own = cls._backward_cls()
        own.needs_input_grad = ctx.needs_input_grad[3:]
        with level.reenter():
            cls.setup_context(own, tuple(given), tuple(raised) if isinstance(output, tuple) else raised[0])
        if own.dirty_tensors:
            raise MissingMethodError(
                "NYI: vmap over autograd.Function.mark_dirty; return a new tensor instead of one changed in place"
            )
        saved = list(own.to_save or ())
        ctx.saved_are_batched = [_is_of(level, one) for one in saved]
        below = {id(one): physical for one, physical in zip((*given, *raised), (*operands, *outputs))}
        ctx.save_for_backward(*[below.get(id(one), _below(level, one)) for one in saved])
        if own.saved_for_forward is not None:
            kept = own.saved_for_forward
            ctx.kept_are_batched = [_is_of(level, one) for one in kept]
            ctx.save_for_forward(*[below.get(id(one), _below(level, one)) for one in kept])
        constant = {id(one) for one in own.non_differentiable or ()}
        ctx.mark_non_differentiable(*[one for one, above in zip(outputs, raised) if id(above) in constant])
        ctx.set_materialize_grads(own._materialize)
        ctx.own, ctx.cls, ctx.are_batched = own, cls, are_batched
        ctx.batch = VmapInfo(level.size, level.randomness)

    @staticmethod
    def backward(ctx, *grads):
        """Return the gradients for the operands: summed over the batch for those that had none."""
        own, level = ctx.own, VmapLevel(*ctx.batch)
        with interpreting(level):
            own._saved = [_Saved(one) for one in _raised(level, ctx.saved_tensors, ctx.saved_are_batched)]
            found = ctx.cls._run_backward(own, *[None if one is None else batched(one, level) for one in grads])
        found = list(found) if isinstance(found, tuple) else [found]
        made = []
        for one, had_batch in zip(found, ctx.are_batched):
            if one is None:
                made.append(None)
            elif had_batch:
                made.append(_in_front(level, one))
            else:
                made.append(one.physical.sum(0) if _is_of(level, one) else one)
        return None, None, None, *made

    @staticmethod
    def jvp(ctx, *tangents):
        """Return the tangents of the outputs, each with the batch in front."""
        own, level = ctx.own, VmapLevel(*ctx.batch)
        with interpreting(level):
            if own.saved_for_forward is not None:
                own.saved_for_forward = tuple(_raised(level, ctx.saved_tensors, ctx.kept_are_batched))
            own._pushes_forward = True
            try:
                found = ctx.cls.jvp(own, *_raised(level, tangents[3:], ctx.are_batched))  # the first are no tensors
            finally:
                own._pushes_forward = False
        return tuple([_in_front(level, one) for one in (found if isinstance(found, tuple) else (found,))])

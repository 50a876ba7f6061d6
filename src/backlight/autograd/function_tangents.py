"""Forward mode through a custom Function: its `jvp` gives the tangents of its outputs."""

from collections.abc import Sequence

from backlight.codegen.forward_mode import Level, levels
from backlight.codegen.op_table import TENSOR_OPS
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError
from backlight.ops.type_promotion import has_gradient


def push_tangents(function, ctx, args: tuple, raw: tuple, outputs: tuple) -> None:
    """Set the tangents of a Function's outputs from its jvp, for each level of forward mode.

    Args:
        args: the arguments of forward.
        raw: the results of forward.
        outputs: the same as returned to the caller.

    Raises:
        NotImplementedError: an input has a tangent and the Function has no jvp.
        RuntimeError: jvp returned too many or too few tangents, or some that do not fit the outputs.
    """
    marked = {id(one) for one in ctx.non_differentiable or ()}
    for level in levels():
        tangents = [level.tangent_of(one) if isinstance(one, TensorState) else None for one in args]
        if any(tangent is not None for tangent in tangents):
            with level.outside():
                found = _called(function, ctx, args, tangents)
                _require_count(found, outputs)
                for place, (out, tangent) in enumerate(zip(outputs, found)):
                    _attach(level, place, out, tangent, args, tangents, id(raw[place]) in marked)


def _called(function, ctx, args: tuple, tangents: list) -> tuple:
    """Call the user's jvp: missing tangents are zeros, unless `ctx.set_materialize_grads(False)`."""
    if ctx._materialize:
        tangents = [
            TENSOR_OPS.clone(TENSOR_OPS.filling_zeros(one))
            if tangent is None and isinstance(one, TensorState) and has_gradient(one._data.dtype)
            else tangent
            for one, tangent in zip(args, tangents)
        ]
    ctx._pushes_forward = True
    try:
        found = function.jvp(ctx, *tangents)
    finally:
        ctx._pushes_forward = False
    return found if isinstance(found, tuple) else (found,)


def _require_count(found: tuple, outputs: tuple) -> None:
    if len(found) != len(outputs):
        raise GraphError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got "
            f"{len(found)})"
        )
    for place, tangent in enumerate(found):
        if tangent is not None and not isinstance(tangent, TensorState):
            raise GraphError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {place}.")


def _attach(
    level: Level, place: int, out: TensorState, tangent: object, args: Sequence, tangents: Sequence, constant: bool
) -> None:
    """Set the tangent of one output."""
    if constant or not isinstance(out, TensorState) or not has_gradient(out._data.dtype):
        if tangent is not None:
            raise GraphError(
                f"Function's jvp returned a gradient at position {place}, but  the corresponding forward output is not "
                "a differentiable Tensor.You should return None at that position instead."
            )
        return
    if tangent is None or not has_gradient(tangent._data.dtype):
        raise GraphError(
            "Expected both tensor and its forward grad to be floating point or complex; jvp returned "
            f"{'None' if tangent is None else tangent.dtype} for output {place}: return zeros where nothing changes"
        )
    for one, given in zip(args, tangents):
        if one is out and given is not None:  # forward changed it
            _require_same(tangent, given)
            return
    if out._view is not None and tangent._view is None:
        raise GraphError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
        )
    level.attach(out, tangent)


def _require_same(tangent: object, given: object) -> None:
    if tangent is not given:
        raise GraphError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
            "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace."
        )

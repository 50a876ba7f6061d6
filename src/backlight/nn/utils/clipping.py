"""Gradient clipping, by norm or by value."""

import math
import warnings
from collections.abc import Iterable
from types import GeneratorType

import numpy as np

from backlight.dispatch.observation import begin_write, end_write
from backlight.engine.grad_mode import no_grad
from backlight.engine.provenance import user_place
from backlight.engine.tensor_state import TensorState, wrap, writable
from backlight.errors import GraphError
from backlight.kernels.nn.optimizer_steps import scale_in_place, sum_of_squares
from backlight.kernels.sparse_array import is_sparse
from backlight.ops.reduction.norms import vector_norm
from backlight.ops.shape.joining import stack
from backlight.tensor.creation import tensor
from backlight.tensor.tensor import Tensor

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

_PLAIN = {np.dtype(np.float32), np.dtype(np.float64)}


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm of several tensors, taken as one vector.

    Raises:
        RuntimeError: it is inf or nan, and `error_if_nonfinite` is True.
    """
    tensors, norm_type = _listed(tensors), float(norm_type)
    if not tensors:
        return tensor(0.0)
    kind = _plain_dtype(tensors)
    if norm_type == 2.0 and kind is not None:
        total = wrap(kind.type(math.sqrt(sum([sum_of_squares(each._data) for each in tensors]))))
    else:
        with no_grad():
            total = vector_norm(stack([vector_norm(each, norm_type) for each in tensors]), norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise GraphError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients by max_norm / total_norm, in place, if that makes them smaller."""
    gradients = _gradients(_listed(parameters))
    if not gradients:
        return
    with no_grad():
        scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        if _plain_dtype([*gradients, total_norm]) is None:
            for grad in gradients:
                grad.mul_(scale)
            return
    factor, place = scale.item(), user_place()
    for grad in gradients:
        begin_write(grad, "clip_grad_norm_", place)
        if factor != 1:
            scale_in_place(writable(grad), factor)
        end_write(grad)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients, in place, so that their norm, taken as one vector, is at most `max_norm`.

    Args:
        norm_type: the order of the norm; inf takes the largest element.
        error_if_nonfinite: raise if the norm is inf or nan, instead of scaling gradients by it.
        foreach: accepted; it has no effect.

    Returns:
        The norm before clipping.

    Raises:
        RuntimeError: the norm is inf or nan, and `error_if_nonfinite` is True.
    """
    listed = _listed(parameters)
    if isinstance(parameters, GeneratorType) and not listed:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    total = get_total_norm(_gradients(listed), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(listed, max_norm, total, foreach)
    return total


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamp each element of all gradients to [−clip_value, clip_value], in place."""
    limit = float(clip_value)
    with no_grad():
        for grad in _gradients(_listed(parameters)):
            grad.clamp_(-limit, limit)


def _listed(tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, TensorState) else list(tensors)


def _plain_dtype(tensors: list[Tensor]) -> np.dtype | None:
    """Return the common dtype, float32 or float64, of dense tensors without history; None for others."""
    kinds = {each._data.dtype for each in tensors}
    other = any(each._edge is not None or each._view is not None or is_sparse(each) for each in tensors)
    return kinds.pop() if len(kinds) == 1 and kinds <= _PLAIN and not other else None


def _gradients(parameters: list[Tensor]) -> list[Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]

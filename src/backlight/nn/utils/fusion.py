"""Fuse a layer and the batch norm after it into one layer; and `skip_init`."""

import copy
import inspect

from backlight.errors import GraphError
from backlight.nn.modules.module import Module
from backlight.nn.parameter import Parameter
from backlight.tensor.factories import ones_like, zeros_like
from backlight.tensor.tensor import Tensor

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "skip_init"]


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """Fuse a convolution and the batch norm after it into a new convolution; both must be in eval mode."""
    _require_eval(conv, bn)
    return _with(
        conv,
        fuse_conv_bn_weights(
            conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
        ),
    )


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
    """Fuse a linear layer and the batch norm after it into a new linear layer; both must be in eval mode."""
    _require_eval(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return _with(
        linear,
        fuse_linear_bn_weights(linear.weight, linear.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias),
    )


def _require_eval(layer: Module, bn: Module) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def _with(layer: Module, parameters: tuple) -> Module:
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = parameters
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
):
    """Return weight and bias of a convolution fused with a batch norm.

    Args:
        conv_b: may be None, like `bn_w` and `bn_b`.
        transpose: whether the weight has the output's channels in dim 1.
    """
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    return _fused(conv_w, conv_b, shape, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of a linear layer fused with a batch norm."""
    return _fused(linear_w, linear_b, [-1, 1], bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _fused(weight: Tensor, bias: Tensor | None, shape: list[int], *norm: Tensor | float | None) -> tuple:
    mean, variance, eps, scale, shift = norm
    trained = weight.requires_grad, weight.requires_grad if bias is None else bias.requires_grad
    bias = zeros_like(mean) if bias is None else bias
    scale = ones_like(mean) if scale is None else scale
    shift = zeros_like(mean) if shift is None else shift
    factors = scale * (variance + eps).rsqrt()
    fused = (weight * factors.reshape(shape)).to(weight.dtype), ((bias - mean) * factors + shift).to(bias.dtype)
    return tuple(Parameter(one.detach(), wanted) for one, wanted in zip(fused, trained))


def skip_init(module_cls: type, *args, **kwargs) -> Module:
    """Make a module whose parameters the caller will overwrite; here they get the usual initial values.

    Raises:
        RuntimeError: the class is not a Module, or does not accept `device`.
    """
    if not issubclass(module_cls, Module):
        raise GraphError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise GraphError("Module must support a 'device' arg to skip initialization")
    return module_cls(*args, **kwargs)

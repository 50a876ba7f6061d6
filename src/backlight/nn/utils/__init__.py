"""PyTorch's `torch.nn.utils`: clipping, pruning, parametrizations, packed sequences."""

from typing import TYPE_CHECKING

from backlight.dispatch.arguments.checked import with_checks
from backlight.nn.utils import parametrizations, parametrize, rnn
from backlight.nn.utils.clipping import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from backlight.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
    skip_init,
)
from backlight.nn.utils.memory_format import convert_conv2d_weight_memory_format, convert_conv3d_weight_memory_format
from backlight.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from backlight.nn.utils.vectors import parameters_to_vector, vector_to_parameters
from backlight.nn.utils.weight_norm import remove_weight_norm, weight_norm
from backlight.system.lazy_import import names_later

if TYPE_CHECKING:
    from backlight.nn.utils import prune

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]

__getattr__, __dir__ = names_later(__name__, {}, ("prune",))

globals().update(with_checks(globals(), __all__, __name__))

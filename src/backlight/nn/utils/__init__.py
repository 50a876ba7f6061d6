"""What is done to gradients and parameters as a whole, under PyTorch's names."""

from backlight.nn.utils import parametrizations, parametrize, rnn
from backlight.nn.utils.clipping import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from backlight.nn.utils.vectors import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "rnn",
    "vector_to_parameters",
]

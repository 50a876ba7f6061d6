"""Weights of convolutions in another memory format."""

from backlight.layouts import memory_format
from backlight.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from backlight.nn.modules.module import Module


def convert_conv2d_weight_memory_format(module: Module, memory_format: memory_format) -> Module:
    """Convert the weights of all Conv2d and ConvTranspose2d in a module to a memory format; return the module."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: memory_format) -> Module:
    """Convert the weights of all Conv3d and ConvTranspose3d in a module to a memory format; return the module."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)


def _convert(module: Module, kinds: tuple[type, ...], wanted: memory_format) -> Module:
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone(memory_format=wanted)
    return module

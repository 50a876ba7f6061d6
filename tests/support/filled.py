"""Tensors of known numbers, the same in backlight and in PyTorch."""

import numpy as np
import torch

import backlight

BOTH = (backlight, torch)


def filled(t, *shape, dtype="float32", start=0.1):
    """Return a tensor of growing numbers."""
    count = int(np.prod(shape))
    return (t.arange(count, dtype=t.float64) * 0.37 + start).sin().reshape(shape).to(getattr(t, dtype))

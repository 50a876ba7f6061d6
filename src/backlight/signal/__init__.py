"""PyTorch's `torch.signal`: windows for spectra."""

from backlight.signal import windows

__all__ = ["windows"]

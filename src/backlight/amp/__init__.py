"""PyTorch's `torch.amp`: ops in lower precision inside a block, and gradients scaled for it."""

from backlight.amp.autocasting import autocast, custom_bwd, custom_fwd, is_autocast_available
from backlight.amp.scaling import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

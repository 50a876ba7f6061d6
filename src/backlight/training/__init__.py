"""Training you can see: runs that are recorded, interrupted and taken up again."""

from backlight.training.recorder import Recorder

__all__ = ["Recorder"]

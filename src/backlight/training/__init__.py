"""Training you can see: runs that are recorded, and can be interrupted and resumed."""

from backlight.training.recorder import Recorder

__all__ = ["Recorder"]

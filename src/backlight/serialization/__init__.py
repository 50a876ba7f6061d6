"""Saving and loading, under PyTorch's names."""

from backlight.serialization.reading import load
from backlight.serialization.safe import load_file, save_file
from backlight.serialization.writing import save

__all__ = ["load", "load_file", "save", "save_file"]

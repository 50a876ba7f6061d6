"""Saving and loading, under PyTorch's names."""

from backlight.serialization.allowed import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from backlight.serialization.reading import get_unsafe_globals_in_checkpoint, load
from backlight.serialization.safe import load_file, save_file
from backlight.serialization.writing import save

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "load_file",
    "safe_globals",
    "save",
    "save_file",
]

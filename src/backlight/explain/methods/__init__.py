"""Methods of explanation, a file each."""

from backlight.explain.methods.registry import DEFAULT, METHODS, Method, method_called

__all__ = ["DEFAULT", "METHODS", "Method", "method_called"]

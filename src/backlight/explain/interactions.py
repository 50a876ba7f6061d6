"""The documented names of explain/methods/interactions.py, under the path that programs import them from."""

from backlight.explain.methods.interactions import matrix as matrix

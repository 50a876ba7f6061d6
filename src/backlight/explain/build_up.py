"""The documented names of explain/methods/logit_lens.py, under the path that programs import them from."""

from backlight.explain.methods.logit_lens import build_up as build_up

"""The documented names of explain/methods/integrated_gradients.py, under the path that programs import them from."""

from backlight.explain.methods.integrated_gradients import integrated_gradients as integrated_gradients

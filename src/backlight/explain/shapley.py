"""The documented names of explain/methods/shapley.py, under the path that programs import them from."""

from backlight.explain.methods.shapley import kernel_shap, shapley

__all__ = ["kernel_shap", "shapley"]

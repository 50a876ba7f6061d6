"""The documented names of explain/methods/shapley.py, under the path that programs import them from."""

from backlight.explain.methods.shapley import kernel_shap as kernel_shap
from backlight.explain.methods.shapley import shapley as shapley

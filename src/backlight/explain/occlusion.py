"""The documented names of explain/methods/occlusion.py, under the path that programs import them from."""

from backlight.explain.methods.occlusion import occlusion as occlusion
from backlight.explain.methods.occlusion import occlusion_by_sentence as occlusion_by_sentence

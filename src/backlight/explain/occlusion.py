"""The documented names of explain/methods/occlusion.py, under the path that programs import them from."""

from backlight.explain.methods.occlusion import occlusion, occlusion_by_sentence

__all__ = ["occlusion", "occlusion_by_sentence"]

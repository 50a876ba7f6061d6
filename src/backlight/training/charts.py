"""The documented names of training/pages/charts.py, under the path that programs import them from."""

from backlight.training.pages.charts import Series, curves

__all__ = ["Series", "curves"]

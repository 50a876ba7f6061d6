"""The documented names of report/charts.py, under the path that programs import them from."""

from backlight.report.charts import Series, curves

__all__ = ["Series", "curves"]

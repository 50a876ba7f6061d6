"""Neural networks."""

from backlight.nn import functional

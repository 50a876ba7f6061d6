"""Numbers for the eye, in a few characters."""

import math
from collections.abc import Callable, Sequence

BARS = "▁▂▃▄▅▆▇█"


def clock(seconds: float) -> str:
    """Return a time as minutes and seconds, or hours, minutes and seconds.

    >>> clock(65), clock(3725)
    ('1:05', '1:02:05')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def number(value: float | None) -> str:
    """Return a loss for the eye; one that was not finite is recorded as None."""
    return "not finite" if value is None or not math.isfinite(value) else f"{value:.4f}"


def sparkline(values: Sequence[float | None], *, log: bool = False) -> str:
    """Return numbers as bars between the smallest and the largest of them; a blank for None and what is not finite.

    Args:
        log: compare their powers of ten; 0 is then the lowest bar.

    >>> sparkline([1, 2, None, 3, 8])
    '▁▂ ▃█'
    >>> sparkline([0, 1e-6, 1e-3, 1.0], log=True)
    '▁▁▅█'
    """
    known = [value for value in values if value is not None and math.isfinite(value) and (value > 0 or not log)]
    if not known:
        return "".join(BARS[0] if value == 0 else " " for value in values) if log else ""
    scale = math.log10 if log else float
    low, high = scale(min(known)), scale(max(known))
    return "".join(_bar(value, scale, low, (high - low) or 1) for value in values)


def _bar(value: float | None, scale: Callable[[float], float], low: float, spread: float) -> str:
    if value is None or not math.isfinite(value):
        return " "
    if scale is math.log10 and value <= 0:
        return BARS[0]
    return BARS[round((len(BARS) - 1) * (scale(value) - low) / spread)]


UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size: int) -> str:
    """Write a size in bytes, with three digits.

    >>> size_text(0), size_text(12), size_text(4096), size_text(3_500_000), size_text(1_046_500)
    ('0 B', '12 B', '4 KiB', '3.34 MiB', '1020 KiB')
    """
    if size < 1024:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, len(UNITS) - 1)
    return f"{float(f'{size / 1024**power:.3g}'):g} {UNITS[power]}"

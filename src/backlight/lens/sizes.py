"""How a size in bytes is written, everywhere in the lens; the page's `bytesText` (numbers.js) writes it alike."""

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

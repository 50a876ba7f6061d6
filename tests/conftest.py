"""What tests of native kernels share."""

import pytest

from backlight.kernels.native import compiled


def _levels() -> list[str]:
    """Return the levels that this machine runs; the one in use stays so."""
    if compiled is None:
        return []
    before = compiled.level()
    found = [name for name in ("v1", "v3", "v4") if compiled.use_level(name)]
    compiled.use_level(before)
    return found


@pytest.fixture(params=_levels())
def level(request):
    """Run a test at each level of the native kernels."""
    before = compiled.level()
    compiled.use_level(request.param)
    yield request.param
    compiled.use_level(before)

"""What tests of native kernels share, and how workers share the machine."""

import importlib
import os

import pytest

from native_required import compiled, require_native  # first: it says what is wrong with the import of backlight

# isort: split

if "PYTEST_XDIST_WORKER" in os.environ:  # workers have a core each: PyTorch's threads would wait for each other's cores
    importlib.import_module("torch").set_num_threads(1)


def pytest_configure(config):
    """End a session that must have native kernels and has none."""
    require_native()


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

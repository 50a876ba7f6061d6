"""What tests share: levels of the native kernels, a browser; how workers share the machine; what the machine lacks."""

import gc
import importlib
import logging
import os

import pytest
from native_required import compiled, require_native  # first: it says what is wrong with the import of backlight

# isort: split

from browser import MISSING, Browser, chromium_path
from for_each import seed_all

from backlight.dispatch.torch_function import overrides_state

_held = 0  # how many classes had a handler before the test
NEEDS_BROWSER = {"browser", "installed_browser"}
REPORTS_BROWSER = "test_chromium_is_installed"

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each process that a test starts would compile all of backlight
logging.getLogger().addHandler(logging.NullHandler())  # what libraries log is not for stderr, which tests read
if "PYTEST_XDIST_WORKER" in os.environ:  # workers have a core each: PyTorch's threads would wait for each other's cores
    importlib.import_module("torch").set_num_threads(1)


def pytest_configure(config):
    """End a session that must have native kernels and has none; seed what test files draw when they are imported."""
    require_native()
    seed_all()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Begin each test, and what fixtures draw for it, with the same random numbers, whichever worker runs it."""
    global _held
    _held = len(overrides_state.held)
    seed_all()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Free tensor subclasses and meta tensors that caught exceptions hold: public functions call their handlers.

    Those that were there before the test are its file's. After a file's last test all garbage is freed, and what is
    left, caches and modules, is frozen: over a session it grows to millions of objects, and each collection, also those
    that tests ask for, would look through them. Where a class with a handler is left, it is not: it may be in a cycle.
    """
    last = nextitem is None or nextitem.path != item.path
    if last or len(overrides_state.held) > _held:
        gc.collect()
    if last and not overrides_state.held:
        gc.freeze()


def _levels() -> list[str]:
    """Return the levels that this machine runs; the one in use stays so."""
    if compiled is None:
        return []
    before = compiled.level()
    found = [name for name in ("v1", "v3", "v4", "amx") if compiled.use_level(name)]
    compiled.use_level(before)
    return found


@pytest.fixture(params=_levels())
def level(request):
    """Run a test at each level of the native kernels."""
    before = compiled.level()
    compiled.use_level(request.param)
    yield request.param
    compiled.use_level(before)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless Chromium for the tests of a file; these are left out where none is installed."""
    driven = Browser(tmp_path_factory.mktemp("profile"))
    yield driven
    driven.close()


@pytest.fixture(scope="session")
def installed_browser() -> str:
    """The path of Chromium; the test is left out where none is installed."""
    return chromium_path()


def pytest_collection_finish(session):
    """Freeze what collection made: the garbage collector would look through forty thousand tests each time."""
    gc.collect()
    gc.freeze()


def pytest_sessionstart(session):
    """Say first what the machine lacks."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and chromium_path() is None:
        terminal.write_line(f"The tests of pages are left out, and {REPORTS_BROWSER} fails: {MISSING}", red=True)


def pytest_collection_modifyitems(config, items):
    """Leave out the tests of pages where no browser is installed: one test fails for all of them."""
    if chromium_path() is None:
        left_out = [one for one in items if NEEDS_BROWSER & set(getattr(one, "fixturenames", ()))]
        items[:] = [one for one in items if one not in set(left_out)]
        config.hook.pytest_deselected(items=left_out)

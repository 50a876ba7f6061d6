"""The pytest plugin: `pytest --doctor` runs each test under backlight's doctor.

It stands beside the package, so that a session without the option imports nothing of backlight.
"""

import importlib
import warnings

import pytest

WARN, STRICT = "warn", "strict"


class DoctorWarning(pytest.PytestWarning):
    """A mistake with gradients that the doctor found while a test ran."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--doctor` and `--doctor=strict`, which take no word that follows them."""
    group = parser.getgroup("doctor", "mistakes with gradients, found by backlight")
    group.addoption(
        "--doctor",
        dest="doctor",
        action="store_const",
        const=WARN,
        help="run each test under backlight's doctor: a mistake with gradients is a warning",
    )
    group.addoption(
        f"--doctor={STRICT}",
        dest="doctor",
        action="store_const",
        const=STRICT,
        help="the same, and a test in which one is found fails",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and what runs the tests if that is wanted."""
    config.addinivalue_line("markers", "no_doctor: `pytest --doctor` leaves this test alone")
    wanted = config.getoption("doctor")
    if wanted is not None:
        config.pluginmanager.register(Doctor(wanted), "backlight-doctor")


class Doctor:
    """Runs each test under the doctor.

    Args:
        wanted: "warn" or "strict".
    """

    def __init__(self, wanted: str):
        self.wanted = wanted
        self.examine = importlib.import_module("backlight.lens").doctor
        self.describe = importlib.import_module("backlight.lens.doctor.report").describe

    def pytest_report_header(self) -> str:
        """Say that the tests are slower than usual, and why."""
        return (
            f"doctor: each test runs under it; what it finds is a {'failure' if self.wanted == STRICT else 'warning'}"
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item):
        """Run a test, without its fixtures, in a block; a failing test gets the findings as a section."""
        if item.get_closest_marker("no_doctor") is not None:
            return (yield)
        report = None
        try:
            with self.examine() as report:
                out = yield
        except BaseException:
            if report is not None and len(report):
                item.add_report_section("call", "doctor", str(report))
            raise
        if len(report) and self.wanted == STRICT:
            pytest.fail(str(report), pytrace=False)
        for found in report:
            self._warn(item, found)
        return out

    def _warn(self, item: pytest.Item, found) -> None:
        path, line, _ = item.reportinfo()
        place = (str(path), (line or 0) + 1) if found.place is None else (found.place.file, found.place.line)
        warnings.warn_explicit(DoctorWarning(self.describe(found)), None, *place)

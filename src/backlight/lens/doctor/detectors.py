"""Every kind of detector that a session is given."""

from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.history import History

DETECTORS: tuple[type[Detector], ...] = (History,)

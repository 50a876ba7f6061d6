"""Every kind of detector that a session is given."""

from backlight.lens.doctor.detector import Detector

DETECTORS: tuple[type[Detector], ...] = ()

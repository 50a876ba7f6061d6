"""Every kind of detector that a session is given."""

from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.legal import Legal
from backlight.lens.doctor.detectors.second_order import Gradients
from backlight.lens.doctor.history import History
from backlight.lens.doctor.origins import Origins
from backlight.lens.doctor.silent import Silent

DETECTORS: tuple[type[Detector], ...] = (History, Origins, Gradients, Legal, Silent)

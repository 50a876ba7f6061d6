"""Floor 8, the lens: graphs and gradients recorded, drawn, replayed and diagnosed, of backlight and of PyTorch."""

from backlight.lens.diff import Diff, diff
from backlight.lens.doctor.visit import doctor
from backlight.lens.history import History, read_history
from backlight.lens.reading import read_record
from backlight.lens.recorder import Recorder
from backlight.lens.watching import Watch, capture, watch
from backlight.lens.why import path, why

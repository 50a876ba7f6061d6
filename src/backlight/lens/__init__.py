"""Floor 8, the lens: graphs and gradients recorded, drawn, replayed and diagnosed, of backlight and of PyTorch."""

from backlight.lens.answers.why import path, why
from backlight.lens.differences.diff import Diff, diff
from backlight.lens.doctor.doctor_block import doctor
from backlight.lens.flow.history import History, read_history
from backlight.lens.flow.recorder import Recorder
from backlight.lens.records.reading import read_record
from backlight.lens.records.watching import Watch, capture, watch

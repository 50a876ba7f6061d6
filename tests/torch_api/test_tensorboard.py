"""`SummaryWriter`: what TensorBoard reads of it, if its package is installed, and what is said if it is not."""

import importlib.util

import pytest

import backlight
from backlight.torch_api.module_names import torch_names

INSTALLED = importlib.util.find_spec("tensorboard") is not None


@pytest.mark.skipif(INSTALLED, reason="the package is installed")
def test_without_the_package_the_import_says_what_to_install():
    with torch_names(), pytest.raises(ImportError, match="needs the package tensorboard: pip install tensorboard"):
        from torch.utils.tensorboard import SummaryWriter  # noqa: F401


@pytest.mark.skipif(not INSTALLED, reason="needs the package tensorboard")
def test_tensorboard_reads_what_is_written(tmp_path):
    reading = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    with torch_names():
        from torch.utils.tensorboard import SummaryWriter
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss", backlight.tensor(1.0 / (step + 1)), step)
        writer.add_histogram("weights", backlight.arange(10.0), 2)
        writer.add_text("note", "**first** run")
        with pytest.raises(ValueError, match="one number, got 2"):
            writer.add_scalar("two", backlight.ones(2))
    found = reading.EventAccumulator(str(tmp_path)).Reload()
    assert [(event.step, round(event.value, 4)) for event in found.Scalars("loss")] == [(0, 1), (1, 0.5), (2, 0.3333)]
    (shown,) = found.Histograms("weights")
    assert (shown.histogram_value.num, shown.histogram_value.min, shown.histogram_value.max) == (10, 0, 9)
    assert found.Tensors("note/text_summary")[0].tensor_proto.string_val == [b"**first** run"]

"""What `lens.Recorder` adds to a training step, on both engines: an MLP and a small transformer, SGD.

    python benchmarks/lens_recorder.py [--quick] [--json FILE]

The steps are those of training_steps.py. "backlight" is a step with the recorder, on either engine, "torch" PyTorch's
step without it, "without" backlight's. Every step is recorded, in memory; with `every=10` nine steps of ten are only
looked at for NaN and inf.
"""

import sys
from collections.abc import Callable
from functools import partial

from measure import OURS, RIVAL, Bar, Case
from suite import main
from training_steps import NETWORKS, training

from backlight.lens.flow.recorder import Recorder

TITLE = "a training step with lens.Recorder"
WITHOUT, TENTH = "without", "every=10"
BARS = {"MLP": 2.5, "transformer": 1.5}  # of the time of a step without


def _recorded(engine: str, network, **options) -> Callable:
    def watched(model, optimizer):
        return Recorder(model, optimizer, keep=200, **options).step

    return training(engine, network, watched)


def cases(quick: bool = False) -> list[Case]:
    """Return a row for each network on each engine."""
    found = [case for name in BARS for case in (_on_pytorch(name), _on_backlight(name))]
    return found[:1] if quick else found


def _on_pytorch(name: str) -> Case:
    network = NETWORKS[name]
    candidates = {
        OURS: partial(_recorded, RIVAL, network),
        TENTH: partial(_recorded, RIVAL, network, every=10),
        RIVAL: partial(training, RIVAL, network),
    }
    return Case(f"{name} on PyTorch", candidates, bars=(Bar(BARS[name]),), tolerance=None, seconds=8.0)


def _on_backlight(name: str) -> Case:
    network = NETWORKS[name]
    candidates = {
        OURS: partial(_recorded, OURS, network),
        TENTH: partial(_recorded, OURS, network, every=10),
        WITHOUT: partial(training, OURS, network),
        RIVAL: partial(training, RIVAL, network),
    }
    return Case(f"{name} on backlight", candidates, bars=(Bar(BARS[name], (WITHOUT,)),), tolerance=None, seconds=8.0)


if __name__ == "__main__":
    sys.exit(main("lens_recorder", TITLE, cases))

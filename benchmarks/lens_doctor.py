"""What `lens.doctor` adds to a training step, on both engines: an MLP, a CNN and a small transformer, SGD.

    python benchmarks/lens_doctor.py [--quick] [--json FILE]

The steps are those of training_steps.py, ten of them inside one block, as in a loop; what beginning and ending the
block costs is spread over them. "backlight" is a step of the named engine under the doctor, "torch" PyTorch's without
it, "without" backlight's. The doctor must find nothing: the steps are healthy.
"""

import sys
from collections.abc import Callable
from functools import partial

from measure import OURS, RIVAL, Bar, Case
from suite import main
from training_steps import NETWORKS, Network, training

from backlight import lens
from backlight.lens.engines import engine_named

TITLE = "a training step under lens.doctor"
WITHOUT = "without"
SHOWN = ("MLP", "CNN", "transformer")
STEPS = 10
BAR = 2.0  # of the time of a step without


def _ten(engine: str, network: Network) -> Callable:
    step = training(engine, network)

    def ten():
        for _ in range(STEPS):
            step()

    return ten


def _examined(engine: str, network: Network) -> Callable:
    ten = _ten(engine, network)

    def examined():
        with lens.doctor(engines=[engine_named(engine)]) as report:
            ten()
        if report.findings:
            raise AssertionError(f"the steps are healthy, and the doctor found {report.findings}")

    return examined


def _case(name: str, engine: str) -> Case:
    network = NETWORKS[name]
    plain = RIVAL if engine == RIVAL else WITHOUT
    candidates = {OURS: partial(_examined, engine, network), plain: partial(_ten, engine, network)}
    if engine == OURS:
        candidates[RIVAL] = partial(_ten, RIVAL, network)
    title = f"{name} on {'PyTorch' if engine == RIVAL else engine}"
    return Case(title, candidates, bars=(Bar(BAR, (plain,)),), tolerance=None, scale=1 / STEPS, seconds=8.0)


def cases(quick: bool = False) -> list[Case]:
    """Return a row for each network and engine."""
    found = [_case(name, engine) for name in SHOWN for engine in (RIVAL, OURS)]
    return found[:1] if quick else found


if __name__ == "__main__":
    sys.exit(main("lens_doctor", TITLE, cases))

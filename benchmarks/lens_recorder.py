"""What `lens.Recorder` adds to a training step, on both engines: an MLP and a small transformer, SGD.

    python benchmarks/lens_recorder.py [--quick] [--json FILE]

The steps are those of training_steps.py. "backlight" is a step with the recorder, on either engine, "torch" PyTorch's
step without it, "without" backlight's. Every step is recorded, in memory; in rows with `every=10` one of ten is, the
other nine are only looked at for NaN and inf, and ten steps are timed at once.
"""

import sys
from collections.abc import Callable
from functools import partial

from measure import OURS, RIVAL, Bar, Case
from suite import main
from training_steps import NETWORKS, Network, training

from backlight.lens.flow.recorder import Recorder

TITLE = "a training step with lens.Recorder"
WITHOUT = "without"
BARS = {"MLP": 2.5, "transformer": 1.5}  # of the time of a step without
TENTH, BAR_OF_TENTH = 10, 1.2


def _recorded(engine: str, network: Network, every: int) -> Callable:
    def watched(model, optimizer):
        return Recorder(model, optimizer, keep=200, every=every).step

    return _steps(training(engine, network, watched), every)


def _plain(engine: str, network: Network, every: int) -> Callable:
    return _steps(training(engine, network), every)


def _steps(step: Callable, count: int) -> Callable:
    """Return a function that does so many steps."""

    def steps():
        for _ in range(count):
            loss = step()
        return loss

    return steps


def cases(quick: bool = False) -> list[Case]:
    """Return a row for each network on each engine, with every step recorded and with one of ten."""
    found = [_case(name, engine, every) for name in BARS for engine in (RIVAL, OURS) for every in (1, TENTH)]
    return found[:1] if quick else found


def _case(name: str, engine: str, every: int) -> Case:
    network = NETWORKS[name]
    plain = RIVAL if engine == RIVAL else WITHOUT
    candidates = {OURS: partial(_recorded, engine, network, every), plain: partial(_plain, engine, network, every)}
    if engine == OURS:
        candidates[RIVAL] = partial(_plain, RIVAL, network, every)
    title = f"{name} on {'PyTorch' if engine == RIVAL else engine}" + (f", every={every}" if every > 1 else "")
    bar = Bar(BARS[name] if every == 1 else BAR_OF_TENTH, (plain,))
    return Case(title, candidates, bars=(bar,), tolerance=None, scale=1 / every, seconds=8.0)


if __name__ == "__main__":
    sys.exit(main("lens_recorder", TITLE, cases))

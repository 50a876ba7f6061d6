"""What anomaly mode adds to a step, on both engines: three training steps and a chain of tiny ops.

    python benchmarks/anomaly.py [--quick] [--json FILE]

The steps are those of training_steps.py, the chain that of tiny_ops.py, twenty times in one block. "backlight" is the
step in anomaly mode, "without" the same step without; "torch" and "torch without" are PyTorch's. Rows come in pairs:
gradients looked at for NaN, as PyTorch does, and the forward's ops looked at, too, for NaN and infinity. PyTorch has no
such forward: its figures are of plain anomaly mode in both. Its own ratio is torch / torch without.
"""

import sys
from collections.abc import Callable
from functools import cache, partial

from measure import OURS, RIVAL, Bar, Case
from quiet import library
from suite import main
from tiny_ops import chain
from training_steps import NETWORKS, training

TITLE = "a step in anomaly mode"
WITHOUT = "without"
RIVAL_WITHOUT = "torch without"
MODES = {"gradients": {}, "forward too": {"forward": True, "check_inf": True}}
BAR = 1.3
STEPS = {name: partial(training, network=NETWORKS[name]) for name in ("MLP", "CNN", "transformer")}
CHAINS = 20


def _chains(engine: str) -> Callable:
    """Return a function that runs the chain of tiny ops twenty times: switching is no part of what is measured."""
    one = chain(engine, (16,), backward=True)
    return lambda: [one() for _ in range(CHAINS)][-1]


STEPS["61 ops of 16"] = _chains


@cache
def _one(engine: str, name: str) -> Callable:
    """Return an engine's step, the same with and without the mode: two networks lie differently in memory."""
    step = STEPS[name](engine)
    step()  # ops get their code at their first call, which would count as the first candidate's
    return step


def _step(engine: str, name: str, settings: dict | None) -> Callable:
    """Return a step of an engine, in anomaly mode with these settings; None leaves the mode off."""
    step, switch = _one(engine, name), library(engine).autograd.set_detect_anomaly
    options = {} if settings is None else settings

    def switched():
        with switch(settings is not None, **options):
            return step()

    return switched


def _case(name: str, mode: str) -> Case:
    settings = MODES[mode]
    return Case(
        f"{name}, {mode}",
        {
            OURS: partial(_step, OURS, name, settings),
            RIVAL: partial(_step, RIVAL, name, {}),
            WITHOUT: partial(_step, OURS, name, None),  # after PyTorch too, so that caches are as cold
            RIVAL_WITHOUT: partial(_step, RIVAL, name, None),
        },
        bars=(Bar(BAR, (WITHOUT,)),),
        threads=1,
        scale=1 / CHAINS if "ops" in name else 1.0,
        unit="us" if "ops" in name else "ms",
        tolerance=None,
        rounds=15,
        seconds=8.0,
    )


def cases(quick: bool = False) -> list[Case]:
    """Return a row for each step and mode."""
    found = [_case(name, mode) for name in STEPS for mode in MODES]
    return found[:1] if quick else found


if __name__ == "__main__":
    sys.exit(main("anomaly", TITLE, cases))

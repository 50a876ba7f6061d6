"""What `lens.watch` adds to a training step, on both engines: an MLP, a CNN and a small transformer, SGD.

    python benchmarks/lens_overhead.py [--quick] [--json FILE]

The steps are those of training_steps.py. "backlight" is a step of the named engine inside a watch of its own, recorded
and closed; "torch" is PyTorch's step unwatched, "without" backlight's. Rows come in pairs: `values="none"` (structure,
order, lines, saved tensors) and the default, with summaries of every output and gradient.
"""

import sys
from collections.abc import Callable
from functools import partial

from measure import OURS, RIVAL, Bar, Case
from suite import main
from training_steps import NETWORKS, training

from backlight import lens

TITLE = "a training step inside lens.watch"
WITHOUT = "without"
SHOWN = ("MLP", "CNN", "transformer")
BARS = {"none": 1.2, "summary": 1.5}  # of the time of a step without
CALLED = {"none": "structure and order", "summary": "summaries"}


def _watched(engine: str, network, values: str) -> Callable:
    step = training(engine, network)

    def watched():
        with lens.watch(values=values, engine=engine):
            return step()

    return watched


def _case(name: str, engine: str, values: str) -> Case:
    network = NETWORKS[name]
    plain = RIVAL if engine == RIVAL else WITHOUT
    candidates = {OURS: partial(_watched, engine, network, values), plain: partial(training, engine, network)}
    if engine == OURS:
        candidates[RIVAL] = partial(training, RIVAL, network)
    title = f"{name} on {'PyTorch' if engine == RIVAL else engine}, {CALLED[values]}"
    return Case(title, candidates, bars=(Bar(BARS[values], (plain,)),), tolerance=None, seconds=6.0)


def cases(quick: bool = False) -> list[Case]:
    """Return a row for each network, engine and detail."""
    found = [_case(name, engine, values) for name in SHOWN for engine in (RIVAL, OURS) for values in BARS]
    return found[:1] if quick else found


if __name__ == "__main__":
    sys.exit(main("lens_overhead", TITLE, cases))

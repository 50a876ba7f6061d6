"""Run loops of programs and look for memory that stays: `python tests/soak/leaks.py --seconds 60 --seed 1`.

Each loop runs in a process of its own. Its resident memory is read after a warm-up, and again after as many calls as
fit into its share of the time; a leak is growth in proportion to the calls, so a loop is a failure only if it grew in
each of four stretches and by more than BYTES_A_CALL in all of them together.
"""

import argparse
import gc
import multiprocessing
import os
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from graph_leaks import DIE_BY_REFERENCE_COUNT, NEED_THE_COLLECTOR

import backlight
from backlight import lens, nn, optim
from backlight.explain.reranker import Reranker

STRETCHES = 4
WARM_UP_SHARE = (
    0.25  # of a loop's time: what is made once, caches and arenas of allocators included, is there afterwards
)
BYTES_A_CALL = 64  # less is an allocator's noise: a leaked tensor takes 500
LEAST_BYTES = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")
GRACE = 120  # seconds that a loop may take beyond its share


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def training_step(layers: Callable[[], nn.Module], inputs: tuple[int, ...], optimizer: type) -> Callable[[], None]:
    """Return one step of training."""
    model = layers()
    stepper = optimizer(model.parameters(), lr=1e-3)
    batch = backlight.randn(*inputs)

    def step():
        stepper.zero_grad()
        model(batch).square().mean().backward()
        stepper.step()

    return step


def saved_and_loaded() -> Callable[[], None]:
    """Return a call that saves a model's state and loads it again."""
    model = nn.Linear(64, 64)
    file = Path(tempfile.mkdtemp()) / "state.pt"

    def call():
        backlight.save(model.state_dict(), file)
        model.load_state_dict(backlight.load(file))

    return call


def explained() -> Callable[[], None]:
    """Return an explanation of one pair by the built-in model."""
    reranker = Reranker.from_pretrained()
    return lambda: reranker.explain("how do plants make food", "Leaves turn sunlight into sugar.")


def recorded() -> Callable[[], None]:
    """Return a step recorded by the lens."""
    x = backlight.randn(8, requires_grad=True)

    def call():
        with lens.watch():
            (x * 2).exp().sum().backward()

    return call


def refused() -> Callable[[], None]:
    """Return calls that end in errors, in Python and in C."""
    x = backlight.randn(3, 4, requires_grad=True)

    def call():
        for wrong in (
            lambda: x @ x,
            lambda: backlight.nn.functional.cross_entropy(x, backlight.tensor([9, 9, 9])),
            lambda: x.sum().backward(backlight.ones(2)),
            lambda: x.index_select(0, backlight.tensor([99])),
        ):
            try:
                wrong()
            except (RuntimeError, IndexError):
                continue
            raise AssertionError("accepted")

    return call


def of_leaf(program: Callable) -> Callable[[], Callable[[], None]]:
    """Return a program of a leaf as a loop's body."""

    def made():
        w = backlight.full((3, 3), 0.5, requires_grad=True)

        def call():
            program(w)
            w.grad = None

        return call

    return made


def mlp() -> nn.Module:
    """Return a small perceptron."""
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))


def cnn() -> nn.Module:
    """Return a small network of convolutions."""
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())


LOOPS: dict[str, Callable[[], Callable[[], None]]] = {
    "training of a perceptron": lambda: training_step(mlp, (8, 16), optim.AdamW),
    "training of convolutions": lambda: training_step(cnn, (4, 3, 12, 12), optim.SGD),
    "training of a transformer": lambda: training_step(
        lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), (2, 5, 16), optim.Adam
    ),
    "state saved and loaded": saved_and_loaded,
    "explained pair": explained,
    "recorded step": recorded,
    "refused calls": refused,
    **{name: of_leaf(program) for name, program in (DIE_BY_REFERENCE_COUNT | NEED_THE_COLLECTOR).items()},
}


def growth_of(name: str, seconds: float, seed: int) -> tuple[list[int], int]:
    """Run a loop; return the bytes that each stretch left, and how many calls a stretch has."""
    backlight.manual_seed(seed)
    warnings.simplefilter("ignore")
    call = LOOPS[name]()
    start, calls = time.monotonic(), 0
    while calls < 20 or time.monotonic() - start < seconds * WARM_UP_SHARE:
        call()
        calls += 1
    calls = max(5, int(calls * (1 - WARM_UP_SHARE) / WARM_UP_SHARE / STRETCHES))
    sizes = [resident()]
    for _ in range(STRETCHES):
        for _ in range(calls):
            call()
        sizes.append(resident())
    return [after - before for before, after in zip(sizes, sizes[1:])], calls


def _answer(pipe, *arguments) -> None:
    pipe.send(growth_of(*arguments))


def verdict(name: str, seconds: float, seed: int) -> str | None:
    """Run a loop in a process of its own; return what is wrong with it, if anything is."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(theirs, name, seconds, seed))
    child.start()
    theirs.close()
    try:
        if not ours.poll(seconds + GRACE):
            return f"{name}: no end after {seconds + GRACE:.0f} s, seed {seed}"
        growth, calls = ours.recv()
    except EOFError:
        child.join()
        return f"{name}: the process ended with exit code {child.exitcode}, seed {seed}"
    finally:
        child.kill()
        child.join()
    total = sum(growth)
    if min(growth) > 0 and total > max(LEAST_BYTES, BYTES_A_CALL * calls * STRETCHES):
        return f"{name}: {total:,} bytes stayed after {calls * STRETCHES} calls, by stretches {growth}, seed {seed}"
    return None


def run(seconds: float, seed: int) -> list[str]:
    """Play loops in random order for about `seconds`, at least two seconds each; return the failures."""
    names = random.Random(seed).sample(sorted(LOOPS), len(LOOPS))
    end, found, played = time.monotonic() + seconds, [], 0
    for place, name in enumerate(names):
        left = end - time.monotonic()
        if left <= 0:
            break
        wrong = verdict(name, max(2.0, left / (len(names) - place)), seed)
        found += [wrong] if wrong else []
        played += 1
    print(f"leaks: {played} of {len(names)} loops, {len(found)} failures, seed {seed}", flush=True)
    return found


def main() -> int:
    """Run the loops and print the failures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="the name of one loop")
    options = parser.parse_args()
    if options.only:
        found = [one for one in [verdict(options.only, options.seconds, options.seed)] if one]
    else:
        found = run(options.seconds, options.seed)
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

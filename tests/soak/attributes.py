"""Random damage to attributes and to arguments of native functions: nothing of it may end the interpreter.

    python tests/soak/attributes.py --seconds 60 --seed 1
    python tests/soak/attributes.py --seconds 60 --only native

`slots` deletes, exchanges and replaces attributes of tensors, nodes, edges, storages, node classes and ops, then runs
backward, ops, repr, copies and collections. `native` calls every kernel and every function of backlight.kernels._native
with arguments that were valid once and then changed. Each round runs in a child process; one that dies by a signal, or
does not end, is a finding. A round repeats by its seed: `--replay slots:17`.
"""

import argparse
import contextlib
import faulthandler
import gc
import os
import random
import resource
import subprocess
import sys
import time
import traceback
import warnings

from native_arguments import play_native, prepared_for_native
from rubbish import Breaking, rubbish

STEPS = {"slots": 60, "native": 100}  # of a round
LIMIT = 40  # seconds that a round may take before it counts as a hang
MEMORY = 6 << 30


# --- slots ------------------------------------------------------------------------------------------------------------


def graphs(bl, rng):
    """Return tensors, and the ends of graphs made of them."""
    a = bl.rand(rng.choice([(3,), (2, 3), ()]), dtype=rng.choice([bl.float32, bl.float64])).requires_grad_()
    b = bl.rand(a.shape, dtype=a.dtype).requires_grad_()
    c = a.detach().clone()
    ends = [a * b, a + 2, (a.exp() + b).tanh(), (a * c).sigmoid().sqrt(), a / (b + 1), bl.relu(a - b) * a]
    ends += [bl.stack([a, b]).unbind(0)[0] * 2, a.reshape(-1).view(-1)[:1] + 1, a.expand(2, *a.shape).sum(0)]
    ends += [bl.maximum(a, b).abs(), bl.softmax(a.reshape(-1), 0), (a.log() * a).sum(), bl.where(a > b, a, b)]
    if a.ndim == 2:
        ends += [a @ b.T, bl.nn.functional.linear(a, b), bl.nn.functional.layer_norm(a, (3,))]
    return [a, b, c], [*rng.choices(ends, k=3), sum(end.sum() for end in rng.choices(ends, k=3))]


def reachable(bl, roots):
    """Return tensors, nodes, edges, storages and classes that a graph is made of."""
    found, waiting = [], list(roots)
    while waiting and len(found) < 200:
        one = waiting.pop()
        if any(one is other for other in found):
            continue
        found.append(one)
        for name in ("_edge", "_storage", "_view", "edges", "node", "variable", "input", "other", "_grad", "extra"):
            value = getattr(one, name, None)
            values = value if isinstance(value, tuple) else (value,)
            waiting += [v for v in values if hasattr(v, "__slots__") or hasattr(v, "version")]
    return found


def slots_of(one, rng):
    """Return the names of an object's slots, and some others that it has."""
    names = {name for cls in type(one).__mro__ for name in getattr(cls, "__slots__", ())} - {"__weakref__"}
    names |= {"__class__", "grad", "_grad", "_hooks", "_accumulator", "version", "outputs", "wants_undefined", "data"}
    names |= {name for name in vars(type(one)) if rng.random() < 0.1}
    return sorted(names)


def damage(np, rng, pool):
    """Change one attribute of one object, or of its class."""
    one = rng.choice(pool)
    target = one
    if rng.random() < 0.08 and type(one).__name__.endswith("Backward0"):
        target = type(one)
    name = rng.choice(slots_of(one, rng))
    change = rng.randrange(6)
    if change == 0:
        delattr(target, name)
    elif change == 1:
        object.__setattr__(target, name, rubbish(np, rng, pool))
    elif change == 2:
        other = rng.choice(pool)
        setattr(target, name, getattr(other, name, None))
    elif change == 3:
        target._storage = Breaking(rng.choices(pool, k=3))
    else:
        setattr(target, name, rubbish(np, rng, pool))


def half_built(bl, rng, pool):
    """Make an object whose slots were never filled, or fill them twice."""
    one = rng.choice(pool)
    cls = type(one)
    if cls.__module__.startswith("backlight"):
        pool.append(rng.choice([lambda: cls.__new__(cls), lambda: object.__new__(cls)])())
    if rng.random() < 0.3:
        one.__init__()
    if rng.random() < 0.1:
        one.__init__(1, 2)
    if rng.random() < 0.2 and isinstance(one, bl.Tensor):
        pool.append(type("Odd", (bl.Tensor,), {"__slots__": ("more",)}).__new__(bl.Tensor))


def use(bl, rng, pool):
    """Do what users do with tensors and nodes."""
    import copy
    import pickle

    one, other = rng.choice(pool), rng.choice(pool)
    tensors = [each for each in pool if isinstance(each, bl.Tensor)]
    x, y = rng.choice(tensors), rng.choice(tensors)
    rng.choice(
        [
            lambda: bl.autograd.backward([x.sum()]),
            lambda: x.backward(bl.ones(3), retain_graph=True),
            lambda: x.sum().backward(retain_graph=True),
            lambda: bl.autograd.backward([x, y], [bl.ones_like(x), bl.ones_like(y)], retain_graph=True),
            lambda: bl.autograd.grad(x.sum(), y, create_graph=True, allow_unused=True),
            lambda: (x * y).sum().backward(),
            lambda: (x + 1).exp().sum().backward(),
            lambda: pool.append(rng.choice([bl.add, bl.mul, bl.sub, bl.div, bl.maximum])(x, y)),
            lambda: pool.append(rng.choice([bl.exp, bl.tanh, bl.relu, bl.sigmoid, bl.abs, bl.sqrt])(x)),
            lambda: pool.append(x.view(-1)),
            lambda: x.add_(1),
            lambda: x.detach().mul_(y),
            lambda: repr(one),
            lambda: str(one.grad_fn.next_functions),
            lambda: copy.copy(one),
            lambda: copy.deepcopy(one),
            lambda: pickle.loads(pickle.dumps(one)),
            lambda: one.register_hook(lambda *grads: None),
            lambda: one.retain_grad(),
            lambda: one.grad_fn(x),
            lambda: one(x, y),
            lambda: one.numpy(),
            lambda: one == other,
            lambda: hash(one),
            lambda: pool.pop(rng.randrange(len(pool))) if len(pool) > 8 else None,
            lambda: gc.collect(),
            lambda: [each for each in gc.get_objects() if isinstance(each, bl.Tensor)],
            lambda: with_anomaly(bl, x),
        ]
    )()


def with_anomaly(bl, x):
    """Run a backward in anomaly mode."""
    with bl.autograd.detect_anomaly():
        x.sum().backward()


def play_slots(rng, steps, prepared):
    """Damage and use, in turn."""
    import numpy as np

    import backlight as bl

    leaves, ends = graphs(bl, rng)
    pool = reachable(bl, [*leaves, *ends])
    for step in range(steps):
        if step % 20 == 19:
            with contextlib.suppress(Exception):  # what was done to a class stays
                leaves, ends = graphs(bl, rng)
                pool = [*pool[-20:], *reachable(bl, [*leaves, *ends])]
        action = rng.random()
        with contextlib.suppress(Exception):
            if action < 0.5:
                damage(np, rng, pool)
            elif action < 0.55:
                half_built(bl, rng, pool)
            else:
                use(bl, rng, pool)
    del pool, leaves, ends
    gc.collect()


def prepared_for_slots():
    """Import what rounds need, and let the ops be made that they use."""
    import backlight as bl

    for seed in range(12):
        leaves, ends = graphs(bl, random.Random(seed))
        for end in ends:
            end.sum().backward(retain_graph=True)
        reachable(bl, [*leaves, *ends])


# --- rounds -----------------------------------------------------------------------------------------------------------


PLAYS = {"slots": (prepared_for_slots, play_slots), "native": (prepared_for_native, play_native)}


def prepare(kind: str):
    """Import and limit what every round of a kind needs."""
    warnings.simplefilter("ignore")
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.unraisablehook = lambda unraisable: None
    return PLAYS[kind][0]()


def play(kind: str, seed: int, steps: int, prepared) -> None:
    """Play one round in this process."""
    faulthandler.enable()
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    PLAYS[kind][1](random.Random(seed), steps, prepared)


def serve(kind: str, first: int, seconds: float, steps: int) -> None:
    """Play rounds in forked processes for a while; print one line for each: its seed and how it ended."""
    prepared, seed, end = prepare(kind), first, time.monotonic() + seconds
    while time.monotonic() < end or seed == first:
        child = os.fork()
        if not child:
            code = 3
            try:
                play(kind, seed, steps, prepared)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        print(f"{kind}:{seed} {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}", flush=True)
        seed += 1


def summary(stderr: str) -> str:
    """Return the lines that say most about how a process died."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    shown = [
        line for line in lines if "ERROR:" in line or "runtime error" in line or line.startswith(("Fatal", "Timeout"))
    ]
    where = [line for line in lines if "csrc/" in line]
    calls = [line for line in lines if "[" in line and not line.startswith("File")]
    where = where or calls[-1:]
    return " | ".join([*(shown or lines[-1:])[:1], *where[:3]])


def failures(kind: str, first: int, seconds: float) -> tuple[int, list[str]]:
    """Play rounds for a while; return how many they were, and a line for each that failed."""
    found, count, end = [], 0, time.monotonic() + seconds
    while not count or time.monotonic() < end:
        left = max(end - time.monotonic(), 0)
        command = [sys.executable, __file__, "--serve", f"{kind}:{first + count}", "--seconds", str(left)]
        served = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in served.stdout:
            count += 1
            if not line.endswith(" 0\n"):
                found.append(told(line.split()[0], line.split()[1]))
        if served.wait():
            found.append(f"{kind}: the process that forks rounds ended with {served.returncode}")
            break
    return count, found


def told(name: str, code: str) -> str:
    """Play a round that failed once more, for what it says; return a line."""
    command = [sys.executable, __file__, "--replay", name]
    again = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=4 * LIMIT)
    line = f"{name} ended with {code}, again {again.returncode}: {summary(again.stderr)}"
    print(line, flush=True)
    return line


def run(seconds: float, seed: int, only: str | None = None) -> list[str]:
    """Play rounds for about `seconds`; return one line for each that failed."""
    kinds, found = [only] if only else list(PLAYS), []
    for kind in kinds:
        count, lines = failures(kind, seed * 100_000, seconds / len(kinds))
        print(f"{count} rounds of {kind}, {STEPS[kind]} steps each: {len(lines)} failures", flush=True)
        found += lines
    return found


def main() -> int:
    """Play what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=list(PLAYS))
    parser.add_argument("--replay", help="a round, as kind:seed, in this process")
    parser.add_argument("--serve", help="play rounds from kind:seed on, for run()")
    parser.add_argument("--steps", type=int, help="of a replayed round")
    asked = parser.parse_args()
    if asked.replay or asked.serve:
        kind, _, seed = (asked.replay or asked.serve).partition(":")
        steps = asked.steps or STEPS[kind]
        if asked.serve:
            serve(kind, int(seed), asked.seconds, steps)
        else:
            play(kind, int(seed), steps, prepare(kind))
        return 0
    return 1 if run(asked.seconds, asked.seed, asked.only) else 0


if __name__ == "__main__":
    sys.exit(main())

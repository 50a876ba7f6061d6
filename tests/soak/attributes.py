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
import importlib.util
import os
import random
import resource
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path

STEPS = {"slots": 60, "native": 100}  # of a round
LIMIT = 40  # seconds that a round may take before it counts as a hang
MEMORY = 6 << 30
SHOWN = "--replay" in sys.argv  # whether each call is printed before it is made


# --- rubbish ----------------------------------------------------------------------------------------------------------


class Unfriendly:
    """An object whose comparisons, lengths and conversions fail or are absurd."""

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    __hash__ = object.__hash__

    def __len__(self):
        return 2**31

    def __index__(self):
        return 2**70

    def __float__(self):
        raise ValueError("no float")

    def __getattr__(self, name):
        raise KeyError(name)


class Breaking:
    """A storage whose version deletes what others hold."""

    def __init__(self, victims):
        self.victims = victims

    @property
    def version(self):
        for victim in self.victims:
            for name in ("_data", "_edge", "_storage", "edges", "input", "other", "out"):
                with contextlib.suppress(Exception):
                    delattr(victim, name)
        gc.collect()
        return 0


def arrays(np, rng):
    """Return an array of odd dtype, shape, strides or flags."""
    shape = rng.choice([(), (0,), (1,), (3,), (2, 3), (3, 2), (2, 0, 3), (1,) * 8, (7, 5), (2, 3, 4), (2, 1, 4, 4)])
    kind = rng.choice(["f4", "f8", "i8", "i4", "u1", "?", ">f4", ">f8", "f2", "c8", "O", "U3", "u4", "M8[s]"])
    made = np.zeros(shape, kind) if kind in "OU3M8[s]" else np.ones(shape).astype(kind)
    change = rng.randrange(6)
    if change == 0:
        made.flags.writeable = False
    elif change == 1 and made.ndim:
        made = made[..., ::-1]
    elif change == 2:
        made = made.T
    elif change == 3:
        made = np.broadcast_to(made, (3, *made.shape))
    elif change == 4 and made.nbytes and kind in ("f4", "f8", "i8"):
        memory = np.zeros(made.nbytes + 1, np.uint8)[1:]
        made = memory.view(kind).reshape(made.shape)
    return made


def rubbish(np, rng, others=()):
    """Return something that belongs in no slot."""
    plain = [None, (), [], {}, 0, -1, 1, 2**31, 2**62, 2**63, 2**70, -(2**63), 1.5, float("nan"), True, "", "text", b"bytes"]
    odd = [object(), Unfriendly(), int, len, (None,), (None,) * 9, (0, 0), [None], np.float32(1), np.float64(2), np.int64(3)]
    odd += [np.dtype("f4"), Ellipsis, NotImplemented, lambda *args: None, (1, (2, (3,))), range(3), sys]
    pick = rng.random()
    if pick < 0.3:
        return rng.choice(plain)
    if pick < 0.6:
        return rng.choice(odd)
    if pick < 0.75 and others:
        return rng.choice(others)
    if pick < 0.8 and others:
        return tuple(rng.choices(others, k=rng.randrange(5)))
    return arrays(np, rng)


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


# --- native functions -------------------------------------------------------------------------------------------------


def recording_module(kept: dict):
    """Load the native module so that each kernel notes arguments with which it is called."""
    folder = Path(importlib.util.find_spec("backlight").submodule_search_locations[0]) / "kernels"
    (path,) = folder.glob("_native*.so")
    spec = importlib.util.spec_from_file_location("backlight.kernels._native", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["backlight.kernels._native"] = module
    kernel = module.kernel

    def recorded(reference):
        found = kernel(reference)
        if found is None:
            return None
        samples = kept.setdefault(reference.__name__, [])

        def call(*args, **kwargs):
            if len(samples) < 12 and not kwargs:
                samples.append(args)
            return found(*args, **kwargs)

        call.__name__, call.__doc__, call.__wrapped__ = reference.__name__, reference.__doc__, reference
        call.__globals__.setdefault("np", None)
        return call

    module.kernel = recorded
    return module, kernel


def workload(bl):
    """Call most kernels once or more."""
    F, nn = bl.nn.functional, bl.nn
    x = bl.rand(2, 4, 8, 8).requires_grad_()
    weight = bl.rand(6, 4, 3, 3).requires_grad_()
    flat = bl.rand(40, 12).requires_grad_()
    index = bl.randint(0, 12, (40,))
    calls = [
        lambda: F.conv2d(x, weight, padding=1),
        lambda: F.conv1d(x[0], weight[:, :, 0], padding=1),
        lambda: F.max_pool2d(x, 2),
        lambda: F.avg_pool2d(x, 3, padding=1),
        lambda: F.adaptive_max_pool2d(x, 3),
        lambda: F.adaptive_avg_pool2d(x, 3),
        lambda: F.interpolate(x, size=5, mode="bilinear"),
        lambda: F.grid_sample(x, bl.rand(2, 3, 3, 2), align_corners=False),
        lambda: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
        lambda: F.batch_norm(x, None, None, training=True),
        lambda: F.group_norm(x, 2),
        lambda: F.layer_norm(flat, (12,), bl.rand(12), bl.rand(12)),
        lambda: F.rms_norm(flat, (12,), bl.rand(12)),
        lambda: F.cross_entropy(flat, index),
        lambda: F.softmax(flat, -1),
        lambda: F.log_softmax(flat, -1),
        lambda: F.linear(flat, bl.rand(5, 12), bl.rand(5)),
        lambda: flat @ bl.rand(12, 7),
        lambda: bl.rand(3, 40, 12) @ bl.rand(3, 12, 4) * flat.sum(),
        lambda: flat.index_select(0, bl.tensor([1, 2, 2, 5])),
        lambda: flat.index_add(0, index[:3], bl.rand(3, 12)),
        lambda: F.embedding(index, flat),
        lambda: flat.cumsum(0),
        lambda: flat.cumprod(1),
        lambda: flat.cummax(0)[0],
        lambda: flat.flip(0),
        lambda: flat.tril(),
        lambda: flat.topk(3)[0],
        lambda: bl.cdist(flat, flat.detach(), p=1.0),
        lambda: bl.linalg.det(bl.rand(3, 5, 5)) + flat.sum(),
        lambda: nn.LSTM(12, 6)(flat)[0],
        lambda: nn.GRU(12, 6)(flat)[0],
        lambda: F.scaled_dot_product_attention(bl.rand(2, 4, 6).requires_grad_(), bl.rand(2, 4, 6), bl.rand(2, 4, 6)),
        lambda: F.dropout(flat, 0.5),
        lambda: bl.poisson(flat.detach()) + flat.sum(),
        lambda: flat.sum(0),
        lambda: flat.sum(1, keepdim=True),
        lambda: F.elu(F.gelu(F.silu(F.softplus(flat)))),
        lambda: F.hardswish(F.hardsigmoid(F.leaky_relu(F.hardtanh(F.softshrink(F.hardshrink(flat)))))),
        lambda: bl.erf(bl.lgamma(flat)).sum() + bl.digamma(flat).sum() + bl.erfinv(flat * 0.5).sum(),
    ]
    for call in calls:
        with contextlib.suppress(bl.errors.BacklightError, NotImplementedError):
            call().sum().backward()
    bl.randperm(5), bl.randint(0, 9, (20,)), bl.randn(40), bl.bernoulli(flat.detach()), bl.randn(40, dtype=bl.float64)
    for optimiser in ("SGD", "Adam", "NAdam", "RAdam", "Adamax", "Adagrad", "RMSprop", "Adadelta", "ASGD", "Rprop"):
        parameter = nn.Parameter(bl.rand(20))
        parameter.grad = bl.rand(20)
        getattr(bl.optim, optimiser)([parameter], lr=0.1).step()
    nn.utils.clip_grad_norm_([parameter], 0.1)


def changed(np, rng, value):
    """Return an argument that was valid, changed a little."""
    if isinstance(value, np.ndarray):
        return changed_array(np, rng, value)
    if isinstance(value, bool) or value is None:
        return rng.choice([True, False, None, 2, np.True_])
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, -value, 0, 2**31, 2**31 - 1, 2**40, 2**62, 2**63 - 1, 2**64, -(2**63)])
    if isinstance(value, float):
        return rng.choice([0.0, -1.0, 1e308, float("inf"), float("nan"), 1, None])
    if isinstance(value, (tuple, list)) and value:
        parts = list(value)
        parts[rng.randrange(len(parts))] = changed(np, rng, rng.choice(parts))
        if rng.random() < 0.2:
            parts.append(rng.choice(parts))
        return type(value)(parts) if type(value) in (tuple, list) else tuple(parts)
    return rubbish(np, rng)


def changed_array(np, rng, value):
    """Return an array that differs in dtype, shape, layout or values."""
    wild = [0, 1, -1, 5, 10**6, 2**31, 2**40, 2**62, -(2**62)]
    copy = value.copy()
    with contextlib.suppress(Exception):
        return rng.choice(
            [
                lambda: copy.astype(rng.choice(["f4", "f8", "i8", "i4", "u4", ">f4", "f2"])),
                lambda: copy[..., : max(copy.shape[-1] - 1, 0)],
                lambda: np.ascontiguousarray(copy[..., : max(copy.shape[-1] - 1, 0)]),
                lambda: np.ascontiguousarray(copy[: max(copy.shape[0] - 1, 0)]),
                lambda: np.concatenate([copy, copy]),
                lambda: copy[::-1],
                lambda: copy.T,
                lambda: copy.reshape(-1),
                lambda: copy[:0],
                lambda: copy.reshape(-1)[0],
                lambda: copy.reshape(-1)[:1].reshape(()),
                lambda: copy[None],
                lambda: np.broadcast_to(copy.reshape(-1)[0], copy.shape),
                lambda: np.resize(np.array(wild).astype(copy.dtype), copy.shape),
                lambda: np.array([rng.choice(wild) for _ in range(copy.size)]).astype(copy.dtype).reshape(copy.shape),
                lambda: np.full_like(copy, np.nan) if copy.dtype.kind == "f" else copy + 1,
                lambda: read_only(copy),
            ]
        )()
    return copy


def read_only(array):
    """Return an array that may not be written to."""
    array.flags.writeable = False
    return array


class Declined(Exception):
    """Raised by the reference of a kernel that declines."""


def declining(name: str):
    """Return a reference of a name, which says that the kernel declined."""

    def reference(*args, **kwargs):
        raise Declined

    reference.__name__ = name
    return reference


def module_calls(np, rng, module, kernel, bl):
    """Return a call of one of the module's own functions with rubbish."""
    x = bl.rand(3).requires_grad_()
    y, pool = x * 2, [x, x * 2, (x * 2).grad_fn]
    anything = lambda: rubbish(np, rng, pool)
    edge = lambda: rng.choice([y.grad_fn, x, None, anything()])
    lists = lambda make: [make() for _ in range(rng.randrange(4))]
    plan = lambda op: rng.choice([anything(), tuple(anything() for _ in range(8)), odd_plan(rng, anything, type(y.grad_fn))])
    return [
        lambda: module.core_walk(lists(edge), lists(lambda: rng.choice([np.ones(3, "f4"), anything()])), False, None, None),
        lambda: module.core_walk([y.grad_fn], [anything()], anything(), anything(), anything()),
        lambda: module.core_walk(*[anything() for _ in range(rng.randrange(7))]),
        lambda: module.core_setup(rng.choice([anything(), {}, {"Tensor": anything()}])),
        lambda: module.core_function(anything(), anything())(anything(), x),
        lambda: module.core_function(lambda *args: None, plan)(x, y),
        lambda: module.core_function(*[anything() for _ in range(rng.randrange(4))]),
        lambda: module.out_function(anything(), anything(), rng.choice(["m", anything()]), rng.choice(["n", anything()]))(x, out=y),
        lambda: kernel(anything()),
        lambda: module.use_level(anything()),
        lambda: module.level(),
        lambda: module.set_threads(rng.choice([1, 2, 0, -5, 2**31, anything()])),
        lambda: module.threads(),
        lambda: module.keep_memory(),
        lambda: module.give_memory_back(),
        lambda: module.next_sequence(),
        lambda: module.core_check(rng.choice([None, anything()]), rng.choice([0, 1, 3, anything()])) or y * y,
        lambda: set_and_use(module.core_report, anything(), x),
        lambda: set_and_use(module.core_interpret, anything(), x),
        lambda: set_and_use(module.core_mark, anything(), x),
        lambda: set_and_use(module.core_override, anything(), x),
        lambda: type(bl.exp)(),
        lambda: object.__new__(type(bl.exp)),
        lambda: setattr(bl.exp, "op", anything()),
    ]


def odd_plan(rng, anything, node_class):
    """Return something like what Python says of an op."""
    program = lambda: (rng.choice([1, 2, 9, -1]), bytes(rng.randrange(30) for _ in range(rng.choice([0, 4, 5, 10, 124, 125]))), ())
    derivative = lambda: rng.choice([None, ((-1, rng.randrange(-3, 6)), program()), anything()])
    edges = tuple((rng.randrange(-1, 6), derivative()) for _ in range(rng.randrange(6)))
    saved = tuple((rng.randrange(-1, 6), 0, rng.choice(["input", "edges", "none"]), "input_version") for _ in range(2))
    return (rng.choice([1, 2, 5, 0]), program(), rng.choice([node_class, None, int, object]), edges, saved, 0, 1, ())


def set_and_use(setter, given, x):
    """Let the core call something for an op, and take that back."""
    setter(given)
    try:
        (x * 2).exp().sum().backward()
    finally:
        setter(None)


def prepared_for_slots():
    """Import what rounds need, and let the ops be made that they use."""
    import backlight as bl

    for seed in range(12):
        leaves, ends = graphs(bl, random.Random(seed))
        for end in ends:
            end.sum().backward(retain_graph=True)
        reachable(bl, [*leaves, *ends])


def prepared_for_native():
    """Import what rounds need, and note valid arguments of each kernel."""
    kept = {}
    module, kernel = recording_module(kept)
    import backlight as bl

    workload(bl)
    module.core_check(None, 0)
    return module, kernel, kept


def play_native(rng, steps, prepared):
    """Call kernels with changed arguments, and the module's functions with rubbish."""
    import numpy as np

    import backlight as bl

    module, kernel, kept = prepared
    names = sorted(name for name in kept if kept[name])
    kernels = {name: kernel(declining(name)) for name in kept}
    for _ in range(steps):
        with contextlib.suppress(Exception):
            if rng.random() < 0.2:
                calls = module_calls(np, rng, module, kernel, bl)
                place = rng.randrange(len(calls))
                show("call", place, "of [the module's]")
                calls[place]()
                continue
            name = rng.choice(names)
            args = list(rng.choice(kept[name]))
            args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
            for _ in range(rng.choice([1, 1, 2, 3])):
                place = rng.randrange(len(args))
                args[place] = changed(np, rng, args[place]) if rng.random() < 0.8 else rubbish(np, rng, args)
            if rng.random() < 0.1:
                args = args[:-1] if rng.random() < 0.5 else [*args, None]
            show(name, *map(described, args))
            kernels[name](*args)
    gc.collect()


def show(*parts) -> None:
    """Say what is called next, in a round that is repeated."""
    if SHOWN:
        print(*parts, file=sys.stderr, flush=True)


def described(value) -> str:
    """Return a short description of an argument."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype}{list(value.shape)}"
    return repr(value)[:40] if isinstance(value, (int, float, str, tuple, list, type(None))) else type(value).__name__


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
    shown = [line for line in lines if "ERROR:" in line or "runtime error" in line or line.startswith(("Fatal", "Timeout"))]
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

"""Calls of native functions with arguments that were valid and then changed; attributes.py plays them."""

import contextlib
import gc
import importlib.util
import sys
from pathlib import Path

from rubbish import rubbish

SHOWN = "--replay" in sys.argv  # whether each call is printed before it is made


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
    for optimizer in ("SGD", "Adam", "NAdam", "RAdam", "Adamax", "Adagrad", "RMSprop", "Adadelta", "ASGD", "Rprop"):
        parameter = nn.Parameter(bl.rand(20))
        parameter.grad = bl.rand(20)
        getattr(bl.optim, optimizer)([parameter], lr=0.1).step()
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

    def anything():
        return rubbish(np, rng, pool)

    def edge():
        return rng.choice([y.grad_fn, x, None, anything()])

    def lists(make):
        return [make() for _ in range(rng.randrange(4))]

    def plan(op):
        return rng.choice([anything(), tuple(anything() for _ in range(8)), odd_plan(rng, anything, type(y.grad_fn))])

    return [
        lambda: module.core_backward_pass(
            *(lists(edge), lists(lambda: rng.choice([np.ones(3, "f4"), anything()])), False, None, None),
            *(rng.choice([None, lists(edge)]), rng.choice([False, True]), -1),
        ),
        lambda: module.core_backward_pass(
            *([y.grad_fn], [anything()], anything(), anything(), anything()),
            *(rng.choice([None, lists(edge)]), anything(), rng.choice([-1, 5, anything()])),
        ),
        lambda: module.core_backward_pass(*[anything() for _ in range(rng.randrange(10))]),
        lambda: module.core_setup(rng.choice([anything(), {}, {"Tensor": anything()}])),
        lambda: module.core_function(anything(), anything())(anything(), x),
        lambda: module.core_function(lambda *args: None, plan)(x, y),
        lambda: module.core_function(*[anything() for _ in range(rng.randrange(4))]),
        lambda: module.out_function(
            anything(), anything(), rng.choice(["m", anything()]), rng.choice(["n", anything()])
        )(x, out=y),
        lambda: kernel(anything()),
        lambda: module.use_level(anything()),
        lambda: module.level(),
        lambda: module.set_threads(rng.choice([1, 2, 0, -5, 2**31, anything()])),
        lambda: module.threads(),
        lambda: module.keep_memory(),
        lambda: module.give_memory_back(),
        lambda: module.next_sequence(),
        lambda: module.core_check(rng.choice([None, anything()]), rng.choice([0, 1, 3, anything()])) or y * y,
        lambda: set_and_use(module.core_returned, anything(), x),
        lambda: set_and_use(
            lambda given: module.core_dispatch(given, rng.choice([None, anything()]), rng.choice([False, True])),
            *(anything(), x),
        ),
        lambda: set_and_use(
            lambda given: module.core_dispatch(given, None, False, False, rng.choice([None, {}, anything()])),
            *(anything(), x),
        ),
        lambda: set_and_use(module.core_mark, anything(), x),
        lambda: module.core_dispatch(*[anything() for _ in range(rng.randrange(4))]),
        lambda: module.core_implement(anything(), anything()),
        lambda: implement_and_call(module, plan, anything(), x),
        lambda: module.core_intercepts(),
        lambda: type(bl.exp)(),
        lambda: object.__new__(type(bl.exp)),
        lambda: setattr(bl.exp, "op", anything()),
    ]


def odd_plan(rng, anything, node_class):
    """Return something like what Python says of an op."""

    def program():
        return (
            rng.choice([1, 2, 9, -1]),
            bytes(rng.randrange(30) for _ in range(rng.choice([0, 4, 5, 10, 124, 125]))),
            (),
        )

    def derivative():
        return rng.choice([None, ((-1, rng.randrange(-3, 6)), program()), anything()])

    edges = tuple((rng.randrange(-1, 6), derivative()) for _ in range(rng.randrange(6)))
    saved = tuple((rng.randrange(-1, 6), 0, rng.choice(["input", "edges", "none"]), "input_version") for _ in range(2))
    return (rng.choice([1, 2, 5, 0]), program(), rng.choice([node_class, None, int, object]), edges, saved, 0, 1, ())


def implement_and_call(module, op, given, x):
    """Have an op's function stand for something while it runs."""
    function = module.core_function(lambda *args: module.core_implement(function, given), op)
    function(x)
    function(x)


def set_and_use(setter, given, x):
    """Let the core call something for an op, and take that back."""
    setter(given)
    try:
        (x * 2).exp().sum().backward()
    finally:
        setter(None)


def prepared_for_native():
    """Import what rounds need, and note valid arguments of each kernel."""
    kept = {}
    module, kernel = recording_module(kept)
    import backlight as bl

    workload(bl)
    module.core_check(None, 0)
    module.core_dispatch(None, None, False)
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

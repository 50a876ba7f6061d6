"""Programs that are interrupted, and what is the same before and after: all state of the session."""

import multiprocessing
import os
import sys
import threading
import warnings

import numpy as np

import backlight as torch
from backlight import data, func, lens
from backlight.amp import autocasting
from backlight.autograd import forward_ad, grad_mode, profiler
from backlight.autograd.graph import saved_tensors_hooks
from backlight.codegen import declaration
from backlight.dispatch import anomaly_mode, dispatcher, interpreters, observation, torch_function
from backlight.engine import accumulate_grad, mutation_checks, tensor_state, threads
from backlight.engine import grad_mode as modes
from backlight.engine.storage import guarding
from backlight.func import stateless  # noqa: F401 - loaded before anything is counted
from backlight.kernels.native import core
from backlight.kernels.random.generator import default_twister
from backlight.nn.utils import parametrize
from backlight.transforms.checkpoint import recomputation
from backlight.utils import checkpoint as checkpointing
from backlight.utils.checkpoint import checkpoint
from soak.interrupted_writes import CASES, numbers_kept


def leaves(*shape):
    """Return a tensor that requires grad and another."""
    x = torch.full(shape or (3,), 0.5, requires_grad=True)
    return x, torch.ones(shape or (3,)) * 2


def with_no_grad():
    """Nested grad modes, as blocks and as decorators."""
    x, y = leaves()
    with torch.no_grad():
        x * y
        with torch.enable_grad():
            x.exp()
    torch.no_grad()(lambda: x * y)()
    with torch.set_grad_enabled(True):
        (x * y).sum().backward()


def with_inference_mode():
    """Inference mode."""
    x, y = leaves()
    with torch.inference_mode():
        (x * y).sum()
        with torch.inference_mode(False):
            x.sin()


def with_tensor_hooks():
    """Hooks on tensors, and a backward inside one."""
    x, y = leaves()
    z = x * y
    other, _ = leaves()

    def differentiate(grad):
        with torch.enable_grad():
            return torch.autograd.grad((other * grad).sum(), [other])[0]

    z.register_hook(lambda grad: grad * 2)
    x.register_hook(differentiate)
    x.register_post_accumulate_grad_hook(lambda tensor: None)
    with z.register_hook(lambda grad: None):
        z.exp().sum().backward()


def model():
    """Return a small model."""
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))


def with_module_hooks():
    """Hooks on modules."""
    made = model()
    made[0].register_forward_pre_hook(lambda module, args: None)
    made[0].register_full_backward_hook(lambda module, grads, given: None)
    made[2].register_forward_hook(lambda module, args, out: out * 1)
    made(leaves(2, 3)[0]).sum().backward()


def with_create_graph():
    """Gradients of gradients."""
    x, y = leaves()
    (first,) = torch.autograd.grad((x.exp() * y).sum(), [x], create_graph=True)
    first.sum().backward()


class Cube(torch.autograd.Function):
    """x³."""

    @staticmethod
    def forward(ctx, x):
        """Return the cube."""
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        """Multiply by the slope."""
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


def with_function():
    """A Function of the user's."""
    x, _ = leaves()
    Cube.apply(x * 1).sum().backward()


def in_place():
    """Writes in place, through views too."""
    x, y = leaves(2, 3)
    z = x * 1
    z.mul_(y)
    z[0].add_(1)
    z.t().exp_()
    z.sum().backward()
    with torch.no_grad():
        x.sub_(0.1)


def with_saved_hooks():
    """Hooks on what is saved."""
    x, y = leaves()
    with saved_tensors_hooks(lambda one: one.detach().clone(), lambda one: one):
        z = (x * y).exp()
    z.sum().backward()
    with torch.autograd.graph.save_on_cpu():
        x.exp().sum().backward()


def with_optimizer():
    """Steps of an optimizer, with a closure, and zero_grad."""
    made = model()
    optimizer = torch.optim.Adam(made.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)

    def closure():
        optimizer.zero_grad()
        loss = made(torch.ones(2, 3)).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    schedule.step()


def with_reentrant_checkpoint():
    """The re-entrant checkpoint."""
    made, (x, _) = model(), leaves(2, 3)
    checkpoint(lambda one: torch.nn.functional.dropout(made(one)), x, use_reentrant=True).sum().backward()


def with_checkpoint():
    """The other checkpoint, one inside the other."""
    made, (x, _) = model(), leaves(2, 3)

    def inner(one):
        return checkpoint(made[0], one, use_reentrant=False)

    out = checkpoint(lambda one: torch.nn.functional.dropout(inner(one).exp()), x, use_reentrant=False)
    out.sum().backward()


def with_anomaly():
    """Anomaly mode, of the forward too."""
    x, y = leaves()
    with torch.autograd.detect_anomaly(check_inf=True, forward=True):
        (x * y).exp().sum().backward()


def with_autocast():
    """Autocast."""
    made = model()
    with torch.autocast("cpu"):
        out = made(torch.ones(2, 3))
        with torch.autocast("cpu", enabled=False):
            out = out.float().sum()
    out.backward()


def in_forward_mode():
    """Duals, jvp and jacfwd."""
    x, y = leaves()
    with forward_ad.dual_level():
        forward_ad.unpack_dual(forward_ad.make_dual(y, y).exp() * x)
    func.jvp(torch.exp, (y,), (y,))
    func.jacfwd(torch.sin)(y)


def with_transforms():
    """vmap and func.grad, one inside the other."""
    _, y = leaves(2, 3)
    func.vmap(func.grad(lambda one: (one**3).sum()))(y)
    func.functional_call(torch.nn.Linear(3, 3), {"bias": torch.zeros(3)}, (y,))
    func.hessian(lambda one: (one**3).sum())(y[0])


def with_profiler():
    """A profile."""
    x, y = leaves()
    with torch.profiler.profile(record_shapes=True), torch.profiler.record_function("part"):
        (x * y).sum().backward()


def with_watch():
    """A recorded step."""
    x, y = leaves()
    with lens.watch():
        (x * y).sum().backward()


def with_doctor():
    """A step under the doctor."""
    made = model()
    with lens.doctor():
        made(torch.ones(2, 3)).sum().backward()


def with_loader():
    """Batches of a data set, shuffled."""
    rows = data.TensorDataset(torch.ones(6, 2))
    for (batch,) in data.DataLoader(rows, batch_size=2, shuffle=True):
        batch.sum()


def with_workers():
    """Batches from worker processes."""
    rows = data.TensorDataset(torch.ones(6, 2))
    for (batch,) in data.DataLoader(rows, batch_size=2, num_workers=2):
        batch.sum()


def with_autograd_grad():
    """autograd.grad with inputs, and what is not used."""
    x, y = leaves()
    torch.autograd.grad((x * y).exp().sum(), [x])
    torch.autograd.grad((x * y).sum(), [x, leaves()[0]], allow_unused=True)


def training_step():
    """A whole training step."""
    made = model()
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1, momentum=0.9)
    with torch.random.fork_rng():
        inputs = torch.randn(4, 3)
    for _ in range(2):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(made(inputs), torch.tensor([0, 1, 0, 1]))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(made.parameters(), 1.0)
        optimizer.step()


UNDER_WAY: list[tuple] = []  # the case that runs, and what it works on


def checked_cases():
    """Writes, steps and backwards of which it is known what must hold after an interrupt."""
    for case in CASES.values():
        UNDER_WAY.clear()
        state = case.prepare()
        UNDER_WAY.append((case, state))
        case.run(state)
    UNDER_WAY.clear()


def cut_short() -> list[str]:
    """Return what is wrong with the case that was interrupted, if one was."""
    found = [one for case, state in UNDER_WAY for one in case.wrong(state)]
    UNDER_WAY.clear()
    return found


SLOW = (with_workers,)  # only real signals: processes start in them
PROGRAMS = {
    one.__name__: one
    for one in (
        *(with_no_grad, with_inference_mode, with_tensor_hooks, with_module_hooks, with_create_graph, with_function),
        *(in_place, with_saved_hooks, with_optimizer, with_reentrant_checkpoint, with_checkpoint, with_anomaly),
        *(with_autocast, in_forward_mode, with_transforms, with_profiler, with_watch, with_doctor, with_loader),
        *(with_workers, with_autograd_grad, training_step, checked_cases),
    )
}

LOCKS = {
    "watching": observation.observers.lock,
    "recording": modes.recording.lock,
    "captures": mutation_checks._lock,
    "accumulating": accumulate_grad._accumulating,
    "generator": default_twister.lock,
    "drawing again": checkpointing._RngReplay.lock,
    "first builds": declaration._building,
}
OBJECTS = {
    "recording": modes.recording,
    "interpreted": interpreters.interpreted,
    "observers": observation.observers,
    "transforms": tensor_state.transforms,
    "anywhere": threads.anywhere,
    "guarding": guarding,
}
COUNTS = {"backwards_elsewhere"}  # what only ever rises, and of which nothing but differences is read


def described(value):
    """Return a value in a form that can be compared later: containers by what is in them, all else by identity."""
    if isinstance(value, (dict, set, frozenset)):
        pairs = value.items() if isinstance(value, dict) else enumerate(sorted(value, key=id))
        return {str(key): described(one) for key, one in pairs}
    if isinstance(value, (list, tuple)):
        return [described(one) for one in value]
    return value if isinstance(value, (int, float, str, bool, type(None))) else f"{type(value).__name__} {id(value)}"


def _fields(thing) -> dict:
    names = {name for name, one in vars(type(thing)).items() if name[0] != "_" and not callable(one)}
    names |= set(getattr(thing, "__dict__", ()))
    return {name: described(getattr(thing, name)) for name in sorted(names - COUNTS) if not name.endswith("lock")}


def fingerprint() -> dict:
    """Return all state of the session: of this thread, of all threads, of Python and NumPy, and of the core."""
    found = {f"{type(one).__module__}.{type(one).__qualname__}": _fields(one) for one in threads.ThreadState.instances}
    found |= {name: _fields(one) for name, one in OBJECTS.items()}
    overriding = torch_function.overrides_state  # what it knows of functions is read once and stays
    found["overriding"] = overriding.on, overriding.only_classes, described(overriding.held)
    found["depth"] = threads.depth.here, threads.depth.waiting
    found["locks held"] = [name for name, lock in LOCKS.items() if not repr(lock).startswith("<unlocked")]
    found["intercepts"] = dispatcher.dispatching.active, core is not None and core.core_intercepts()
    found["anomaly"] = anomaly_mode.anomaly.settings(), anomaly_mode.anomaly.wanted
    found["checkpoint"] = checkpointing._Settings.debug, checkpointing._Settings.early_stop
    found["group"] = str(recomputation.GraphExecGroup.current)
    found["cached"] = str(parametrize._cache)
    found["multithreading"] = grad_mode.is_multithreading_enabled()
    found["timers"] = len(profiler._profiling.timers)
    found["casting"] = described(vars(autocasting.casting))
    found["said"] = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")
    found["dtype"], found["threads of kernels"] = str(torch.get_default_dtype()), torch.get_num_threads()
    found["numpy"], found["filters"] = np.geterr(), described(list(warnings.filters))
    found["showwarning"] = id(warnings.showwarning), id(warnings.filterwarnings)
    found["threads"] = sorted(one.name for one in threading.enumerate())
    found["watches"] = len(lens.records.watching.Watch.open)
    found["kept"] = numbers_kept()
    found["trace"] = str(sys.getprofile())
    return found


def processes() -> list[str]:
    """Return the worker processes that are still there after a while.

    A signal between `os.waitpid` and the next line of multiprocessing's own `poll` makes it forget that a process has
    ended: so the system is asked.
    """
    for one in multiprocessing.active_children():
        one.join(10)
    return [one.name for one in multiprocessing.active_children() if _exists(one.pid)]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def differences(before: dict, after: dict) -> list[str]:
    """Return what is not as it was."""
    return [f"{name}: {before.get(name)} -> {after.get(name)}" for name in before if before[name] != after.get(name)]


def reference() -> list[str]:
    """Return what a small program gets wrong: it records, differentiates, stops recording, draws numbers."""
    wrong = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    if y.grad_fn is None:
        return ["nothing is recorded"]
    y.backward()
    if x.grad.tolist() != [2.0, 4.0]:
        wrong.append(f"the gradient of Σx² at [1, 2] is {x.grad.tolist()}")
    with torch.no_grad():
        if (x * x).requires_grad:
            wrong.append("no_grad records")
    if torch.nn.Linear(2, 1)(torch.randn(1, 2)).dtype is not torch.float32:
        wrong.append("a layer computes in another dtype")
    (slope,) = torch.autograd.grad((x**3).sum(), [x])
    if slope.tolist() != [3.0, 12.0]:
        wrong.append(f"the gradient of Σx³ is {slope.tolist()}")
    return wrong

"""The process that makes the calls: `python worker.py backlight` or `… torch`, a call a line in, an outcome a line out.

NOTE [Outcomes]
A line of JSON: {"value": …} what was returned, {"error": …} what was raised, {"unbuildable": …} where an argument could
not be made. An error has the names of its class and what that derives from, the first line of its message, whether it
is one of backlight's own, the innermost frame of all and the innermost of the package under test.
"""

import faulthandler
import json
import os
import resource
import sys
import tempfile
import warnings

import numpy as np
import torch

import backlight
from hostile import objects
from hostile.call import their_name
from hostile.names import resolve

MEMORY = 4 << 30
SHOWN = 64  # elements of a tensor that are compared


def main(package: str) -> None:
    """Answer calls until the input ends."""
    module, foreign = (backlight, torch) if package == "backlight" else (torch, backlight)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what is printed by a call does not mix with the answers
    calls = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    faulthandler.enable()
    torch.set_num_threads(1)
    sys.setrecursionlimit(1000)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    folder = tempfile.mkdtemp(prefix="hostile")
    os.chdir(folder)
    names = environment(module, foreign)
    print(json.dumps("ready"), file=answers, flush=True)
    for line in calls:
        outcome = made(module, names, *json.loads(line))
        print(json.dumps(outcome), file=answers, flush=True)
    os.rmdir(folder)


def environment(module, foreign) -> dict:
    """Return the names that arguments are made of."""

    def T(shape, dtype="float32", grad=False, seed=0):  # noqa: N802 - short, in thousands of calls
        numbers = np.random.RandomState(seed)
        if dtype.startswith(("float", "bfloat")):
            found = module.from_numpy(np.asarray(numbers.uniform(-2, 2, shape), np.float32))
        else:
            low, high = (0, 2) if dtype == "bool" else (0, 3)
            found = module.from_numpy(np.asarray(numbers.randint(low, high, shape), np.int64))
        return found.to(getattr(module, dtype)).requires_grad_(grad)

    def V(values, dtype, grad=False):  # noqa: N802 - short, in thousands of calls
        return module.tensor(values, dtype=getattr(module, dtype), requires_grad=grad)

    def P(shape):  # noqa: N802 - short, in thousands of calls
        return module.nn.Parameter(T(shape))

    class Sub(module.Tensor):
        pass

    def subclassed(tensor):
        return tensor.as_subclass(Sub)

    hostile = {name: value for name, value in vars(objects).items() if isinstance(value, type)}
    return {
        **hostile,
        "torch": module,
        "np": np,
        "T": T,
        "V": V,
        "P": P,
        "Sub": subclassed,
        "Foreign": lambda: foreign.ones(2, 3),
    }


def made(module, names: dict, target: str, args: list, kwargs: dict, inputs: list | None) -> dict:
    """Make a call and return its outcome."""
    module.manual_seed(0)
    try:
        places = {}
        for number, text in enumerate(args):
            places[f"A{number}"] = eval(text, {**names, **places})
        named = {name: eval(text, {**names, **places}) for name, text in kwargs.items()}
        given = None if inputs is None else [eval(text, {**names, **places}) for text in inputs]
    except Exception as problem:
        return {"unbuildable": repr(type(problem))}
    values = list(places.values())
    try:
        if target.startswith("."):
            function = getattr(values.pop(0), target[1:])
        else:
            function = resolve(module, their_name(target) if module is torch else target)
        out = function(*values, **named)
        if given is not None:
            out = out(*given)
        outcome = {"value": described(out)}
        edge = getattr(out, "grad_fn", None)
        if isinstance(out, module.Tensor) and edge is not None and out.numel() < 10**6:
            outcome["backward"] = True
            out.sum().backward()
            outcome["gradients"] = [described(one.grad) for one in values if is_leaf(module, one)]
    except BaseException as problem:
        outcome = {"error": raised(module, problem)}
    finally:
        restore(module, target)
    return outcome


def is_leaf(module, value) -> bool:
    """Tell whether a value is a leaf that has a gradient."""
    return isinstance(value, module.Tensor) and value.is_leaf and value.requires_grad


def restore(module, target: str) -> None:
    """Undo what a call may have set for the whole process."""
    if not target.startswith(".") and "set_" in target:
        module.set_default_dtype(module.float32)
        module.set_grad_enabled(True)
        module.set_printoptions(profile="default")
        module.set_num_threads(1)
        module.set_anomaly_enabled(False)
        module.set_default_device("cpu")
        module.set_autocast_enabled("cpu", False)
        module.set_autocast_dtype("cpu", module.bfloat16)
        module.set_autocast_cache_enabled(True)
    module.set_grad_enabled(True)


def raised(module, problem: BaseException) -> dict:
    """Return what is known of an exception."""
    folder = os.path.dirname(module.__file__) + os.sep
    innermost, place, frames = "", "", 0
    trace = problem.__traceback__.tb_next  # the first frame is ours
    while trace is not None:
        code = trace.tb_frame.f_code
        innermost = code.co_filename
        if innermost.startswith(folder):
            place = f"{innermost.removeprefix(folder)}:{trace.tb_lineno}"
        elif innermost.startswith("<backlight ") and not place:
            place = innermost
        frames += 1
        trace = trace.tb_next
    try:
        message = str(problem)
    except Exception:
        message = "(no message)"
    return {
        "classes": [kind.__name__ for kind in type(problem).__mro__ if kind not in (object, BaseException, Exception)],
        "first": (message.splitlines() or [""])[0][:300],
        "own": isinstance(problem, backlight.errors.BacklightError),
        "place": place,
        "innermost": innermost,
        "frames": frames,
    }


def described(value, depth: int = 0):
    """Return a value as JSON that compares across the two packages."""
    if isinstance(value, (torch.Tensor, backlight.Tensor)):
        return _tensor(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return float(value) if abs(value) < 2**1000 else str(value)
    if isinstance(value, str):
        return value[:200]
    if isinstance(value, (list, tuple)) and depth < 4:
        return [described(one, depth + 1) for one in value[:20]]
    return f"<{type(value).__name__}>"


def _tensor(value):
    if value.device.type == "meta":
        return {"dtype": str(value.dtype), "shape": [*value.shape], "meta": True}
    flat = value.detach()
    if value.numel() > SHOWN:
        flat = flat.reshape(-1)[:SHOWN] if value.numel() < 10**7 else flat[(0,) * flat.ndim]
    flat = flat.double() if not str(value.dtype).startswith("torch.complex") else flat.abs()
    return {"dtype": str(value.dtype), "shape": [*value.shape], "elements": flat.reshape(-1).tolist()}


if __name__ == "__main__":
    main(sys.argv[1])

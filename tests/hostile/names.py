"""The public names that are called: found in the namespaces, so that new ones are among them."""

import importlib
import inspect
from types import ModuleType

import torch

import backlight
from hostile.call import their_name

NAMESPACES = """
 Tensor nn nn.functional nn.init nn.utils nn.utils.rnn nn.utils.parametrizations nn.utils.parametrize nn.utils.prune
linalg fft special signal.windows func autograd autograd.functional autograd.forward_ad optim optim.lr_scheduler data
utils.checkpoint utils.dlpack utils._pytree masked testing array_api amp overrides random
"""

# Not called: what they do outlives the call, or the answer belongs to the process and not to the arguments.
LEFT_OUT = {
    "load": "reads files: tests/serialization/test_hostile_files.py",
    "save": "writes files",
    "compile": "PyTorch's starts a compiler",
    "from_file": "maps files",
    "set_num_interop_threads": "may be called once a process",
    "initial_seed": "of the process",
    "seed": "of the process",
    "get_rng_state": "of the process",
    "set_rng_state": "changes what all later calls draw",
    "random.seed": "of the process",
    "random.initial_seed": "of the process",
    "random.get_rng_state": "of the process",
    "random.set_rng_state": "changes what all later calls draw",
    "optim.Optimizer": "abstract",
    "autograd.forward_ad.enter_dual_level": "leaves a level open",
    "default_generator": "of the process",
}


def public_names() -> list[str]:
    """Return the callable names below `backlight` that PyTorch has too, methods of tensors as `.name`."""
    found = [f".{name}" for name in sorted(vars(backlight.Tensor)) + sorted(dir(backlight.Tensor)) if _is_method(name)]
    for namespace in ["", *NAMESPACES.split()]:
        if namespace != "Tensor":
            found += _callables(namespace)
    return [name for name in dict.fromkeys(found) if name not in LEFT_OUT]


def _is_method(name: str) -> bool:
    ours, theirs = (getattr(module.Tensor, name, None) for module in (backlight, torch))
    return not name.startswith("_") and callable(ours) and callable(theirs)


def _callables(namespace: str) -> list[str]:
    module = resolve(backlight, namespace) if namespace else backlight
    found = []
    for name in getattr(module, "__all__", None) or dir(module):
        full = f"{namespace}.{name}" if namespace else name
        ours = getattr(module, name, None)
        if name.startswith("_") or not callable(ours) or isinstance(ours, ModuleType):
            continue
        if inspect.isclass(ours) and issubclass(ours, BaseException):
            continue
        if namespace == "array_api" or resolve(torch, their_name(full)) is not None:
            found.append(full)
    return found


def resolve(module, name: str):
    """Return what a dotted name stands for in backlight or in PyTorch, or None."""
    found = module
    for part in name.split("."):
        inner = getattr(found, part, None)
        if inner is None and isinstance(found, ModuleType):
            try:
                inner = importlib.import_module(f"{found.__name__}.{part}")
            except ImportError:
                return None
        if inner is None:
            return None
        found = inner
    return found


def parameters(name: str) -> list[str]:
    """Return the names of the parameters of one of our functions, without `self` and the starred ones."""
    found = resolve(backlight, f"Tensor{name}" if name.startswith(".") else name)
    found = getattr(found, "__wrapped__", found)
    operation = getattr(found, "op", None)
    if operation is not None:
        return [param.name for param in operation.params]
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return []
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in signature.parameters.values() if one.kind not in starred and one.name != "self"]

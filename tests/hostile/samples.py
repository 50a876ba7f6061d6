"""Valid calls to start from: PyTorch's own test samples where it has some, else guesses from the parameters' names."""

import functools
import itertools
import math
import warnings

import torch
from opinfo_database import op_database

from hostile.call import Call, Tree
from hostile.names import parameters

GUESSES = {
    "input": ["T((2, 3))", "T((4,))", "T((2, 3), grad=True)"],
    "other": ["T((2, 3))", "2", "1.5"],
    "tensor": ["T((2, 3))"],
    "self": ["T((2, 3))"],
    "tensors": ["[T((2, 3)), T((2, 3))]", "(T((3,)),)"],
    "x": ["T((2, 3))"],
    "y": ["T((2, 3))"],
    "mat2": ["T((3, 2))"],
    "weight": ["T((2, 3))", "T((3,))"],
    "target": ["T((2, 3))", "V([0, 2], 'int64')"],
    "mask": ["T((2, 3), 'bool')"],
    "index": ["V([0, 1], 'int64')", "V([[0, 1, 0]], 'int64')"],
    "indices": ["V([0, 1], 'int64')"],
    "src": ["T((2, 3))"],
    "dim": ["0", "1", "-1", ["(", "0", "1"]],
    "dims": [["(", "0", "1"], ["[", "0"]],
    "dim0": ["0"],
    "dim1": ["1"],
    "axis": ["0"],
    "size": [["(", "2", "3"], "3"],
    "shape": [["(", "2", "3"]],
    "sizes": [["(", "2", "3"]],
    "n": ["3"],
    "k": ["1"],
    "M": ["5"],
    "value": ["1.5"],
    "dtype": ["torch.float32", "torch.int64"],
    "device": ["'cpu'"],
    "func": ["lambda x: (x * x).sum()"],
    "fn": ["lambda x: (x * x).sum()"],
    "function": ["lambda x: (x * x).sum()"],
    "inputs": ["T((3,))", "(T((3,)),)"],
    "outputs": ["(T((3,), grad=True) * 2).sum()"],
    "primals": ["(T((3,)),)"],
    "tangents": ["(T((3,)),)"],
    "params": [["[", "P((2, 3))", "P((3,))"]],
    "parameters": [["[", "P((2, 3))"]],
    "optimizer": ["torch.optim.SGD([P((2,))], lr=0.1)"],
    "module": ["torch.nn.Linear(3, 2)"],
    "model": ["torch.nn.Linear(3, 2)"],
    "name": ["'weight'"],
    "lr": ["0.1"],
    "dataset": ["torch.utils.data.TensorDataset(T((6, 3)))" if False else "[1, 2, 3, 4]"],
    "actual": ["T((2, 3))"],
    "expected": ["T((2, 3))"],
    "requires_grad": ["True"],
    "keepdim": ["True", "False"],
    "num_features": ["3"],
    "in_features": ["3"],
    "out_features": ["2"],
    "generator": ["None"],
}


@functools.cache
def _entries() -> dict:
    """Return PyTorch's test entries by name."""
    found: dict = {}
    for entry in op_database():
        found.setdefault(entry.name, []).append(entry)
        for alias in entry.aliases:
            found.setdefault(alias.name, []).append(entry)
    return found


@functools.cache
def _modules() -> dict:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_modules import module_db
    return {f"nn.{entry.module_cls.__name__}": entry for entry in module_db}


@functools.cache
def _optimizers() -> dict:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_optimizers import optim_db
    return {f"optim.{entry.optim_cls.__name__}": entry for entry in optim_db}


@functools.cache
def samples(name: str) -> list[Call]:
    """Return valid calls of a public name; guesses where PyTorch has no samples of it."""
    bare = name.removeprefix(".").removeprefix("array_api.")
    found: list[Call] = []
    torch.manual_seed(0)
    for entry in _entries().get(bare, []) or _entries().get(bare.removesuffix("_"), []):
        found += _of_entry(name, entry)
    if name in _modules():
        found += _of_module(name)
    if name in _optimizers():
        found += [
            Call(name, [["[", "P((2, 3))", "P((3,))"]], {key: text(value) for key, value in one.kwargs.items()})
            for one in _optimizers()[name].optim_inputs_func(device="cpu")
            if _sayable(one.kwargs)
        ]
    return found or _guesses(name)


def _of_entry(name: str, entry) -> list[Call]:
    found = []
    for dtype in (torch.float32, torch.int64):
        if dtype not in entry.dtypes:
            continue
        for sample in itertools.islice(entry.sample_inputs("cpu", dtype, requires_grad=dtype.is_floating_point), 12):
            try:
                args = [text(value) for value in (sample.input, *sample.args)]
                found.append(Call(name, args, {key: text(value) for key, value in sample.kwargs.items()}))
            except Unsayable:
                continue
    return found


def _of_module(name: str) -> list[Call]:
    entry, found = _modules()[name], []
    made = entry.module_inputs_func(entry, device="cpu", dtype=torch.float32, requires_grad=True, training=True)
    for sample in itertools.islice(made, 12):
        first, then = sample.constructor_input, sample.forward_input
        try:
            call = Call(name, [text(one) for one in first.args], {key: text(one) for key, one in first.kwargs.items()})
            if then is not None and not then.kwargs:
                call.inputs = [text(one) for one in then.args]
            found.append(call)
        except Unsayable:
            continue
    return found


def _guesses(name: str) -> list[Call]:
    """Return calls whose arguments are guessed from the names of the parameters."""
    names = parameters(name)
    if name.startswith(".") and (not names or names[0] not in ("self", "input")):
        names = ["input", *names]
    calls = []
    for turn in range(3):
        args = []
        for one in names[: 1 + turn + len(names) // 2]:
            choices = GUESSES.get(one, ["1", "T((2, 3))", "0.5"])
            args.append(choices[turn % len(choices)])
        calls.append(Call(name, args))
    return calls


class Unsayable(Exception):
    """A value has no source."""


def _sayable(values: dict) -> bool:
    try:
        return bool([text(value) for value in values.values()]) or True
    except Unsayable:
        return False


def text(value) -> Tree:
    """Return the source of a value of a sample, lists and tuples as trees.

    Raises:
        Unsayable: it has none.
    """
    if isinstance(value, torch.Tensor):
        return tensor_text(value)
    if isinstance(value, (list, tuple)):
        return ["[" if isinstance(value, list) else "(", *[text(one) for one in value]]
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return str(value)
    if isinstance(value, torch.device):
        return f"torch.device('{value}')"
    if isinstance(value, slice):
        return repr(value)
    raise Unsayable


def tensor_text(value: torch.Tensor) -> str:
    """Return the source of a tensor: with its elements if they are few."""
    kind = str(value.dtype).removeprefix("torch.")
    if kind.startswith(("complex", "float8")) or value.layout is not torch.strided or value.numel() > 5000:
        raise Unsayable
    grad = ", grad=True" if value.requires_grad else ""
    if value.numel() <= 24 and value.isfinite().all():
        elements = value.detach().double().mul(100).round().div(100) if kind.startswith(("float", "bf")) else value
        return (
            f"V({elements.tolist()}, '{kind}'{grad})" if value.numel() else f"T({tuple(value.shape)}, '{kind}'{grad})"
        )
    return f"T({tuple(value.shape)}, '{kind}'{grad})"

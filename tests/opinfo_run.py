"""Runs backlight on PyTorch's own test samples (OpInfo) and compares forward, gradient and second gradient.

python tests/opinfo_run.py [name …]      prints a line an entry, with the first difference
"""

import functools
import sys
import types
import warnings
from dataclasses import dataclass

import numpy as np
import torch

import backlight
from backlight.autograd import gradgradcheck

RTOL, ATOL = 1e-7, 1e-9
SINGLE_RTOL, SINGLE_ATOL = 1e-4, 1e-5  # where a sample mixes float32 in
RANDOM_SEED = 42  # the seed that PyTorch's own wrappers set in samples that draw


class Missing(Exception):
    """backlight has no op of that name."""


@dataclass(frozen=True)
class Outcome:
    """What became of one entry of PyTorch's list."""

    name: str
    status: str  # "pass", "fail", "missing"
    samples: int
    reason: str = ""


def entries():
    """Return PyTorch's entries that have a gradient for float64 on the CPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return [entry for entry in op_db if entry.supports_autograd and torch.float64 in entry.dtypes]


def full_name(entry) -> str:
    return entry.name + (f".{entry.variant_test_name}" if entry.variant_test_name else "")


def our_function(entry):
    """Return backlight's function for an entry: by its name, or PyTorch's test wrapper run on backlight's names."""
    function = entry.op
    if isinstance(function, types.FunctionType) and function.__module__.startswith("torch.testing"):
        names = {**function.__globals__, "torch": backlight}
        return types.FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )
    found = backlight
    for part in entry.name.split("."):
        found = getattr(found, part, None)
        if found is None:
            method = getattr(backlight.Tensor, entry.name, None)
            if method is None:
                raise Missing(entry.name)
            return method
    return found


def converted(value, made: dict):
    """Return a sample's value with tensors, dtypes … replaced by backlight's; the same tensor twice stays one."""
    if isinstance(value, torch.Tensor):
        if id(value) not in made:
            if value.dtype == torch.bfloat16 or value.is_complex() or value.layout is not torch.strided:
                raise Missing(f"tensors of {value.dtype}, {value.layout}")
            source = value.detach()
            if all(size > 0 for size in source.shape) and source.untyped_storage().nbytes():
                array = np.array(source.numpy(), copy=True, order="K")
            else:
                array = source.numpy().copy()
            tensor = backlight.from_numpy(array)
            made[id(value)] = tensor.requires_grad_() if value.requires_grad else tensor
        return made[id(value)]
    if isinstance(value, torch.dtype):
        return getattr(backlight, str(value).split(".")[1])
    if isinstance(value, torch.layout):
        return backlight.strided
    if isinstance(value, torch.device):
        return backlight.device(str(value))
    if isinstance(value, torch.Size):
        return backlight.Size(value)
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(converted(part, made) for part in value)
    if isinstance(value, dict):
        return {key: converted(part, made) for key, part in value.items()}
    return value


def floats_of(result, kind) -> list:
    """Return the differentiable tensors in a nested result."""
    if isinstance(result, kind):
        return [result] if result.requires_grad else []
    if isinstance(result, (tuple, list)):
        return [tensor for part in result for tensor in floats_of(part, kind)]
    return []


def leaves_of(values, kind, found=None) -> list:
    """Return the tensors in a nested structure that require grad, each once, in order."""
    found = [] if found is None else found
    if isinstance(values, kind):
        if values.requires_grad and all(values is not other for other in found):
            found.append(values)
    elif isinstance(values, (tuple, list)):
        for part in values:
            leaves_of(part, kind, found)
    elif isinstance(values, dict):
        leaves_of(list(values.values()), kind, found)
    return found


def compare(ours, theirs, what: str) -> None:
    """Raise AssertionError at the first difference in structure, dtype, shape or value."""
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, backlight.Tensor), f"{what}: {type(ours).__name__} instead of a tensor"
        assert str(ours.dtype) == str(theirs.dtype), f"{what}: dtype {ours.dtype} instead of {theirs.dtype}"
        assert tuple(ours.shape) == tuple(theirs.shape), f"{what}: shape {ours.shape} instead of {theirs.shape}"
        np.testing.assert_allclose(
            ours.detach().numpy().astype(np.float64),
            theirs.detach().double().numpy(force=True),
            rtol=SINGLE_RTOL if theirs.dtype is torch.float32 else RTOL,
            atol=SINGLE_ATOL if theirs.dtype is torch.float32 else ATOL,
            err_msg=what,
        )
    elif isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), f"{what}: {len(ours)} results instead of {len(theirs)}"
        for number, (a, b) in enumerate(zip(ours, theirs)):
            compare(a, b, f"{what}[{number}]")
    else:
        assert ours == theirs, f"{what}: {ours!r} instead of {theirs!r}"


def weights_for(outputs, module, seed) -> list:
    rng = np.random.default_rng(seed)
    arrays = [np.asarray(rng.normal(size=tuple(one.shape))) for one in outputs]
    return [module.from_numpy(array).to(getattr(module, str(one.dtype)[6:])) for array, one in zip(arrays, outputs)]


def gradients(module, outputs, leaves, seed, create_graph):
    return module.autograd.grad(
        outputs, leaves, weights_for(outputs, module, seed), create_graph=create_graph, allow_unused=True
    )


def compare_gradients(ours, theirs, what):
    for number, (a, b) in enumerate(zip(ours, theirs)):
        if a is None or b is None:
            present = a if b is None else b
            zero = present is None or not np.any(present.detach().numpy(force=True))
            assert zero, f"{what} {number}: only {'backlight' if b is None else 'PyTorch'} has one"
        else:
            compare(a, b, f"{what} {number}")


@functools.cache
def draws_alike() -> bool:
    """Tell whether PyTorch draws dropout from its own generator here, as backlight does."""
    torch.manual_seed(RANDOM_SEED)
    backlight.manual_seed(RANDOM_SEED)
    theirs = torch.nn.functional.dropout(torch.ones(100), 0.5)
    return np.array_equal(backlight.nn.functional.dropout(backlight.ones(100), 0.5).numpy(), theirs.numpy())


def run_sample(entry, function, sample) -> None:
    """Compare one sample in all three ways."""
    made: dict = {}
    arguments = (sample.input, sample.args, sample.kwargs)
    mine_input, mine_args, mine_kwargs = converted(arguments, made)
    torch.manual_seed(RANDOM_SEED)
    before = torch.get_rng_state()
    theirs = entry.op(sample.input, *sample.args, **sample.kwargs)
    if not torch.equal(before, torch.get_rng_state()) and not draws_alike():
        return  # on some processors PyTorch draws from a vendor's library: other numbers, nothing to compare
    backlight.manual_seed(RANDOM_SEED)
    ours = function(mine_input, *mine_args, **mine_kwargs)
    compare(ours, theirs, "forward")
    theirs, ours = sample.output_process_fn_grad(theirs), sample.output_process_fn_grad(ours)
    their_outputs, our_outputs = floats_of(theirs, torch.Tensor), floats_of(ours, backlight.Tensor)
    assert len(our_outputs) == len(their_outputs), f"{len(our_outputs)} outputs require grad, not {len(their_outputs)}"
    their_leaves, our_leaves = (
        leaves_of(arguments, torch.Tensor),
        leaves_of((mine_input, mine_args, mine_kwargs), backlight.Tensor),
    )
    if not their_outputs or not their_leaves:
        return
    second = entry.supports_gradgrad
    their_grads = gradients(torch, their_outputs, their_leaves, 1, second)
    our_grads = gradients(backlight, our_outputs, our_leaves, 1, True)
    compare_gradients(our_grads, their_grads, "gradient")
    if not second:
        check_second_numerically(function, mine_input, mine_args, mine_kwargs, our_leaves, sample)
        return
    try:
        compare_second(our_grads, their_grads, our_leaves, their_leaves)
    except RuntimeError as problem:
        if "is not implemented" not in str(problem):
            raise
        check_second_numerically(function, mine_input, mine_args, mine_kwargs, our_leaves, sample)


def compare_second(our_grads, their_grads, our_leaves, their_leaves) -> None:
    """Compare the gradients of a weighted sum of the first gradients.

    A first gradient that does not depend on the leaves is part of PyTorch's graph and may be missing from ours: its
    share is zero.
    """
    pairs = [(a, b) for a, b in zip(our_grads, their_grads) if b is not None and b.requires_grad]
    if not pairs:
        return
    theirs = gradients(torch, [b for _, b in pairs], their_leaves, 2, False)
    weights = weights_for([b for _, b in pairs], backlight, 2)
    kept = [(a, weight) for (a, _), weight in zip(pairs, weights) if a is not None and a.requires_grad]
    ours = [None] * len(our_leaves)
    if kept:
        outputs, weights = zip(*kept)
        ours = backlight.autograd.grad(outputs, our_leaves, weights, allow_unused=True)
    compare_gradients(ours, theirs, "second gradient")


def check_second_numerically(function, first, args, kwargs, leaves, sample):
    """Where PyTorch has no second derivative, ours must agree with finite differences."""

    def of_leaves(*_):
        backlight.manual_seed(RANDOM_SEED)
        return tuple(floats_of(sample.output_process_fn_grad(function(first, *args, **kwargs)), backlight.Tensor))

    assert gradgradcheck(of_leaves, leaves), "second gradient differs from finite differences"


def run_entry(entry, most_samples: int | None = None) -> Outcome:
    """Run all samples of an entry (or the first `most_samples`) and say how it went."""
    name, count = full_name(entry), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function = our_function(entry)
            for sample in entry.sample_inputs("cpu", torch.float64, requires_grad=True):
                if most_samples is not None and count >= most_samples:
                    break
                count += 1
                run_sample(entry, function, sample)
        except Missing as problem:
            return Outcome(name, "missing", count, str(problem))
        except AttributeError as problem:
            if "backlight" in str(problem) and "has no attribute" in str(problem):
                return Outcome(name, "missing", count, str(problem))
            return Outcome(name, "fail", count, f"sample {count}: {problem!r}")
        except Exception as problem:
            text = " ".join(str(problem).split())[:300]
            return Outcome(name, "fail", count, f"sample {count}: {type(problem).__name__}: {text}")
    return Outcome(name, "pass", count)


def main(names) -> None:
    outcomes = []
    for entry in entries():
        if names and full_name(entry) not in names and entry.name not in names:
            continue
        outcome = run_entry(entry)
        outcomes.append(outcome)
        print(f"{outcome.status:8} {outcome.name:45} {outcome.samples:4}  {outcome.reason}", flush=True)
    for status in ("pass", "fail", "missing"):
        print(status, sum(outcome.status == status for outcome in outcomes))


if __name__ == "__main__":
    main(sys.argv[1:])

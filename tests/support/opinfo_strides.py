"""Runs backlight on PyTorch's own test samples (OpInfo), rearranged in memory, and compares the strides of results.

python tests/support/opinfo_strides.py [name …]     prints a line an entry, with the first difference

Each tensor of a sample is laid out anew: channels last, or with its dims in another order. Strides of results without
elements are not compared.
"""

import itertools
import sys
import warnings
from collections.abc import Callable

import torch
from opinfo_run import both_results, converted, entries, floats_of, full_name, leaves_of, our_function, weights_for

import backlight

MOST_SAMPLES, MOST_ELEMENTS = 12, 20_000


def _channels_last(dims: int) -> tuple[int, ...]:
    return (0, *range(2, dims), 1) if dims in (4, 5) else tuple(range(dims))


ORDERS: dict[str, Callable[[int], tuple[int, ...]]] = {  # of the dims in memory, outermost first
    "channels_last": _channels_last,
    "reversed": lambda dims: tuple(reversed(range(dims))),
    "rotated": lambda dims: (*range(dims)[-1:], *range(dims - 1)),
}


def laid_out(value, order: Callable[[int], tuple[int, ...]], made: dict):
    """Return a sample's value with its dense tensors copied into another order of memory."""
    if isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_meta:
        if id(value) not in made:
            dims, source = order(value.ndim), value.detach().resolve_conj().resolve_neg()
            inverse = sorted(range(value.ndim), key=dims.__getitem__)
            copy = source.permute(dims).clone(memory_format=torch.contiguous_format).permute(inverse)
            made[id(value)] = copy.requires_grad_(value.requires_grad)
        return made[id(value)]
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields") and type(value) in (tuple, list):
        return type(value)(laid_out(part, order, made) for part in value)
    if isinstance(value, dict):
        return {key: laid_out(part, order, made) for key, part in value.items()}
    return value


def strides_of(result, kind) -> list:
    """Return the shapes and strides of the tensors in a nested result that have elements and are not sparse."""
    if isinstance(result, kind):
        shown = result.numel() and not result.is_sparse
        return [(tuple(result.shape), tuple(result.stride()))] if shown else []
    return [one for part in result for one in strides_of(part, kind)] if isinstance(result, (tuple, list)) else []


def differences(entry) -> list[str]:
    """Return what differs in the strides of an entry's results and of `.grad`, a line for each sample and order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _differences(entry)


def _differences(entry) -> list[str]:
    function, found = our_function(entry), []
    samples = entry.sample_inputs("cpu", torch.float64, requires_grad=entry.supports_autograd)
    for sample in itertools.islice(samples, MOST_SAMPLES):
        tensors = leaves_of([sample.input, sample.args, sample.kwargs], torch.Tensor)
        if sum(one.numel() for one in tensors) > MOST_ELEMENTS or not any(one.ndim > 1 for one in tensors):
            continue
        for name, order in ORDERS.items():
            arguments = laid_out((sample.input, sample.args, sample.kwargs), order, {})
            mine = converted(arguments, {})
            try:
                results = both_results(entry, function, arguments, mine)
            except RuntimeError:
                if not _refused(entry, arguments):
                    raise
                continue
            if results is None:
                continue
            a, b = strides_of(results[0], backlight.Tensor), strides_of(results[1], torch.Tensor)
            if a == b:
                a, b = _strides_of_gradients(*results, mine, arguments)
            if a != b:
                shown = [(tuple(one.shape), one.stride()) for one in leaves_of(arguments, torch.Tensor)]
                options = [one for one in (*sample.args, sample.kwargs) if not isinstance(one, torch.Tensor)]
                found.append(f"{name}: {shown} {options}: {a} instead of {b}")
    return found


def _refused(entry, arguments) -> bool:
    """Tell whether PyTorch itself refuses the rearranged sample, as `view` does."""
    input, args, kwargs = arguments
    try:
        entry.op(input, *args, **kwargs)
    except RuntimeError:
        return True
    return False


def _strides_of_gradients(ours, theirs, mine, arguments) -> tuple[list, list]:
    """Return the strides of the leaves' `.grad` after backward, ours and PyTorch's; none if PyTorch cannot."""
    outputs, leaves = floats_of(theirs, torch.Tensor), leaves_of(arguments, torch.Tensor)
    if not outputs:
        return [], []
    try:
        torch.autograd.backward(outputs, weights_for(outputs, torch, 1))
    except RuntimeError:
        return [], []
    backlight.autograd.backward(floats_of(ours, backlight.Tensor), weights_for(outputs, backlight, 1))
    given = [one.grad for one in leaves_of(mine, backlight.Tensor)]
    return _without_ones(given, backlight.Tensor), _without_ones([one.grad for one in leaves], torch.Tensor)


def _without_ones(grads: list, kind) -> list:
    """Return the strides of gradients; PyTorch's contract leaves those of dims of size 1 open."""
    shown = strides_of([one for one in grads if one is not None], kind)
    return [(shape, [stride for size, stride in zip(shape, strides) if size > 1]) for shape, strides in shown]


def main(names: list[str]) -> None:
    for entry in entries():
        if names and full_name(entry) not in names:
            continue
        try:
            found = differences(entry)
        except Exception as problem:
            found = [f"{type(problem).__name__}: {str(problem).splitlines()[:1]}"]
        if found:
            print(full_name(entry), len(found), found[0][:600])
            if names:
                print(*found, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])

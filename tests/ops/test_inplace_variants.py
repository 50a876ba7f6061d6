"""Whatever writes into its tensor, on PyTorch's own samples: the same value and gradient, or an error as there."""

import warnings

import pytest
import torch
from opinfo_run import RANDOM_SEED, compare, compare_gradients, converted, entries, full_name, gradients, leaves_of
from test_opinfo import PASSING

import backlight

INPLACE = {
    full_name(entry): entry
    for entry in entries()
    if entry.inplace_variant is not None and torch.float64 in entry.dtypes and full_name(entry) in PASSING
}
MOST_SAMPLES = 3


def written(module, name: str, arguments):
    """Return a copy of the input after the method, or the function with inplace=True, wrote into it; or the error."""
    input, args, kwargs = arguments
    module.manual_seed(RANDOM_SEED)
    try:
        if hasattr(module.Tensor, name):
            return getattr(input.clone(), name)(*args, **kwargs)
        return getattr(module.nn.functional, name)(input.clone(), *args, **{**kwargs, "inplace": True})
    except (RuntimeError, TypeError, IndexError) as problem:
        return problem


def compare_sample(entry, name: str, sample) -> None:
    """Compare one sample: value and gradient."""
    arguments = (sample.input, sample.args, sample.kwargs)
    mine = converted(arguments, {})
    theirs, ours = written(torch, name, arguments), written(backlight, name, mine)
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"{name}: no error, PyTorch's is {theirs}"
        return
    assert not isinstance(ours, Exception), f"{name}: {ours!r}"
    compare(ours, theirs, name)
    assert ours.requires_grad == theirs.requires_grad
    if entry.supports_inplace_autograd and theirs.requires_grad:
        leaves = leaves_of(arguments, torch.Tensor), leaves_of(mine, backlight.Tensor)
        pair = [
            gradients(module, [one], found, 1, False)
            for module, one, found in zip((torch, backlight), (theirs, ours), leaves)
        ]
        compare_gradients(pair[1], pair[0], f"{name}: gradient")


@pytest.mark.parametrize("entry_name", INPLACE)
def test_method_that_writes_equals_pytorch(entry_name):
    entry = INPLACE[entry_name]
    name = getattr(entry.inplace_variant, "__name__", "")
    if not hasattr(torch.Tensor, name):  # PyTorch's own wrapper, of a method or of a function with the option
        name = entry.name.rsplit(".", 1)[-1]
        name = name if entry.name.startswith("nn.functional") else name + "_"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, sample in enumerate(entry.sample_inputs("cpu", torch.float64, requires_grad=True)):
            if number == MOST_SAMPLES:
                break
            if not sample.broadcasts_input:
                compare_sample(entry, name, sample)

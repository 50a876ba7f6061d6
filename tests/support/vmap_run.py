"""Runs vmap over PyTorch's own test samples (OpInfo) and compares it with a Python loop over the batch.

python tests/support/vmap_run.py [name …]      prints a line an entry: how many vmaps agreed, which ops were looped over
"""

import sys
import warnings
from dataclasses import dataclass

import numpy as np
import opinfo_run
import torch
from paths import TESTS

import backlight
from backlight.transforms.vmap import loop_fallback
from backlight.transforms.vmap.api import vmap

BATCH = 2
PASSING = (TESTS / "data" / "opinfo_passing.txt").read_text().split()


@dataclass(frozen=True)
class Outcome:
    """What became of one entry: "pass", "refused" (PyTorch refuses too) or "fail"."""

    name: str
    status: str
    vmaps: int
    looped: tuple
    reason: str = ""


def tensors_in(value) -> list:
    """Return the tensors of a nested sample, each once, in order."""
    found: list = []

    def visit(part):
        if isinstance(part, backlight.Tensor):
            if all(part is not other for other in found):
                found.append(part)
        elif isinstance(part, (tuple, list)):
            for one in part:
                visit(one)
        elif isinstance(part, dict):
            visit(list(part.values()))

    visit(value)
    return found


def replaced(value, old: list, new: list):
    """Return a nested sample with some tensors replaced."""
    if isinstance(value, backlight.Tensor):
        return next((b for a, b in zip(old, new) if a is value), value)
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(replaced(part, old, new) for part in value)
    if isinstance(value, dict):
        return {key: replaced(part, old, new) for key, part in value.items()}
    return value


def batch_of(tensor, dim: int):
    """Return a batch of a tensor and of its elements in reverse order, which are as valid, along a dim."""
    array = opinfo_run.values(tensor)
    stacked = backlight.from_numpy(np.stack([array, array[(slice(None, None, -1),) * array.ndim]]))
    made = stacked.movedim(0, dim).contiguous()
    return made.requires_grad_() if tensor.requires_grad else made


def choices(tensors: list) -> list:
    """Return which tensors to batch together: all floats, all of them, the first, the last."""
    floats = [one for one in tensors if one.is_floating_point()]
    wanted = [floats, tensors, tensors[:1], tensors[-1:]]
    found = []
    for choice in wanted:
        if choice and all([id(a) for a in choice] != [id(b) for b in other] for other in found):
            found.append(choice)
    return found


def outputs_of(result) -> list:
    """Return the tensors in a result."""
    if isinstance(result, backlight.Tensor):
        return [result]
    return [one for part in result for one in outputs_of(part)] if isinstance(result, (tuple, list)) else []


def gradients(outputs, leaves) -> list:
    """Return the gradients of a weighted sum of outputs."""
    smooth = [one for one in outputs if one.requires_grad]
    if not smooth or not leaves:
        return []
    weights = [backlight.from_numpy(np.cos(np.arange(one.numel())).reshape(one.shape)).to(one.dtype) for one in smooth]
    found = backlight.autograd.grad(smooth, leaves, weights, allow_unused=True)
    return [backlight.zeros_like(leaf) if one is None else one for one, leaf in zip(found, leaves)]


def looped(function, batches: list, dim: int) -> list:
    """Call the function on each element of the batches, in memory of its own, and stack what it returns."""
    runs = [outputs_of(function(*[one.select(dim, number).clone() for one in batches])) for number in range(BATCH)]
    return [backlight.stack(parts) for parts in zip(*runs)]


def run_choice(function, chosen: list, dim: int, same=()) -> str:
    """Compare one vmap, and gradients for what is batched and for what is the `same` for all, with the loop.

    Returns:
        "agrees", or "no loop" where the loop fails or its results are uneven.
    """
    batches = [batch_of(one, dim) for one in chosen]
    leaves = [one for one in (*batches, *same) if one.requires_grad]
    try:
        backlight.manual_seed(1)
        start = backlight.get_rng_state().numpy().copy()
        expected = looped(function, batches, dim)
        draws = not np.array_equal(start, backlight.get_rng_state().numpy())
    except Exception:
        return "no loop"
    backlight.manual_seed(1)
    found = outputs_of(vmap(function, in_dims=dim, randomness="different")(*batches))
    assert len(found) == len(expected), f"{len(found)} results, not {len(expected)}"
    for number, (a, b) in enumerate(zip(found, expected)):
        assert a.dtype == b.dtype, f"dtype {a.dtype} instead of {b.dtype}"
        assert a.shape == b.shape, f"shape {a.shape} instead of {b.shape}"
        if draws:  # in another order
            continue
        np.testing.assert_allclose(opinfo_run.values(a), opinfo_run.values(b), 1e-7, 1e-9, err_msg=f"result {number}")
    if draws:
        return "agrees"
    for number, (a, b) in enumerate(zip(gradients(found, leaves), gradients(expected, leaves))):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-6, 1e-9, err_msg=f"gradient {number}")
    return "agrees"


def their_tensors(value) -> list:
    """Return the same of one of PyTorch's samples."""
    if isinstance(value, torch.Tensor):
        return [value]
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else []
    found: list = []
    for part in parts:
        found += [one for one in their_tensors(part) if all(one is not other for other in found)]
    return found


def theirs_refuse(entry, sample, places: list) -> bool:
    """Tell whether PyTorch's vmap refuses the sample, too, with the tensors at these places batched."""
    tensors = their_tensors((sample.input, sample.args, sample.kwargs))
    chosen = [tensors[place] for place in places]

    def swapped(value, new):
        if isinstance(value, torch.Tensor):
            return next((b for a, b in zip(chosen, new) if a is value), value)
        if isinstance(value, (tuple, list)):
            return type(value)(swapped(part, new) for part in value)
        return {k: swapped(part, new) for k, part in value.items()} if isinstance(value, dict) else value

    def call(*new):
        return entry.op(swapped(sample.input, new), *swapped(sample.args, new), **swapped(sample.kwargs, new))

    try:
        torch.func.vmap(call, randomness="different")(*[torch.stack([one.detach()] * BATCH) for one in chosen])
    except Exception:
        return True
    return False


def run_entry(entry, most_samples: int | None = None, dims=(0, -1)) -> Outcome:
    """Run the samples of an entry and say how it went."""
    name, count, refused = opinfo_run.full_name(entry), 0, ""
    loop_fallback.counts.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = opinfo_run.our_function(entry)
        dtype = opinfo_run.dtype_of(entry)
        differentiated = dtype.is_floating_point or dtype.is_complex
        for number, sample in enumerate(entry.sample_inputs("cpu", dtype, requires_grad=differentiated)):
            if most_samples is not None and number >= most_samples:
                break
            try:
                arguments = opinfo_run.converted((sample.input, sample.args, sample.kwargs), {})
            except opinfo_run.Missing:
                continue
            arguments = (arguments[0], tuple(arguments[1]), arguments[2])
            tensors = tensors_in(arguments)
            for chosen in choices(tensors):
                same = [one for one in tensors if all(one is not other for other in chosen)]
                places = [next(i for i, one in enumerate(tensors) if one is other) for other in chosen]

                def call(*new, arguments=arguments, chosen=chosen):
                    first, args, kwargs = replaced(arguments, chosen, new)
                    return function(first, *args, **kwargs)

                for dim in dims:
                    try:
                        count += run_choice(call, chosen, dim, same) == "agrees"
                    except Exception as problem:
                        said = f"sample {number}: {type(problem).__name__}: " + " ".join(str(problem).split())[:300]
                        if not theirs_refuse(entry, sample, places):
                            return Outcome(name, "fail", count, tuple(sorted(loop_fallback.counts)), said)
                        refused = said
    status = "refused" if refused and not count else "pass"
    return Outcome(name, status, count, tuple(sorted(loop_fallback.counts)), refused)


def main(names) -> None:
    """Run the named entries with all their samples, or all that pass otherwise with the first six."""
    for entry in opinfo_run.entries():
        name = opinfo_run.full_name(entry)
        if name in (names or PASSING):
            outcome = run_entry(entry, None if names else 6)
            loops = " loops: " + " ".join(outcome.looped) if outcome.looped else ""
            print(f"{outcome.status:8}{outcome.name:50}{outcome.vmaps:5}{loops}  {outcome.reason}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

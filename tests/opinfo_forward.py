"""The second pass of opinfo_run.py: forward mode on PyTorch's samples, and the reverse gradient of the tangents."""

import sys
import warnings

import numpy as np
import torch
from torch.autograd import forward_ad as their_forward

import backlight
from backlight.autograd import forward_ad as our_forward
from opinfo_run import (
    RANDOM_SEED,
    Missing,
    Outcome,
    compare,
    compare_gradients,
    converted,
    draws_alike,
    entries,
    floats_of,
    full_name,
    gradients,
    leaves_of,
    our_function,
)


def forward_entries():
    """Return PyTorch's entries that have forward mode for float64 on the CPU."""
    return [entry for entry in entries() if entry.supports_forward_ad]


def flat(result, kind) -> list:
    """Return all tensors in a nested result."""
    if isinstance(result, kind):
        return [result]
    if isinstance(result, (tuple, list)):
        return [tensor for part in result for tensor in flat(part, kind)]
    return []


def replaced(value, duals: dict):
    """Return a nested structure with duals in place of the tensors that they are of."""
    if id(value) in duals:
        return duals[id(value)]
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(replaced(part, duals) for part in value)
    if isinstance(value, dict):
        return {key: replaced(part, duals) for key, part in value.items()}
    return value


def weights(tensors, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=tuple(one.shape)) for one in tensors]


def tensor_of(module, array, like):
    return module.from_numpy(np.asarray(array)).to(getattr(module, str(like.dtype)[6:]))


def pushed(module, forward, function, arguments, kind, sample, tangents):
    """Return the outputs of a function on duals of all leaves, and the duals."""
    leaves = leaves_of(arguments, kind)
    given = [tensor_of(module, array, leaf) for array, leaf in zip(tangents, leaves)]
    duals = [forward.make_dual(leaf, one) for leaf, one in zip(leaves, given)]
    first, args, kwargs = replaced(arguments, {id(leaf): dual for leaf, dual in zip(leaves, duals)})
    return flat(sample.output_process_fn_grad(function(first, *args, **kwargs)), kind), duals


def compare_tangents(ours, theirs) -> None:
    """Compare tangents; none is the same as zeros."""
    for number, (mine, other) in enumerate(zip(ours, theirs)):
        if mine is None or other is None:
            present = other if mine is None else mine
            zero = present is None or not np.any(present.detach().numpy(force=True))
            assert zero, f"tangent {number}: only {'backlight' if other is None else 'PyTorch'} has one"
        else:
            compare(mine, other, f"tangent {number}")


def run_sample(entry, function, sample) -> None:
    """Compare one sample: the outputs' tangents, then both mixed second derivatives.

    ⟨weights, J · t⟩ = ⟨Jᵀ · weights, t⟩ has one gradient for the inputs, whether it is taken by reverse over forward,
    by forward over reverse, or as PyTorch does best, by reverse over reverse.
    """
    arguments = (sample.input, sample.args, sample.kwargs)
    mine = converted(arguments, {})
    leaves, our_leaves = leaves_of(arguments, torch.Tensor), leaves_of(mine, backlight.Tensor)
    if not leaves:
        return
    tangents = weights(leaves, 3)
    torch.manual_seed(RANDOM_SEED)
    before = torch.get_rng_state()
    with their_forward.dual_level():
        outs, theirs = pushed(torch, their_forward, entry.op, arguments, torch.Tensor, sample, tangents)
        theirs = [(their_forward.unpack_dual(one).primal, their_forward.unpack_dual(one).tangent) for one in outs]
    if not torch.equal(before, torch.get_rng_state()) and not draws_alike():
        return
    backlight.manual_seed(RANDOM_SEED)
    with our_forward.dual_level():
        outs, duals = pushed(backlight, our_forward, function, mine, backlight.Tensor, sample, tangents)
        ours = [our_forward.unpack_dual(one) for one in outs]
        compare([one.primal for one in ours], [primal for primal, _ in theirs], "output")
        compare_tangents([one.tangent for one in ours], [tangent for _, tangent in theirs])
        if entry.supports_gradgrad:
            compare_mixed(entry, sample, arguments, tangents, ours, outs, our_leaves, duals)


def compare_mixed(entry, sample, arguments, tangents, ours, outs, leaves, duals) -> None:
    """Compare reverse over forward and forward over reverse with PyTorch's reverse over reverse."""
    expected = their_second(entry, sample, arguments, tangents)
    if expected is None:
        return
    chosen = [number for number, out in enumerate(outs) if out.requires_grad]
    scales = [
        tensor_of(backlight, array, outs[number])
        for number, array in zip(chosen, weights([outs[n] for n in chosen], 1))
    ]
    pushed_forward = [(ours[number].tangent, scale) for number, scale in zip(chosen, scales)]
    pushed_forward = [(one, scale) for one, scale in pushed_forward if one is not None and one.requires_grad]
    found = [None] * len(leaves)
    if pushed_forward:
        parts, factors = zip(*pushed_forward)
        found = backlight.autograd.grad(parts, leaves, factors, retain_graph=True, allow_unused=True)
    compare_gradients(found, expected, "reverse over forward: leaf")
    found = backlight.autograd.grad([outs[number] for number in chosen], duals, scales, allow_unused=True)
    found = [None if one is None else our_forward.unpack_dual(one).tangent for one in found]
    compare_gradients(found, expected, "forward over reverse: leaf")


def their_second(entry, sample, arguments, tangents):
    """Return the gradient of ⟨Jᵀ · weights, t⟩ for each leaf, by PyTorch; None if nothing is differentiable."""
    torch.manual_seed(RANDOM_SEED)
    leaves = leaves_of(arguments, torch.Tensor)
    outs = floats_of(sample.output_process_fn_grad(entry.op(sample.input, *sample.args, **sample.kwargs)), torch.Tensor)
    if not outs:
        return None
    first = gradients(torch, outs, leaves, 1, True)
    given = [tensor_of(torch, array, leaf) for array, leaf in zip(tangents, leaves)]
    pairs = [(one, tangent) for one, tangent in zip(first, given) if one is not None and one.requires_grad]
    if not pairs:
        return [None] * len(leaves)
    return torch.autograd.grad([one for one, _ in pairs], leaves, [tangent for _, tangent in pairs], allow_unused=True)


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
            missing = "backlight" in str(problem) and "has no attribute" in str(problem)
            return Outcome(name, "missing" if missing else "fail", count, f"sample {count}: {problem!r}")
        except Exception as problem:
            text = " ".join(str(problem).split())[:300]
            return Outcome(name, "fail", count, f"sample {count}: {type(problem).__name__}: {text}")
    return Outcome(name, "pass", count)


def main(names) -> None:
    outcomes = []
    for entry in forward_entries():
        if names and full_name(entry) not in names and entry.name not in names:
            continue
        outcome = run_entry(entry)
        outcomes.append(outcome)
        print(f"{outcome.status:8} {outcome.name:45} {outcome.samples:4}  {outcome.reason}", flush=True)
    for status in ("pass", "fail", "missing"):
        print(status, sum(outcome.status == status for outcome in outcomes))


if __name__ == "__main__":
    main(sys.argv[1:])

"""The second pass of opinfo_run.py: forward mode on PyTorch's own samples, and both mixed second derivatives.

python tests/support/opinfo_forward.py [name …]      prints a line an entry, with the first difference
"""

import sys

import numpy as np
import torch
from opinfo_run import (
    RANDOM_SEED,
    compare,
    compare_gradients,
    converted,
    draws_alike,
    entries,
    floats_of,
    gradients,
    leaves_of,
    random_numbers,
    report,
    values,
)
from torch.autograd import forward_ad as their_forward

import backlight
from backlight.autograd import forward_ad as our_forward


def forward_entries():
    """Return PyTorch's entries that have a gradient: all have forward mode here, 510 have it in PyTorch."""
    return entries()


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
    return [random_numbers(rng, one) for one in tensors]


def tensor_of(module, array, like):
    return module.from_numpy(np.asarray(array)).to(getattr(module, str(like.dtype)[6:]))


def pushed(module, forward, function, arguments, kind, sample, tangents):
    """Return the outputs of a function on duals of all leaves, and the duals."""
    leaves = leaves_of(arguments, kind)
    given = [tensor_of(module, array, leaf) for array, leaf in zip(tangents, leaves)]
    duals = [forward.make_dual(leaf, one) for leaf, one in zip(leaves, given)]
    first, args, kwargs = replaced(arguments, {id(leaf): dual for leaf, dual in zip(leaves, duals)})
    return flat(sample.output_process_fn_grad(function(first, *args, **kwargs)), kind), duals


SYMMETRIC = {"cholesky", "linalg.cholesky", "linalg.cholesky_ex", "linalg.eigh", "linalg.pinv"}


def tangents_for(entry, leaves) -> list[np.ndarray]:
    """Return a tangent for each leaf: symmetric where an op is defined for symmetric matrices."""
    made = weights(leaves, 3)
    return [symmetric(one) if entry.name in SYMMETRIC else one for one in made]


def symmetric(array: np.ndarray) -> np.ndarray:
    square = array.ndim > 1 and array.shape[-1] == array.shape[-2]
    return array + array.swapaxes(-1, -2).conj() if square else array


def compare_tangents(ours, theirs) -> None:
    """Compare tangents; none is the same as zeros."""
    for number, (mine, other) in enumerate(zip(ours, theirs)):
        if mine is None or other is None:
            present = other if mine is None else mine
            zero = present is None or not np.any(values(present))
            assert zero, f"tangent {number}: only {'backlight' if other is None else 'PyTorch'} has one"
        else:
            compare(mine, other, f"tangent {number}")


def run_sample(entry, function, sample) -> None:
    """Compare one sample: the outputs' tangents, then both mixed second derivatives.

    PyTorch has forward over reverse. It has not reverse over forward for all ops, but ⟨weights, J · t⟩ is
    ⟨Jᵀ · weights, t⟩, whose gradient is reverse over reverse.
    """
    arguments = (sample.input, sample.args, sample.kwargs)
    mine = converted(arguments, {})
    leaves, our_leaves = leaves_of(arguments, torch.Tensor), leaves_of(mine, backlight.Tensor)
    if not leaves:
        return
    tangents = tangents_for(entry, leaves)
    torch.default_generator.manual_seed(RANDOM_SEED)
    before = torch.get_rng_state()
    if not entry.supports_forward_ad:
        return run_without_pytorchs(entry, function, sample, arguments, mine, tangents)
    with their_forward.dual_level():
        outs, duals = pushed(torch, their_forward, entry.op, arguments, torch.Tensor, sample, tangents)
        theirs = [their_forward.unpack_dual(one) for one in outs]
        over_reverse = their_forward_over_reverse(entry, outs, duals)
    if not torch.equal(before, torch.get_rng_state()) and not draws_alike():
        return
    backlight.manual_seed(RANDOM_SEED)
    with our_forward.dual_level():
        outs, duals = pushed(backlight, our_forward, function, mine, backlight.Tensor, sample, tangents)
        ours = [our_forward.unpack_dual(one) for one in outs]
        compare([one.primal for one in ours], [one.primal for one in theirs], "output")
        compare_tangents([one.tangent for one in ours], [one.tangent for one in theirs])
        expected = their_second(entry, sample, arguments, tangents) if entry.supports_gradgrad else None
        if expected is not None:
            compare_mixed(expected, over_reverse or expected, ours, outs, our_leaves, duals)


def run_without_pytorchs(entry, function, sample, arguments, mine, tangents) -> None:
    """Compare our tangents where PyTorch has none: ⟨weights, J · t⟩ is ⟨Jᵀ · weights, t⟩, by PyTorch's gradients."""
    leaves = leaves_of(arguments, torch.Tensor)
    before = torch.get_rng_state()
    outs = floats_of(sample.output_process_fn_grad(entry.op(sample.input, *sample.args, **sample.kwargs)), torch.Tensor)
    if not outs or (not torch.equal(before, torch.get_rng_state()) and not draws_alike()):
        return
    found = zip(gradients(torch, outs, leaves, 1, False), tangents)
    expected = sum(np.vdot(values(one), way).real for one, way in found if one is not None)
    backlight.manual_seed(RANDOM_SEED)
    with our_forward.dual_level():
        results, _ = pushed(backlight, our_forward, function, mine, backlight.Tensor, sample, tangents)
        pairs = [our_forward.unpack_dual(one) for one in results if one.requires_grad]
        assert len(pairs) == len(outs), f"{len(pairs)} outputs require grad, not {len(outs)}"
        ways = [0.0 if one.tangent is None else values(one.tangent) for one in pairs]
    scales = weights(outs, 1)
    product = sum(np.vdot(scale, way).real for scale, way in zip(scales, ways))
    inexact = (torch.float32, torch.complex64, torch.bfloat16, torch.float16, torch.complex32)
    single = any(one.dtype in inexact for one in outs)
    np.testing.assert_allclose(product, expected, 2e-2 if single else 1e-7, 1e-2 if single else 1e-9)


def their_forward_over_reverse(entry, outs, duals):
    """Return the tangents of PyTorch's gradients of the weighted outputs; None where it has none."""
    outs = [out for out in outs if out.requires_grad]
    if not outs or not entry.supports_fwgrad_bwgrad or not entry.supports_gradgrad:
        return None
    scales = [tensor_of(torch, array, out) for array, out in zip(weights(outs, 1), outs)]
    try:
        found = torch.autograd.grad(outs, duals, scales, materialize_grads=True)
    except NotImplementedError:
        return None
    tangents = [their_forward.unpack_dual(one).tangent for one in found]
    return [torch.zeros_like(one) if tangent is None else tangent for one, tangent in zip(found, tangents)]


def compare_mixed(expected, over_reverse, ours, outs, leaves, duals) -> None:
    """Compare reverse over forward with PyTorch's reverse over reverse, forward over reverse with that or its own."""
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
    compare_gradients(zeros_for_none(found, leaves), expected, "reverse over forward: leaf")
    found = backlight.autograd.grad([outs[number] for number in chosen], duals, scales, allow_unused=True)
    found = [None if one is None else our_forward.unpack_dual(one).tangent for one in found]
    try:
        compare_gradients(zeros_for_none(found, leaves), expected, "forward over reverse: leaf")
    except AssertionError:  # where a derivative has kinks, or is one among symmetric matrices only, the orders differ
        compare_gradients(zeros_for_none(found, leaves), over_reverse, "forward over reverse: leaf")


def zeros_for_none(found, leaves) -> list:
    return [backlight.zeros_like(leaf) if one is None else one for one, leaf in zip(found, leaves)]


def their_second(entry, sample, arguments, tangents):
    """Return the gradient of ⟨Jᵀ · weights, t⟩ for each leaf, by PyTorch; None if nothing is differentiable."""
    torch.default_generator.manual_seed(RANDOM_SEED)
    leaves = leaves_of(arguments, torch.Tensor)
    outs = floats_of(sample.output_process_fn_grad(entry.op(sample.input, *sample.args, **sample.kwargs)), torch.Tensor)
    if not outs:
        return None
    first = gradients(torch, outs, leaves, 1, True)
    given = [tensor_of(torch, array, leaf) for array, leaf in zip(tangents, leaves)]
    pairs = [(one, tangent) for one, tangent in zip(first, given) if one is not None and one.requires_grad]
    if not pairs:
        return [torch.zeros_like(leaf) for leaf in leaves]
    firsts, directions = zip(*pairs)
    return torch.autograd.grad(firsts, leaves, directions, materialize_grads=True)


if __name__ == "__main__":
    report(forward_entries(), sys.argv[1:], compared=run_sample)

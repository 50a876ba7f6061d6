"""Every op gives the same gradients when hooks pack what it saves, and when a checkpoint recomputes it."""

import contextlib

import pytest
from case import flat
from for_each import for_each

import backlight
from backlight.autograd.graph import saved, saved_tensors_hooks
from backlight.utils.checkpoint import checkpoint
from cases import ALL

DIFFERENTIABLE = [case for case in ALL if case.differentiable]
by_name = pytest.mark.parametrize("case", DIFFERENTIABLE, ids=lambda case: case.name)


def gradients(case, block, run=None) -> tuple[list, list]:
    """Return the gradients of a case whose forward runs in a block, and theirs, as bytes."""
    backlight.manual_seed(0)
    tensors = case.tensors(backlight, requires_grad=True)
    wanted = [one for one in tensors if one.requires_grad]
    with block:
        outs = [one for one in flat((run or case.call)(backlight, *tensors)) if one.requires_grad]
    first = backlight.autograd.grad([one.sum() for one in outs], wanted, create_graph=case.second, allow_unused=True)
    again = [one for one in first if one is not None and one.requires_grad]
    second = []
    if case.second and again:
        total = sum((one * one).sum() for one in again)
        second = backlight.autograd.grad(total, wanted, allow_unused=True)
    return [[None if one is None else one.detach().numpy().tobytes() for one in some] for some in (first, second)]


@by_name
def test_packing_and_a_checkpoint_change_no_gradient(case):
    def pack(tensor):
        return tensor.detach().clone()

    def run(module, *tensors):
        return checkpoint(lambda *args: case.call(module, *args), *tensors, use_reentrant=False)

    def check(how, *given):
        assert gradients(case, *given) == expected

    expected = gradients(case, contextlib.nullcontext())
    packed = saved_tensors_hooks(pack, lambda held: held.clone())
    for_each([("packed", packed), ("in a checkpoint", contextlib.nullcontext(), run)], check)


@by_name
def test_all_that_is_saved_is_packed(case):
    tensors = case.tensors(backlight, requires_grad=True)
    held = []

    def pack(tensor):
        held.append(tensor)
        return len(held) - 1

    with saved_tensors_hooks(pack, lambda number: held[number]):
        outs = flat(case.call(backlight, *tensors))
    for out in outs:
        for one in saved(out) if out.requires_grad else ():
            assert one.shape in (None, ()), f"{one.node.name()}.{one.name} of shape {one.shape} was not packed"

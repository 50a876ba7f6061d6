"""What docs/run.md says is not here is refused, never replaced."""

import pytest
import torch

import backlight
import backlight.nn


def test_another_device_is_refused_by_its_name():
    with pytest.raises(RuntimeError, match="got 'cuda'"):
        backlight.nn.Linear(2, 1).to("cuda")
    with pytest.raises(RuntimeError, match="got 'cuda'"):
        backlight.ones(2, device="cuda")


@pytest.mark.parametrize("hooked", [False, True])
def test_a_leaf_that_became_a_result_gets_no_gradient(hooked):
    said = []
    for m in (torch, backlight):
        leaf = m.ones(2, requires_grad=True)
        if hooked:
            leaf.register_hook(lambda grad: said.append("hook"))
        loss = (leaf * 2).sum()
        leaf.requires_grad_(False)
        leaf.mul_(m.ones(2, requires_grad=True))
        with pytest.raises(RuntimeError, match=r"^leaf variable has been moved into the graph interior"):
            loss.backward()
    assert not said

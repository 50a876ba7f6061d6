"""Hooks for all modules, hooks on a module's state, and state that is no tensor, are PyTorch's."""

import pytest
import torch

import backlight


def everywhere(t):
    """Return what hooks for all modules and one module's own saw, in order."""
    seen = []
    module = t.nn.modules.module
    model = t.nn.Sequential(t.nn.Linear(1, 1, bias=False), t.nn.ReLU())
    model.load_state_dict({"0.weight": t.ones(1, 1)})
    model[0].register_forward_hook(lambda m, args, out: seen.append("own"))
    handles = [
        module.register_module_forward_pre_hook(lambda m, args: seen.append(("before", type(m).__name__))),
        module.register_module_forward_hook(lambda m, args, out: seen.append(("after", type(m).__name__))),
        module.register_module_full_backward_pre_hook(lambda m, out: seen.append(("grads of", type(m).__name__))),
        module.register_module_full_backward_hook(lambda m, ins, out: seen.append(("all grads of", type(m).__name__))),
    ]
    x = t.ones(1, 1, requires_grad=True)
    model(x).sum().backward()
    for handle in handles:
        handle.remove()
    model(x).sum().backward()
    return seen, x.grad.tolist()


def test_hooks_for_all_modules_run_before_a_modules_own():
    ours, theirs = everywhere(backlight), everywhere(torch)
    assert ours == theirs
    assert "own" in ours[0]


def test_a_hook_for_all_modules_may_change_what_passes():
    for t in (torch, backlight):
        with t.nn.modules.module.register_module_forward_hook(lambda module, args, out: out + 1):
            assert t.nn.Identity()(t.zeros(1)).tolist() == [1.0]
        assert t.nn.Identity()(t.zeros(1)).tolist() == [0.0]


def saved(t):
    """Return what hooks on saving and loading saw and changed."""
    seen = []
    model = t.nn.Sequential(t.nn.Linear(1, 1))
    layer = model[0]
    layer.register_state_dict_pre_hook(lambda module, prefix, keep: seen.append(("saving", prefix, keep)))

    def renamed(module, state, prefix, metadata):
        state[prefix + "factor"] = state.pop(prefix + "weight")

    layer.register_state_dict_post_hook(renamed)

    def named_back(module, state, prefix, metadata, strict, missing, unexpected, errors):
        seen.append((prefix, strict, metadata.get("version"), missing, unexpected, errors))
        state[prefix + "weight"] = state.pop(prefix + "factor")

    layer.register_load_state_dict_pre_hook(named_back)
    layer.register_load_state_dict_post_hook(lambda module, keys: seen.append(list(keys.missing_keys)))
    state = model.state_dict()
    seen.append(list(state))
    seen.append(repr(model.load_state_dict(state)))
    del state["0.bias"]
    layer.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    seen.append(repr(model.load_state_dict(state)))
    return seen


def test_hooks_on_the_state_see_and_change_what_they_do_in_pytorch():
    assert saved(backlight) == saved(torch)


def test_hooks_on_the_state_must_return_nothing():
    for t in (torch, backlight):
        layer = t.nn.Linear(1, 1)
        layer.register_load_state_dict_post_hook(lambda module, keys: keys)
        with pytest.raises(AssertionError, match="are not expected to return new values"):
            layer.load_state_dict(layer.state_dict())
        layer.register_state_dict_post_hook(lambda module, state, prefix, metadata: state)
        with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
            layer.state_dict()


def counting(t):
    """Return a model of either side whose part keeps a number."""

    class Counter(t.nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    return t.nn.Sequential(Counter(), t.nn.ReLU())


def test_extra_state_is_saved_and_loaded():
    for t in (torch, backlight):
        model, other = counting(t), counting(t)
        model[0].count = 7
        state = model.state_dict()
        assert dict(state) == {"0._extra_state": {"count": 7}}
        assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
        assert other[0].count == 7
        with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0\._extra_state"'):
            other.load_state_dict({})
        with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "1\._extra_state"'):
            other.load_state_dict({**state, "1._extra_state": 1})

"""Hooks for all modules, hooks on a module's state, and state that is no tensor, are PyTorch's."""

import warnings

import pytest
import torch
from snippets import assert_shows_the_same

import backlight
from backlight.nn.internal import hooks
from backlight.nn.modules import module


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


# --- the old backward hooks, of one node ------------------------------------------------------------------------------

MODULES = """
nn = torch.nn
class Two(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
    def forward(self, x):
        return self.kind(x)
def note(name):
    return lambda module, ins, outs: print(name, [None if one is None else one.tolist() for one in ins], outs)
x = torch.tensor([[1.0, -2.0]], requires_grad=True)
"""
USES = {
    "one node": "relu = nn.ReLU(); relu.register_backward_hook(note('relu')); relu(x * 1).sum().backward()",
    "replaced": (
        "relu = nn.ReLU(); relu.register_backward_hook(lambda module, ins, outs: (ins[0] * 5,))\n"
        "relu(x * 1).sum().backward(); print(x.grad)"
    ),
    "several nodes": (
        "m = nn.Sequential(nn.ReLU(), nn.Hardtanh(-5, 5)); m.register_backward_hook(note('m')); m(x).sum().backward()"
    ),
    "a tuple of one node": (
        "m = Two(lambda x: x.unbind(1)); m.register_backward_hook(note('m')); m(x * 1)[1].sum().backward()"
    ),
    "a tuple of two": (
        "m = Two(lambda x: (x * 2, x * 3)); m.register_backward_hook(note('m'))\n"
        "two, three = m(x); (two + three).sum().backward()"
    ),
    "a dict": "m = Two(lambda x: {'a': [x * 2]}['a']); m.register_backward_hook(note('m')); m(x)[0].sum().backward()",
    "a nested dict": (
        "m = Two(lambda x: {'n': 3, 'a': x * 2}); m.register_backward_hook(note('m')); m(x)['a'].sum().backward()"
    ),
    "keyword arguments": "m = nn.ReLU(); m.register_backward_hook(note('m')); m(input=x * 1).sum().backward()",
    "no gradient": "m = nn.ReLU(); m.register_backward_hook(note('m')); print(m(x.detach()))",
    "removed": (
        "m = nn.ReLU(); m.register_backward_hook(note('m')).remove(); m(x).sum().backward(); print(x.grad)\n"
        "m.register_full_backward_hook(note('full'))"
    ),
    "after a full one": "m = nn.ReLU(); m.register_full_backward_hook(note('m')); m.register_backward_hook(note('m'))",
}


@pytest.mark.parametrize("source", USES.values(), ids=USES)
def test_old_backward_hooks_see_what_they_see_in_pytorch(source):
    assert_shows_the_same(MODULES + source)


def test_old_backward_hooks_of_all_modules_exclude_full_ones(monkeypatch):
    monkeypatch.setattr(hooks.EVERYWHERE, "_is_full_backward_hook", None)
    seen = []
    handle = module.register_module_backward_hook(lambda m, ins, outs: seen.append(type(m).__name__))
    with handle, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        x = backlight.ones(2, requires_grad=True)
        backlight.nn.Sequential(backlight.nn.ReLU(), backlight.nn.Tanh())(x).sum().backward()
        assert seen == ["Tanh", "Sequential", "ReLU"]
        with pytest.raises(RuntimeError, match="full backward hooks as a global Module hook"):
            module.register_module_full_backward_hook(print)


THREE = "Backward hook returned an invalid number of grad_input, got 3, but expected 1"
WRONG_ANSWERS = {
    "bare": (
        lambda grads: grads[0] * 2,
        THREE,
    ),
    "text": (lambda grads: "abc", THREE),
    "small": (lambda grads: (grads[0][:1],), "hook 'users_hook' has changed the size of value"),
}


@pytest.mark.parametrize("name", WRONG_ANSWERS)
def test_a_full_backward_hook_that_answers_wrongly_is_named(name):
    answer, words = WRONG_ANSWERS[name]

    def users_hook(module, grad_inputs, grad_outputs):
        return answer(grad_inputs)

    for library in (backlight, torch):
        layer = library.nn.Linear(2, 2)
        layer.register_full_backward_hook(users_hook)
        loss = layer(library.ones(3, 2, requires_grad=True)).sum()
        expected = words.replace("users_hook", "hook") if library is torch else words
        with pytest.raises(RuntimeError, match="^" + expected):
            loss.backward()

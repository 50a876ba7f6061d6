"""Selective checkpoints: what a policy names is kept, the rest recomputed, as in PyTorch."""

from functools import partial

import pytest
import torch as pytorch
import torch.utils.checkpoint

import backlight
import backlight.utils.checkpoint

ENGINES = [backlight, pytorch]


def inputs(t, seed=0):
    rng = pytorch.Generator().manual_seed(seed)
    made = [pytorch.randn(4, 4, generator=rng, dtype=pytorch.float64).tolist() for _ in range(3)]
    return [t.tensor(one, dtype=t.float64, requires_grad=True) for one in made]


def block(t, x, y, b):
    hidden = t.sigmoid(t.matmul(t.matmul(x, y), y)) * y
    hidden = t.nn.functional.linear(hidden.tanh(), x, b[0])
    values, _ = hidden.exp().max(1, keepdim=True)
    return (hidden.softmax(-1) + values).sum()


def run(t, context_fn=None):
    tensors = inputs(t)
    options = {} if context_fn is None else {"context_fn": context_fn}
    out = t.utils.checkpoint.checkpoint(partial(block, t), *tensors, use_reentrant=False, **options)
    out.backward()
    return [out.tolist(), *[one.grad.tolist() for one in tensors]]


def close(found, wanted) -> bool:
    return all(pytorch.allclose(pytorch.tensor(a), pytorch.tensor(b)) for a, b in zip(found, wanted, strict=True))


def policies(t):
    create, policy = t.utils.checkpoint.create_selective_checkpoint_contexts, t.utils.checkpoint.CheckpointPolicy
    aten = t.ops.aten
    return {
        "none": partial(create, lambda context, op, *args, **kwargs: policy.PREFER_RECOMPUTE),
        "all": partial(create, lambda context, op, *args, **kwargs: policy.MUST_SAVE),
        "preferred": partial(create, lambda context, op, *args, **kwargs: policy.PREFER_SAVE),
        "products": partial(create, [aten.mm.default, aten.addmm.default]),
        "truth": partial(create, lambda context, op, *args, **kwargs: op == aten.tanh.default),
        "offloaded": partial(create, lambda context, op, *args, **kwargs: policy.MUST_CPU_OFFLOAD),
        "by size": partial(create, lambda context, op, *args, **kwargs: context.op_output is not None),
    }


@pytest.mark.parametrize("name", policies(backlight))
def test_every_policy_gives_the_gradients_of_a_plain_run(name):
    plain = run(pytorch)
    assert close(run(pytorch, policies(pytorch)[name]), plain)
    assert close(run(backlight, policies(backlight)[name]), plain)


@pytest.mark.parametrize("t", ENGINES, ids=["backlight", "pytorch"])
@pytest.mark.parametrize("kept", [True, False])
def test_an_op_that_is_saved_is_not_computed_again(t, kept):
    x = t.tensor([0.5, 1.0], requires_grad=True)
    seen = []

    def function(x):
        hidden = x.sin()
        seen.append(hidden.detach().numpy())
        return hidden.exp()

    ops = [t.ops.aten.sin.default] if kept else [t.ops.aten.cos.default]
    context_fn = partial(t.utils.checkpoint.create_selective_checkpoint_contexts, ops)
    out = t.utils.checkpoint.checkpoint(function, x, use_reentrant=False, context_fn=context_fn)
    seen[0][:] = 0  # who computes again does not see that
    out.sum().backward()
    slope = 1 if kept else x.detach().sin().exp()
    assert t.allclose(x.grad, x.detach().cos() * slope)


@pytest.mark.parametrize("t", ENGINES, ids=["backlight", "pytorch"])
def test_the_policy_is_asked_in_the_forward_only(t):
    asked = []

    def policy(context, op, *args, **kwargs):
        asked.append((context.is_recompute, tuple(context.op_output.shape), str(op)))
        return t.utils.checkpoint.CheckpointPolicy.MUST_SAVE

    x = t.ones(2, 3, requires_grad=True)
    context_fn = partial(t.utils.checkpoint.create_selective_checkpoint_contexts, policy)
    out = t.utils.checkpoint.checkpoint(
        lambda x: (x.sin() @ x.new_ones(3, 2)).exp(), x, use_reentrant=False, context_fn=context_fn
    )
    names = [one[2].split(".")[1] for one in asked]
    assert [name for name in names if name in ("sin", "mm", "exp")] == ["sin", "mm", "exp"]
    count = len(asked)
    out.sum().backward()
    assert len(asked) == count and not any(one[0] for one in asked)


def saved_twice(t):
    x = t.ones(3, requires_grad=True)
    context_fn = partial(t.utils.checkpoint.create_selective_checkpoint_contexts, lambda *args, **kwargs: True)
    out = t.utils.checkpoint.checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False, context_fn=context_fn)
    out.sum().backward(retain_graph=True)
    out.sum().backward()


def written_since(t):
    x = t.ones(3, requires_grad=True)
    context_fn = partial(t.utils.checkpoint.create_selective_checkpoint_contexts, lambda *args, **kwargs: True)

    def function(x):
        hidden = x.sin()
        with t.no_grad():
            hidden.mul_(2)
        return hidden.exp()

    t.utils.checkpoint.checkpoint(function, x, use_reentrant=False, context_fn=context_fn).sum().backward()


def other_ops(t):
    calls = []
    x = t.ones(3, requires_grad=True)
    context_fn = partial(t.utils.checkpoint.create_selective_checkpoint_contexts, lambda *args, **kwargs: True)

    def function(x):
        calls.append(1)
        return (x.cos() if len(calls) > 1 else x.sin()).exp()

    t.utils.checkpoint.checkpoint(function, x, use_reentrant=False, context_fn=context_fn).sum().backward()


def a_packet(t):
    t.utils.checkpoint.create_selective_checkpoint_contexts([t.ops.aten.mm])


def no_policy(t):
    t.utils.checkpoint.create_selective_checkpoint_contexts("mm")


@pytest.mark.parametrize("mistake", [saved_twice, written_since, other_ops, a_packet, no_policy])
def test_mistakes_are_told_in_pytorchs_words(mistake):
    def said(t):
        with pytest.raises((RuntimeError, ValueError, TypeError)) as problem:
            mistake(t)
        return problem.value

    ours, wanted = said(backlight), said(pytorch)
    assert isinstance(ours, type(wanted))
    assert str(ours).partition(" of type ")[0].startswith(str(wanted).partition(" of type ")[0])


def test_what_was_written_to_may_be_allowed():
    def gradient(t):
        x = t.ones(3, requires_grad=True)

        def context_fn():
            return t.utils.checkpoint.create_selective_checkpoint_contexts(
                lambda context, op, *args, **kwargs: "mul" not in str(op), allow_cache_entry_mutation=True
            )

        def function(x):
            hidden = x.sin()
            kept = hidden.detach()
            return (hidden * 2).exp() + kept.clone().mul_(2)

        t.utils.checkpoint.checkpoint(function, x, use_reentrant=False, context_fn=context_fn).sum().backward()
        return x.grad.tolist()

    assert close([gradient(backlight)], [gradient(pytorch)])


def test_names_of_checkpoints_are_pytorchs():
    ours, wanted = set(backlight.utils.checkpoint.__all__), set(pytorch.utils.checkpoint.__all__)
    devices = {"get_device_states", "set_device_states", "DefaultDeviceType", "SAC_IGNORED_OPS"}
    assert wanted - ours <= devices

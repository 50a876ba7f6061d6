"""Grad modes as context managers and decorators: functions, generators, coroutines, threads. Run on PyTorch too."""

import asyncio
import threading

import pytest
import torch
from snippets import assert_shows_the_same

import backlight

START = """
w = torch.ones(2, requires_grad=True)
def on():
    return torch.is_grad_enabled(), (w * 2).requires_grad, torch.is_inference_mode_enabled()
"""

SNIPPETS = {
    "no_grad nests": (
        "with torch.no_grad():\n    print(on())\n    with torch.enable_grad():\n        print(on())\n"
        "    print(on())\nprint(on())"
    ),
    "set_grad_enabled in with": (
        "with torch.set_grad_enabled(False):\n    print(on())\n    with torch.set_grad_enabled(True):\n"
        "        print(on())\n"
        "print(on())"
    ),
    "set_grad_enabled as a function": (
        "torch.set_grad_enabled(False); print(on()); torch.set_grad_enabled(True); print(on())"
    ),
    "set_grad_enabled as a decorator": (
        "@torch.set_grad_enabled(False)\ndef f():\n    return on()\nprint(on(), f(), on())"
    ),
    "one instance used twice": (
        "mode = torch.no_grad()\nfor turn in range(2):\n    with mode:\n        print(on())\n    print(on())"
    ),
    "an exception restores": (
        "try:\n    with torch.no_grad():\n        raise KeyError(1)\nexcept KeyError:\n    print(on())"
    ),
    "decorators, with and without parentheses": (
        "@torch.no_grad()\ndef f(a, b=2):\n    'doc'\n    return on()\n"
        "@torch.no_grad\ndef g():\n    with torch.enable_grad():\n        return on()\n"
        "@torch.inference_mode\ndef h():\n    return on()\n"
        "@torch.inference_mode()\ndef i():\n    return on()\n"
        "@torch.enable_grad()\ndef j():\n    return on()\n"
        "print(f(1), g(), h(), i(), on(), f.__name__, f.__doc__)\n"
        "with torch.no_grad():\n    print(j(), on())"
    ),
    "a decorated method": (
        "class A:\n    @torch.no_grad()\n    def f(self, x):\n        return x, on()\nprint(A().f(3))"
    ),
    "a recursive decorated function": (
        "@torch.no_grad()\ndef f(n):\n    return on() if n == 0 else f(n - 1)\nprint(f(5), on())"
    ),
    "a generator is off only while its own code runs": (
        "@torch.no_grad()\ndef f():\n    print('in', on())\n    got = yield 1\n    print('in', on(), got)\n"
        "    yield 2\n"
        "g = f(); print(next(g)); print(on()); print(g.send('sent')); print(on())"
    ),
    "a generator's return value, throw and close": (
        "@torch.no_grad()\ndef f():\n"
        "    try:\n        yield 1\n    except ValueError as problem:\n        print('caught', problem, on())\n"
        "        yield 2\n"
        "    finally:\n        print('finally', on())\n"
        "g = f(); print(next(g)); print(g.throw(ValueError('x'))); print(on()); g.close(); print(on())\n"
        "def outer():\n    got = yield from inner()\n    print('got', got)\n"
        "@torch.no_grad()\ndef inner():\n    yield 1\n    return 'value'\n"
        "print(list(outer()))"
    ),
    "a generator within a mode": (
        "@torch.enable_grad()\ndef f():\n    yield on()\nwith torch.no_grad():\n    print(list(f()), on())"
    ),
    "a leaf can be made under no_grad": (
        "with torch.no_grad():\n    x = torch.zeros(2, requires_grad=True)\n(x * 2).sum().backward(); print(x.grad)"
    ),
    "views under no_grad share memory and version": (
        "with torch.no_grad():\n    v = w.view(2, 1)\n    v.add_(1)\nprint(w, w._version, v._version, v._base is w)"
    ),
    "requires_grad_ under no_grad": (
        "with torch.no_grad():\n    x = (w * 2).requires_grad_()\n(x * 3).sum().backward(); "
        "print(x.grad, w.grad, x.is_leaf)"
    ),
    "inference mode nests with grad mode": (
        "with torch.inference_mode():\n    print(on())\n    with torch.enable_grad():\n        print(on())\n"
        "    with torch.inference_mode(False):\n        print(on())\n    print(on())\nprint(on())"
    ),
    "tensors of inference mode": (
        "with torch.inference_mode():\n    x = torch.ones(2); y = x * 2; v = w.view(2); z = y[0]\n"
        "print([t.is_inference() for t in (x, y, z, w, v)], y.requires_grad)\nprint(y + 1, (y + 1).is_inference())"
    ),
    "an inference tensor may be written inside": (
        "with torch.inference_mode():\n    x = torch.ones(2); x.add_(1); x[0] = 5\nprint(x)\n"
        "with torch.inference_mode():\n    x.mul_(2)\nprint(x)"
    ),
    "a normal tensor may be written in inference mode": (
        "x = torch.ones(2)\nwith torch.inference_mode():\n    x.add_(1)\nprint(x, x._version, x.is_inference())"
    ),
    "an inference tensor in a recorded sum is fine": (
        "with torch.inference_mode():\n    x = torch.ones(2)\n(w + x).sum().backward(); print(w.grad)"
    ),
    "an inference tensor in a recorded product is not": ("with torch.inference_mode():\n    x = torch.ones(2)\nw * x"),
    "a view of an inference tensor": (
        "with torch.inference_mode():\n    x = torch.ones(2)\nv = x.view(2, 1); print(v.is_inference()); v.add_(1)"
    ),
    "requires_grad inside inference mode": (
        "with torch.inference_mode():\n    x = torch.ones(2, requires_grad=True); y = x * 2\n"
        "print(x.requires_grad, y.requires_grad)"
    ),
    "inference_mode(False) does nothing": (
        "with torch.inference_mode(False):\n    print(on(), torch.ones(1).is_inference())"
    ),
    "the gradient is made in the mode of backward": (
        "y = (w * w).sum()\nwith torch.no_grad():\n    y.backward()\nprint(w.grad, w.grad.requires_grad)"
    ),
    "the mode of a thread is its own": (
        "import threading\ndef look():\n    print(on())\n"
        "with torch.no_grad():\n    t = threading.Thread(target=look); t.start(); t.join()\n    print(on())"
    ),
}


@pytest.mark.parametrize("source", SNIPPETS.values(), ids=SNIPPETS)
def test_does_what_pytorch_does(source):
    assert_shows_the_same(START + source)


def recording() -> bool:
    return (backlight.ones(1, requires_grad=True) * 2).requires_grad


@pytest.mark.parametrize("mode", [backlight.no_grad, backlight.inference_mode])
def test_a_coroutine_is_off_only_while_its_own_code_runs(mode):
    seen = []

    @mode()
    async def inner(name):
        for _ in range(3):
            seen.append((name, recording()))
            await asyncio.sleep(0)
        return name

    async def outer():
        for _ in range(3):
            seen.append(("outer", recording()))
            await asyncio.sleep(0)

    async def together():
        return await asyncio.gather(inner("a"), outer(), inner("b"))

    assert asyncio.run(together()) == ["a", None, "b"]
    assert set(seen) == {("a", False), ("outer", True), ("b", False)}


def test_a_coroutine_sees_exceptions():
    @backlight.no_grad()
    async def inner():
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            return recording()

    async def outer():
        task = asyncio.ensure_future(inner())
        await asyncio.sleep(0)
        task.cancel()
        return await task, recording()

    assert asyncio.run(outer()) == (False, True)


def test_an_async_generator_is_off_only_while_its_own_code_runs():
    @backlight.no_grad()
    async def inner():
        for number in range(2):
            yield number, recording()

    async def outer():
        return [(*found, recording()) async for found in inner()]

    assert asyncio.run(outer()) == [(0, False, True), (1, False, True)]


def test_a_generator_left_behind_does_not_switch_recording():
    @backlight.no_grad()
    def numbers():
        yield from range(10)

    left = numbers()
    next(left)
    assert recording()
    del left
    assert recording()


def test_a_thread_that_ends_inside_a_mode_leaves_the_others_alone():
    """The switch that all ops read counts threads: one that dies with recording off must not stay counted as on."""
    threads = [threading.Thread(target=lambda: backlight.set_grad_enabled(False)) for _ in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    assert recording()
    with backlight.no_grad():
        assert not recording()
    assert recording()


DECORATED = """
@torch.no_grad()
class Model:
    def __init__(self, x):
        self.doubled = x * 2
        self.recording = torch.is_grad_enabled()
    def twice(self, x):
        return x * 2
x = torch.ones(1, requires_grad=True)
model = Model(x)
print(model.recording, model.doubled.requires_grad, model.twice(x).requires_grad)
"""


def test_a_decorated_class_is_made_without_recording_and_a_warning_is_given():
    assert_shows_the_same(DECORATED)


@pytest.mark.parametrize("through", ["backward", "grad", "retain_grad", "a hook"])
def test_gradients_of_a_backward_in_inference_mode_are_inference_tensors(through):
    for t in (torch, backlight):
        x = t.ones(3, requires_grad=True)
        y = x * 2
        y.retain_grad()
        loss, seen = (y * y).sum(), []
        y.register_hook(seen.append)
        with t.inference_mode():
            found = t.autograd.grad(loss, x, retain_graph=True)[0] if through == "grad" else loss.backward()
        grad = {"grad": found, "backward": x.grad, "retain_grad": y.grad, "a hook": seen[0]}[through]
        assert grad.is_inference() and grad.tolist() == ([8.0] * 3 if through in ("grad", "backward") else [4.0] * 3)
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            grad.add_(1)

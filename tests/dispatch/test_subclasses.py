"""Subclasses of Tensor, `__torch_function__` and `torch.overrides`, beside PyTorch's."""

import gc
import subprocess
import sys
import warnings

import pytest
import torch
import torch.overrides

import backlight
import backlight.overrides

ENGINES = {"torch": torch, "backlight": backlight}


def kinds(engine):
    """Return, of one engine: a subclass without a word of its own, one of that, and one that logs what it sees."""

    class Plain(engine.Tensor):
        pass

    class Below(Plain):
        pass

    class Logging(engine.Tensor):
        log = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.log.append((func.__name__, [one.__name__ for one in types], len(args)))
            return super().__torch_function__(func, types, args, kwargs or {})

    return Plain, Below, Logging


KINDS = {}


@pytest.fixture(scope="module", autouse=True)
def _classes():
    """Make the classes for this module's tests alone: while there are any, all functions ask them."""
    KINDS.update((name, kinds(engine)) for name, engine in ENGINES.items())
    yield
    KINDS.clear()
    gc.collect()


def names_in(value):
    """Return the types in a result, with lists among them taken apart."""
    if isinstance(value, (tuple, list)):
        return [names_in(one) for one in value]
    return type(value).__name__


CALLS = """
x + 1 | 1 + x | plain + x | x + plain | plain.add(x) | engine.add(plain, x) | x - 1 | 1 - x | x / 2 | 2 / x | -x
x ** 2 | 2 ** x | x @ x | x == 1 | x < plain | plain < x | x != 1 | abs(x) | ~(x > 0) | x // 1 | 1 // x | x % 2
x & x if False else x | plain @ x | x[0] | x[1:] | x.shape | x.dtype | x.ndim | x.requires_grad | x.is_leaf
x.data | x.grad | x.device | x.size() | x.sum() | engine.sum(x) | engine.stack([x, plain])
engine.cat([plain, x]) | engine.relu(x) | engine.where(x > 0, x, plain) | engine.nn.functional.relu(x)
engine.nn.functional.softmax(x, 0) | engine.nn.functional.mse_loss(x, plain) | x.softmax(0) | x.max(0)
engine.max(x, 0) | x.split(1) | x.unbind() | engine.broadcast_tensors(x, plain) | x.topk(2) | x.sort() | x.detach()
x.clone() | x.view(3, 1) | x.reshape(1, 3) | x.expand(2, 3) | x.to(engine.float64) | x.double() | x.contiguous()
x.new_zeros(3) | engine.zeros_like(x) | engine.rand_like(x) | engine.tensor(x.tolist()) | engine.as_tensor(x)
engine.is_tensor(x) | x.numpy() | x.tolist() | x.sum().item() | len(x) | [*x] | repr(x) | float(x[0]) | bool(x[0])
x.as_subclass(engine.Tensor) | x.clone().add_(1) | x.clone().mul_(plain) | plain.clone().add_(x)
x.clone().zero_() | x.clone().copy_(plain) | engine.equal(x, x) | engine.einsum("i,i->", x, x)
engine.linalg.norm(x) | engine.special.expm1(x) | engine.allclose(x, x) | engine.numel(x) | 1.0 in x
engine.add(plain, 1, out=x.clone()) | engine.nn.Linear(3, 2)(x) | (x * 2).sum()
engine.nn.functional.linear(x, x.expand(2, 3))
"""
EXPRESSIONS = [one.strip() for line in CALLS.strip().splitlines() for one in line.split("|")]


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("kind", [0, 1, 2], ids=["plain", "of a subclass", "logging"])
def test_results_are_of_pytorchs_types(kind, expression):
    found = {}
    for name, engine in ENGINES.items():
        x = engine.ones(3).as_subclass(KINDS[name][kind])
        found[name] = names_in(eval(expression, {"engine": engine, "x": x, "plain": engine.ones(3)}))
    assert found["backlight"] == found["torch"]


UNLIKE = {
    "engine.nn.functional.softmax(x, 0)": "arguments are handed on as they were given",
    "[*x]": "PyTorch asks for the number of dims first",
    "engine.nn.functional.mse_loss(x, plain)": "types of exact tensors are not listed",
    "engine.broadcast_tensors(x, plain)": "types of exact tensors are not listed",
    "engine.linalg.norm(x)": "PyTorch's name is linalg_norm",
    "engine.special.expm1(x)": "PyTorch's name is special_expm1",
}


@pytest.mark.parametrize("expression", [one for one in EXPRESSIONS if one not in UNLIKE])
def test_a_class_sees_the_calls_that_it_sees_in_pytorch(expression):
    seen = {}
    for name, engine in ENGINES.items():
        kind = KINDS[name][2]
        x, plain = engine.ones(3).as_subclass(kind), engine.ones(3)
        kind.log.clear()
        eval(expression, {"engine": engine, "x": x, "plain": plain})
        seen[name] = [*kind.log]
    assert seen["backlight"] == seen["torch"]


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_functions_are_known_by_identity(engine):
    seen = []

    class Handles(engine.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return "answer"

    x = engine.ones(2).as_subclass(Handles)
    calls = {
        engine.add: lambda: engine.add(x, 1),
        engine.Tensor.add: lambda: x + 1,
        engine.mean: lambda: engine.mean(x),
        engine.nn.functional.relu: lambda: engine.nn.functional.relu(x),
        engine.Tensor.shape.__get__: lambda: x.shape,
        engine.Tensor.grad.__set__: lambda: setattr(x, "grad", None),
        engine.stack: lambda: engine.stack([x]),
        engine.Tensor.view: lambda: x.view(-1),
        engine.autograd.grad: lambda: engine.autograd.grad(x, x),
    }
    for function, call in calls.items():
        assert call() in ("answer", None)
        assert seen[-1] == function
    assert engine.overrides.resolve_name(engine.add) == "torch.add"


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_types_that_are_no_tensors_may_answer(engine):
    class Diagonal:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, types, args

    backlight.overrides.dispatch_while_alive(Diagonal)
    one = Diagonal()
    assert engine.mean(one) == ("mean", (Diagonal,), (one,))
    assert engine.nn.functional.linear(engine.ones(2), one)[0] == "linear"
    assert (engine.ones(2) * one)[0] == "mul"
    assert engine.stack([engine.ones(2), one])[0] == "stack"
    assert engine.overrides.is_tensor_like(one) and not engine.overrides.is_tensor_like(1)
    assert engine.overrides.has_torch_function((one,)) and not engine.overrides.has_torch_function((engine.ones(1),))


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_who_is_asked_first(engine):
    order = []

    def answering(*bases):
        class Kind(*bases):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                order.append(cls.number)
                return NotImplemented

        return Kind

    first, second = answering(engine.Tensor), answering(engine.Tensor)
    below = answering(first)
    first.number, second.number, below.number = 1, 2, 3
    x, y, z = (engine.ones(2).as_subclass(kind) for kind in (first, second, below))
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch.stack'; all __torch_function__ handlers"):
        engine.stack([x, y, z])
    assert order == [3, 1, 2]
    with pytest.raises(TypeError, match=r"no implementation found for 'torch.nn.functional.relu' on types that impl"):
        engine.nn.functional.relu(x)
    with pytest.raises(TypeError, match="unsupported operand type"):
        x + 1


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_unrelated_subclasses_do_not_mix(engine):
    plain, _, logging = KINDS["torch" if engine is torch else "backlight"]
    with pytest.raises(TypeError):
        engine.ones(2).as_subclass(plain) + engine.ones(2).as_subclass(logging)


def test_gradients_of_a_subclass_are_plain_as_in_pytorch():
    found = {}
    for name, engine in ENGINES.items():
        x = engine.tensor([1.0, 2.0, 3.0]).as_subclass(KINDS[name][0]).requires_grad_()
        seen = []
        out = (x * x).sin()
        out.register_hook(lambda grad, seen=seen: seen.append(type(grad).__name__))
        out.sum().backward(retain_graph=True)
        (again,) = engine.autograd.grad(out.sum(), x, create_graph=True)
        (second,) = engine.autograd.grad(again.sum(), x)
        names = (out.grad_fn.name(), out.grad_fn.next_functions[0][0].name(), x[0].grad_fn.name())
        values = x.grad.tolist(), again.tolist(), second.tolist()
        found[name] = names, names_in([x.grad, again, second]), values, seen
    assert found["backlight"][:2] == found["torch"][:2]
    assert found["backlight"][2] == tuple(pytest.approx(one, rel=1e-5) for one in found["torch"][2])
    assert found["backlight"][3] == found["torch"][3]


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_parameters_and_buffers_stay_what_they_are(engine):
    plain = KINDS["torch" if engine is torch else "backlight"][0]
    weight = engine.nn.Parameter(engine.ones(2))
    assert type(weight * 2) is type(weight.detach()) is engine.Tensor
    assert type(engine.nn.Buffer(engine.ones(2)) + 1) is engine.Tensor
    assert not engine.overrides.has_torch_function((weight,))
    own = engine.nn.Parameter(engine.ones(2).as_subclass(plain))
    assert type(own) is plain and isinstance(own, engine.nn.Parameter) and own.requires_grad and own.is_leaf
    module = engine.nn.Module()
    module.weight = own
    assert next(module.parameters()) is own
    assert type(weight * own) is plain
    assert not isinstance(engine.ones(2).as_subclass(plain), engine.nn.Parameter)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_subclasses_turned_off(engine):
    plain = KINDS["torch" if engine is torch else "backlight"][0]
    x = engine.ones(2).as_subclass(plain)
    off = torch._C if engine is torch else engine.overrides
    with off.DisableTorchFunctionSubclass():
        assert type(x + 1) is engine.Tensor
        assert not engine.overrides.has_torch_function((x,))
    assert type(x + 1) is plain


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_a_mode_answers_for_everything(engine):
    class Counting(engine.overrides.TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Counting() as outer:
        with Counting() as inner:
            engine.zeros(3)
            engine.tensor([1.0, 2.0]).sum()
        x = engine.ones(2, requires_grad=True)
        (x * x).sum().backward()
    assert inner.seen == ["zeros", "tensor", "sum"]
    assert outer.seen == [*inner.seen, "ones", "mul", "sum", "backward"]
    engine.zeros(3)
    assert len(outer.seen) == 7


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_a_function_of_a_users_own_can_be_overridden(engine):
    def double(x):
        if engine.overrides.has_torch_function_unary(x):
            return engine.overrides.handle_torch_function(double, (x,), x)
        return x * 2

    class Answer:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func is double and args

    one = Answer()
    assert double(one) == (one,)
    assert double(engine.ones(1)).item() == 2

    @engine.overrides.wrap_torch_function(lambda x: (x,))
    def triple(x):
        return x * 3

    assert triple(one) is False
    assert triple(engine.ones(1)).item() == 3


def test_what_can_be_overridden_is_what_pytorch_says():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.overrides.get_overridable_functions()
    ours = backlight.overrides.get_overridable_functions()
    pairs = (backlight, torch), (backlight.nn.functional, torch.nn.functional), (backlight.Tensor, torch.Tensor)
    for space, module in pairs:
        names = {one.__name__ for one in theirs[module] if one.__name__[0] != "_" and hasattr(space, one.__name__)}
        functions = {name: getattr(space, name) for name in names}
        wanted = {name for name, one in functions.items() if callable(one) and not isinstance(one, type)}
        missing = {name for name in wanted if getattr(space, name) not in ours[space]}
        assert not missing, sorted(missing)
        assert len(wanted) > 50


def test_a_method_that_is_no_classmethod_is_warned_of():
    class Odd(backlight.Tensor):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return "answer"

    with pytest.warns(DeprecationWarning, match="Defining your `__torch_function__ as a plain method is deprecated"):
        assert backlight.ones(1).as_subclass(Odd).sum() == "answer"


def test_calls_without_an_argument_of_a_class_are_not_dispatched_while_only_classes_handle_calls():
    code = """if True:
        import backlight
        from backlight.dispatch import torch_function
        from backlight.kernels.native import core
        seen, dispatched = [], torch_function.dispatch_torch_function
        torch_function.dispatch_torch_function = lambda public, *rest: seen.append(public) or dispatched(public, *rest)
        def names():
            found = [public.__name__ for public in seen]
            seen.clear()
            return found
        x = backlight.ones(2)
        run = lambda: (x.relu(), x + 1, backlight.sum(x, dim=0), backlight.nn.functional.mse_loss(x, x))
        class Mine(backlight.Tensor):
            pass
        run()
        assert core is None or not names()
        mine = x.as_subclass(Mine)
        assert type(mine.relu()) is type(backlight.add(x, mine)) is type(backlight.cat([x, mine])) is Mine
        assert {"relu", "add", "cat"} <= set(names())
        class Answers(backlight.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return "answer"
        with Answers():
            assert run() == ("answer",) * 4
        with backlight.autocast("cpu"):
            assert backlight.ones(2, 2).mm(backlight.ones(2, 2)).dtype is backlight.bfloat16
        names()
        run()
        assert core is None or not names()
        assert backlight.vmap(lambda row: row.relu())(backlight.ones(2, 2)).shape == (2, 2)
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_nothing_asks_without_a_class_or_a_mode():
    code = """if True:
        import gc, backlight
        from backlight.dispatch import torch_function
        x = backlight.ones(2)
        run = lambda: (x.view(2), x.detach(), backlight.cat([x, x]), x + x, backlight.nn.functional.mse_loss(x, x))
        from backlight.dispatch.dispatcher import dispatching
        from backlight.kernels.native import core
        intercepts = lambda: dispatching.active or (core is not None and core.core_intercepts() != 0)
        run()
        assert not intercepts()
        class Mine(backlight.Tensor):
            pass
        assert torch_function.overrides_state.on and type(x.as_subclass(Mine) + 1) is Mine
        run()
        assert intercepts()
        del Mine
        gc.collect()
        assert not torch_function.overrides_state.on and not intercepts()
        with __import__("backlight.overrides").overrides.BaseTorchFunctionMode():
            assert torch_function.overrides_state.on
            run()
        assert not torch_function.overrides_state.on and not intercepts()
        class Silent(backlight.Tensor):
            __torch_function__ = backlight.overrides.disabled
        assert not torch_function.overrides_state.on and type(x.as_subclass(Silent) + 1) is backlight.Tensor
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
